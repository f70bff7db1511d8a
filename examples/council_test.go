package examples_test

import (
	"bytes"
	"strings"
	"testing"
)

// TestCouncilOfSwarmPage runs the council that docs/swarm.md shows. Its lines are those of the page,
// except for the names of agents and the run's id.
func TestCouncilOfSwarmPage(t *testing.T) {
	shown := blocks(t, "../docs/swarm.md", "console")
	if len(shown) != 1 {
		t.Fatalf("docs/swarm.md shows %d councils", len(shown))
	}
	command0, want, _ := strings.Cut(shown[0], "\n")
	_, query, _ := strings.Cut(command0, `solve "`)
	query, _, _ = strings.Cut(query, `"`)
	dir := copyOf(t, "council")
	cmd := command(t, dir, "solve", query)
	var out, lines bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &lines
	if err := cmd.Run(); err != nil {
		t.Fatalf("swarm solve: %v\n%s", err, &lines)
	}
	agents := agentsOf(t, dir)
	for name, subtask := range map[string]string{"takao": "m1", "kamata": "m2", "omori": "m3"} {
		want = strings.ReplaceAll(want, name, agents[subtask])
	}
	got := comparable(lines.String() + out.String())
	for line := range strings.Lines(want) {
		if line = comparable(line); line != "…" && !strings.Contains(got, line) {
			t.Errorf("the page has the line %q, and swarm solve printed\n%s%s", line, &lines, &out)
		}
	}
}
