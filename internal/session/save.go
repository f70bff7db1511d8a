package session

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/line"
	"swarm/internal/prompt"
)

// compose returns the session as a compose file, so that an experiment can be kept. Each task reads
// the outputs that it read in the session. Relative paths in the file start from dir.
func (s *Session) compose(dir string) (string, error) {
	var b strings.Builder
	b.WriteString("version: \"1\"\n")
	s.writeTeam(&b, dir)
	b.WriteString("tasks:\n")
	newest := map[string]string{} // by agent
	tasks := 0
	for e, err := range swarm.Events(s.run.Log(), 0) {
		if err != nil {
			return "", err
		}
		if e.Kind != swarm.PlanAdded || e.To == "" {
			continue
		}
		p, err := swarm.Body[swarm.Plan](e)
		if err != nil {
			return "", err
		}
		for _, t := range p.Tasks {
			if t.Agent == line.Notify {
				continue // it notifies a person, and its output goes to no agent
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

// writeTeam writes everything but the tasks. A field of Team without a key here is lost by /save.
func (s *Session) writeTeam(b *strings.Builder, dir string) {
	t := &s.team
	for _, f := range []field{
		{"default_agent", t.Default},
		{"max_parallel", t.MaxParallel},
		{"wait_timeout", lasting(t.WaitTimeout)},
		{"approvals", t.Approvals},
		{"budget", budget(t.Budget)},
		{"notify", notify(t.Notify)},
		{"swarm", topicLimits(t.Topics)},
	} {
		if f.given() {
			fmt.Fprintf(b, "%s: %s\n", f.key, flow(f.value))
		}
	}
	if len(t.Servers) > 0 {
		b.WriteString("tools:\n  mcp:\n")
	}
	for _, m := range t.Servers {
		fmt.Fprintf(b, "    %s: %s\n", name(m.Name), mapping(field{"command", m.Command}, field{"url", m.URL}, field{"headers", m.Headers}, field{"env", m.Env}))
	}
	b.WriteString("providers:\n")
	for _, p := range t.Providers {
		if p.Name == line.Notify {
			continue
		}
		fmt.Fprintf(b, "  %s: %s\n", name(p.Name), mapping(field{"kind", verbatim(p.Kind)}, field{"command", p.Command}, field{"script", s.fileFrom(dir, p.ScriptFile)},
			field{"base_url", p.BaseURL}, field{"api", p.API}, field{"models", p.Models}, field{"mode", p.Mode}, field{"max_tokens", p.MaxTokens}, field{"temperature", p.Temperature},
			field{"effort", p.Effort}, field{"thinking", p.Thinking}, field{"service_tier", p.ServiceTier}, field{"images", p.Images}, field{"extra", p.Extra}, field{"context", p.Context},
			field{"price", p.Price}, field{"env", p.Env}, field{"headers", p.Headers}, field{"sandbox", sandbox(p.Sandbox)}))
	}
	b.WriteString("agents:\n")
	for _, a := range t.Agents {
		if a.Name == line.Notify {
			continue
		}
		fmt.Fprintf(b, "  %s: %s\n", name(a.Name), mapping(field{"provider", verbatim(name(a.Provider))}, field{"role", a.RoleName}, field{"model", a.Model}, field{"tier", a.Tier},
			field{"tools", a.Tools}, field{"root", within(s.run.Began().Dir, a.Root)}, field{"permissions", a.Permissions}, field{"env", a.Env},
			field{"session", a.Session}, field{"context", a.Context}, field{"budget", budget(a.Budget)},
			field{"on_limit", onLimit(a.OnLimit)}, field{"limit_wait", limitWait(a.OnLimit)}))
	}
	if len(t.Edges) > 0 {
		b.WriteString("edges:\n")
	}
	for _, e := range t.Edges {
		arrow := "->"
		if e.Both {
			arrow = "<->"
		}
		fmt.Fprintf(b, "  - %s %s %s\n", e.From, arrow, e.To)
	}
}

func lasting(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func budget(b swarm.Budget) verbatim {
	return mapping(field{"tokens", b.Tokens}, field{"usd", b.USD}, field{"calls", b.Calls}, field{"wall", lasting(b.Wall)})
}

func notify(p *swarm.ProviderSpec) verbatim {
	if p == nil {
		return ""
	}
	return mapping(field{"command", p.Command}, field{"webhook", p.BaseURL}, field{"bell", len(p.Command) == 0 && p.BaseURL == ""})
}

func sandbox(b *swarm.Sandbox) verbatim {
	if b == nil {
		return ""
	}
	var network any = b.Network
	if b.Network == swarm.NetworkHosts {
		network = b.Hosts
	}
	return mapping(field{"kind", b.Kind}, field{"write", b.Write}, field{"read", b.Read}, field{"hide", b.Hide}, field{"network", network})
}

func onLimit(o *swarm.OnLimit) (value any) {
	switch {
	case o != nil && o.Use != "":
		return mapping(field{"use", verbatim(name(o.Use))})
	case o != nil && o.Fail:
		return "fail"
	}
	return ""
}

func limitWait(o *swarm.OnLimit) string {
	if o == nil {
		return ""
	}
	return lasting(o.Wait)
}

func topicLimits(l *swarm.TopicLimits) verbatim {
	if l == nil {
		return ""
	}
	return mapping(field{"workspace_max_entries", l.Entries}, field{"workspace_snippet_chars", l.Chars})
}

// fileFrom converts a path in the session's compose file to one that means the same in a file in
// dir.
func (s *Session) fileFrom(dir, path string) string {
	start := s.run.Began()
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	old := filepath.Dir(start.File)
	if !filepath.IsAbs(old) {
		old = filepath.Join(start.Dir, old)
	}
	rel, err := filepath.Rel(dir, filepath.Join(old, path))
	if err != nil {
		return path
	}
	return rel
}

// within returns a path relative to dir, if it is inside. The saved file then means the folder in
// which it is run.
func within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && path != "" && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// A field is a key with its value. A zero value is left out.
type field struct {
	key   string
	value any
}

func (f field) given() bool { return !reflect.ValueOf(f.value).IsZero() && f.value != verbatim("{}") }

// A verbatim is YAML already.
type verbatim string

// mapping returns the fields with a value as a YAML mapping on one line.
func mapping(fields ...field) verbatim {
	var list []string
	for _, f := range fields {
		if f.given() {
			list = append(list, f.key+": "+flow(f.value))
		}
	}
	return verbatim("{" + strings.Join(list, ", ") + "}")
}

// name returns a name as YAML. Three valid names mean something else there.
func name(s string) string {
	switch s {
	case "null", "true", "false":
		return flow(s)
	}
	return s
}

// flow returns a value as JSON, which is also YAML once the characters are escaped that YAML does
// not allow.
func flow(v any) string {
	if v, ok := v.(verbatim); ok {
		return string(v)
	}
	text := string(swarm.Encode(v))
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unprintable reports whether YAML requires an escape for r although JSON does not.
func unprintable(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
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
		if from == "" { // the agent's first output came later, which a file cannot express
			return swarm.Errorf(swarm.BadInput, "%s waits for the first output of @%s, which came later; a file cannot say that", t.Name, p.Name)
		}
		after[from] = true
		fmt.Fprintf(&text, "{{output:%s}}", from)
	}
	fmt.Fprintf(b, "  %s:\n    agent: %s\n", t.Name, name(t.Agent))
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

// scalar returns a text as YAML. A text of several lines becomes a block, if that keeps every byte.
func scalar(text string) string {
	if !strings.Contains(text, "\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") || strings.HasSuffix(text, "\n") ||
		strings.ContainsAny(text, "\t\r") || strings.Contains(text, " \n") {
		return flow(text)
	}
	return "|-\n      " + strings.ReplaceAll(text, "\n", "\n      ")
}
