package line

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/prompt"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// options have every agent of the team, and notify.
func options(team Team) PlanOptions {
	o := PlanOptions{WaitTimeout: 5 * time.Minute, Agents: map[string]swarm.Agent{}, Providers: []swarm.ProviderSpec{
		{Name: "other", Kind: "command", Command: []string{"false"}}, {Name: "sh", Kind: "command", Command: []string{"cat"}}, {Name: "bell", Kind: "notify"}}}
	for _, name := range team.Agents {
		o.Agents[name] = swarm.Agent{Name: name, Provider: "sh"}
	}
	o.Agents[Notify] = swarm.Agent{Name: Notify, Provider: "bell"}
	return o
}

// A session is the part of a session that lines can see. It keeps what was planned and how tasks
// ended.
type session struct {
	Standing
	team Team
}

func (s *session) enter(text string) string {
	l, err := Parse(text, s.team)
	var f *Fragment
	if err == nil {
		f, err = l.Plan(s.Standing, options(s.team))
	}
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return "not an *Error: " + err.Error() + "\n"
		}
		picture := "  " + strings.ReplaceAll(e.picture(text), "\n", "\n  ") + "\n"
		return picture + "! " + e.Msg + "\n" + strings.TrimSuffix("  "+strings.ReplaceAll(e.Hint, "\n", "\n  "), "  ") + "\n"
	}
	var b strings.Builder
	for _, n := range f.Notices {
		b.WriteString("! " + n + "\n")
	}
	for _, t := range f.Plan.Tasks {
		b.WriteString(describe(t, f))
		s.record(t)
	}
	return b.String()
}

// record puts a planned task into the standing, as a session does.
func (s *session) record(t swarm.Task) {
	a := s.Agents[t.Agent]
	a.Tasks++
	s.Agents[t.Agent] = a
	open := OpenTask{Name: t.Name, Agent: t.Agent, Awaits: t.Awaits}
	for _, d := range t.DependsOn {
		open.After = append(open.After, d.Task)
	}
	s.Open = append(s.Open, open)
}

// end ends a task: `pm_1 completed` or `pm_1 failed`.
func (s *session) end(what string) error {
	name, how, _ := strings.Cut(what, " ")
	i := slices.IndexFunc(s.Open, func(t OpenTask) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("%s is not open", name)
	}
	agent := s.Open[i].Agent
	a := s.Agents[agent]
	a.Failed = how != "completed"
	a.Good = a.Good || how == "completed"
	s.Agents[agent] = a
	s.Open = slices.Delete(s.Open, i, i+1)
	return nil
}

// describe formats a task in a few lines: its agent, its dependencies and its prompt, with
// references in ‹›.
func describe(t swarm.Task, f *Fragment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by @%s", t.Name, t.Agent)
	if t.Model != "" {
		fmt.Fprintf(&b, " with %s", t.Model)
	}
	for _, d := range t.DependsOn {
		fmt.Fprintf(&b, ", after %s (%s)", d.Task, d.Condition)
	}
	for _, a := range t.Awaits {
		fmt.Fprintf(&b, ", awaits @%s", a)
	}
	if t.WaitTimeout > 0 {
		fmt.Fprintf(&b, ", at most %s", t.WaitTimeout)
	}
	b.WriteByte('\n')
	for _, body := range f.Bodies {
		if swarm.HashOf(body) != t.Prompt {
			continue
		}
		tmpl, err := prompt.Unmarshal(body)
		if err != nil {
			return err.Error()
		}
		var text strings.Builder
		for _, p := range tmpl.Parts {
			switch {
			case p.Kind == prompt.KindText:
				text.WriteString(p.Text)
			case p.Task != "":
				text.WriteString("‹" + p.Name + ": " + p.Task + "›")
			default:
				text.WriteString("‹" + p.Name + "›")
			}
		}
		for line := range strings.Lines(text.String()) {
			b.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}

// TestSessions plays the sessions in testdata. `> ` starts a line that is entered, `= ` the end of
// a task, `# ` a comment. All other lines are the expected result.
func TestSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.session")
	if err != nil || len(files) == 0 {
		t.Fatal("no sessions", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".session"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &session{Standing{Agents: map[string]AgentStanding{}}, team}
			var got strings.Builder
			for line := range strings.Lines(string(want)) {
				line = strings.TrimSuffix(line, "\n")
				switch {
				case strings.HasPrefix(line, "> "):
					got.WriteString(line + "\n" + s.enter(line[2:]))
				case strings.HasPrefix(line, "= "):
					got.WriteString(line + "\n")
					if err := s.end(line[2:]); err != nil {
						t.Fatal(err)
					}
				case strings.HasPrefix(line, "# "), line == "":
					got.WriteString(line + "\n")
				}
			}
			if got.String() == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got\n%s\nwant\n%s", got.String(), want)
		})
	}
}

// TestFragment shows a whole fragment, as it is stored.
func TestFragment(t *testing.T) {
	l, err := Parse("@pm,ba --model large Write -> @notify Written -> @builder-1 Build $pm", team)
	if err != nil {
		t.Fatal(err)
	}
	s := Standing{Agents: map[string]AgentStanding{"pm": {Tasks: 1}}, Open: []OpenTask{{Name: "pm_1", Agent: "pm"}}}
	f, err := l.Plan(s, options(team))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f.Plan); err != nil {
		t.Fatal(err)
	}
	for _, body := range f.Bodies {
		got.WriteString(string(swarm.HashOf(body)) + " " + string(body) + "\n")
	}
	const file = "testdata/fragment.golden"
	want, err := os.ReadFile(file)
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if err != nil || got.String() != string(want) {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got.String(), want)
	}
	if again, _ := l.Plan(s, options(team)); !reflect.DeepEqual(f, again) {
		t.Error("the same line, planned twice where the session stands the same, is not the same")
	}
	if want := []string{"pm_2", "ba_1", "notify_1", "builder-1_1"}; !slices.Equal(f.Tasks, want) {
		t.Errorf("tasks %v, not %v", f.Tasks, want)
	}
}

// TestAnAgentWithoutProviderIsRefused checks that a line for an agent without a provider is refused as a whole.
func TestAnAgentWithoutProviderIsRefused(t *testing.T) {
	l, err := Parse("@pm Plan -> @ba Write", team)
	if err != nil {
		t.Fatal(err)
	}
	o := options(team)
	delete(o.Agents, "ba")
	f, err := l.Plan(Standing{}, o)
	var e *Error
	if f != nil || !errors.As(err, &e) || e.picture(l.Text) != "@pm Plan -> @ba Write\n            ^^^" {
		t.Errorf("%v, %v", f, err)
	}
}
