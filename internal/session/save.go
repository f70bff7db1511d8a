package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/line"
	"swarm/internal/prompt"
	"swarm/internal/run"
)

// compose is the session as a compose file: the way from trying to keeping. Each task reads the outputs that it read in the session.
func (s *Session) compose() (string, error) {
	var b strings.Builder
	b.WriteString("version: \"1\"\n")
	s.writeTeam(&b)
	b.WriteString("tasks:\n")
	newest := map[string]string{} // by agent
	tasks := 0
	for e, err := range run.Events(s.run.Log()) {
		if err != nil {
			return "", err
		}
		if e.Kind != swarm.PlanAdded || e.To == "" {
			continue
		}
		p, err := swarm.Body[swarm.Plan](&e)
		if err != nil {
			return "", err
		}
		for _, t := range p.Tasks {
			if t.Agent == line.Notify {
				continue // it tells a person, and has nothing to say to agents
			}
			if err := s.writeTask(&b, t, newest); err != nil {
				return "", err
			}
			newest[t.Agent] = t.Name
			tasks++
		}
	}
	if tasks == 0 {
		return "", swarm.Errorf(swarm.BadInput, "there is nothing to save yet").WithHint("enter a line first")
	}
	return b.String(), nil
}

func (s *Session) writeTeam(b *strings.Builder) {
	b.WriteString("providers:\n")
	for _, p := range s.team.Providers {
		if p.Name == line.Notify {
			continue
		}
		fmt.Fprintf(b, "  %s: {kind: %s", p.Name, p.Kind)
		for _, f := range []struct {
			key   string
			value any
			given bool
		}{{"command", p.Command, len(p.Command) > 0}, {"script", p.ScriptFile, p.ScriptFile != ""}, {"base_url", p.BaseURL, p.BaseURL != ""},
			{"models", p.Models, len(p.Models) > 0}, {"max_tokens", p.MaxTokens, p.MaxTokens > 0}, {"temperature", p.Temperature, p.Temperature != nil},
			{"price", p.Price, p.Price != swarm.Price{}}, {"env", p.Env, len(p.Env) > 0}, {"headers", p.Headers, len(p.Headers) > 0}} {
			if f.given {
				fmt.Fprintf(b, ", %s: %s", f.key, flow(f.value))
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("agents:\n")
	for _, a := range s.team.Agents {
		if a.Name == line.Notify {
			continue
		}
		fmt.Fprintf(b, "  %s: {provider: %s", a.Name, a.Provider)
		for _, f := range []struct{ key, value string }{{"role", a.RoleName}, {"model", a.Model}, {"tier", a.Tier}} {
			if f.value != "" {
				fmt.Fprintf(b, ", %s: %s", f.key, flow(f.value))
			}
		}
		if len(a.Env) > 0 {
			fmt.Fprintf(b, ", env: %s", flow(a.Env))
		}
		b.WriteString("}\n")
	}
}

// flow is a value as JSON, which is YAML too.
func flow(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (s *Session) writeTask(b *strings.Builder, t swarm.Task, newest map[string]string) error {
	body, err := s.run.Log().Body(t.Prompt)
	if err != nil {
		return err
	}
	tpl, err := prompt.Unmarshal(body)
	if err != nil {
		return err
	}
	after := map[string]bool{}
	for _, d := range t.DependsOn {
		if !strings.HasPrefix(d.Task, line.Notify+"_") {
			after[d.Task] = true
		}
	}
	var text strings.Builder
	for _, p := range tpl.Parts {
		if p.Kind != prompt.KindAgent {
			text.WriteString(strings.ReplaceAll(p.Text, "{{", `\{{`))
			continue
		}
		from := p.Task
		if from == "" {
			from = newest[p.Name]
		}
		if from == "" { // an agent that spoke only later: the file has no place for that
			return swarm.Errorf(swarm.BadInput, "%s waits for the first output of @%s, which came later; a file cannot say that", t.Name, p.Name)
		}
		after[from] = true
		fmt.Fprintf(&text, "{{output:%s}}", from)
	}
	fmt.Fprintf(b, "  %s:\n    agent: %s\n", t.Name, t.Agent)
	if len(after) > 0 {
		var deps []string
		for _, name := range slices.Sorted(maps.Keys(after)) {
			deps = append(deps, "{task: "+name+", condition: success}")
		}
		fmt.Fprintf(b, "    depends_on: [%s]\n", strings.Join(deps, ", "))
	}
	for _, f := range []struct{ key, value string }{{"model", t.Model}, {"tier", t.Tier}} {
		if f.value != "" {
			fmt.Fprintf(b, "    %s: %s\n", f.key, flow(f.value))
		}
	}
	fmt.Fprintf(b, "    prompt-string: %s\n", scalar(text.String()))
	return nil
}

// scalar is a text as YAML has it: in lines when it has several, if that keeps every byte.
func scalar(text string) string {
	if !strings.Contains(text, "\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") || strings.HasSuffix(text, "\n") ||
		strings.ContainsAny(text, "\t\r") || strings.Contains(text, " \n") {
		return flow(text)
	}
	return "|-\n      " + strings.ReplaceAll(text, "\n", "\n      ")
}
