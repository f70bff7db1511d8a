package compose

import (
	"strings"
	"testing"
)

func TestTeam(t *testing.T) {
	const provider = "provider: codex\n"
	for _, c := range []struct{ name, file, want string }{
		{"those that are declared", provider + "agents: {b: {}, a: {model: x}}\ntasks: {c: {prompt-string: x}}\n", "b a"},
		{"those that tasks name or are", provider + "tasks: {t_1: {prompt-string: x}, u: {agent: b, prompt-string: x}, v: {agent: b, prompt-string: x}}\n", "t-1 b"},
		{"the usual ones", provider + "max_parallel: 3\n", "pm ba builder-1 builder-2 reviewer writer"},
		{"without a file", "", "pm ba builder-1 builder-2 reviewer writer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := CompileTeam(Options{File: "swarm.yaml", Source: []byte(c.file), Provider: "codex", Prompts: folder{}})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, a := range b.Plan.Agents {
				if names = append(names, a.Name); a.Provider != "codex" {
					t.Errorf("%s has the provider %q", a.Name, a.Provider)
				}
			}
			if got := strings.Join(names, " "); got != c.want || len(b.Plan.Tasks) > 0 {
				t.Errorf("got %s and %d tasks, want %s", got, len(b.Plan.Tasks), c.want)
			}
		})
	}
	if _, err := CompileTeam(Options{File: "swarm.yaml", Prompts: folder{}}); err == nil || !strings.Contains(err.Error(), "provider") {
		t.Errorf("a team that nobody can reach: %v", err)
	}
}

// noRoles are Prompts that no agent's name stands for. Reading one of them makes an error with a
// hint, for which all prompts are listed, so nothing may be read just to see that it is missing.
type noRoles struct {
	folder
	t *testing.T
}

func (noRoles) HasPrompt(string) bool { return false }

func (n noRoles) Prompt(name string) (string, []byte, error) {
	n.t.Errorf("the prompt %s was read", name)
	return n.folder.Prompt(name)
}

func TestMissingRoleIsNotRead(t *testing.T) {
	o := Options{File: "swarm.yaml", Source: []byte("agents: {a: {}}\n"), Provider: "codex", Prompts: noRoles{t: t}}
	if _, err := CompileTeam(o); err != nil {
		t.Error(err)
	}
}
