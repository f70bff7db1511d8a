package session

import (
	"regexp"
	"strings"
	"testing"

	"swarm/internal/line"
)

// The examples of /help are lines that this session takes.
func TestHelpHasTheSessionsOwnAgents(t *testing.T) {
	for _, agents := range [][]string{{"claude", "codex"}, {"pm", "ba", "builder-1"}, {"a-very-long-name-of-an-agent"}} {
		text, err := help("", agents)
		if err != nil {
			t.Fatal(err)
		}
		examples, _, _ := strings.Cut(text, "\n\n")
		for _, row := range strings.Split(examples, "\n") {
			example := regexp.MustCompile(` {2,}`).Split(row, 2)[0]
			if strings.HasPrefix(example, "#") {
				continue
			}
			if _, err := line.Parse(example, line.Team{Agents: agents, Default: agents[0]}); err != nil {
				t.Errorf("%q: %v", example, err)
			}
		}
		for _, want := range agents[:min(2, len(agents))] {
			if !strings.Contains(examples, "@"+want+" ") {
				t.Errorf("@%s is not in\n%s", want, examples)
			}
		}
		if refs, _ := help("references", agents); !strings.Contains(refs, "$"+agents[0]+" ") || strings.Contains(refs, "$ ") {
			t.Errorf("references of %q:\n%s", agents, refs)
		}
	}
}
