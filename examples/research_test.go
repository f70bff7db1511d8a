package examples_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestSwarmPage runs the command that docs/swarm.md begins with. Its answer and its lines are those of
// the page, except for the names of agents, the run's id, and figures of time and tokens.
func TestSwarmPage(t *testing.T) {
	const page = "../docs/swarm.md"
	_, query, _ := strings.Cut(blocks(t, page, "sh")[0], `swarm solve "`)
	query, _, found := strings.Cut(query, `"`)
	shown := blocks(t, page, "text")
	if !found || len(shown) != 2 {
		t.Fatalf("%s begins with no command, or does not show its lines and its answer", page)
	}
	dir := copyOf(t, "research")
	cmd := command(t, dir, "solve", query)
	var out, lines bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &lines
	if err := cmd.Run(); err != nil {
		t.Fatalf("swarm solve: %v\n%s", err, &lines)
	}
	if out.String() != shown[1] {
		t.Errorf("the answer is\n%s\nthe page has\n%s", &out, shown[1])
	}
	agents := agentsOf(t, dir)
	for name, subtask := range map[string]string{"harajuku": "raft", "yoyogi": "paxos", "shinjuku": "zab"} {
		shown[0] = strings.ReplaceAll(shown[0], name, agents[subtask])
	}
	got := comparable(lines.String())
	for line := range strings.Lines(shown[0]) {
		if line = comparable(line); line != "…" && !strings.Contains(got, line) {
			t.Errorf("the page has the line %q, and swarm solve printed\n%s", line, &lines)
		}
	}
	// Each reference of the answer leads to the document that it comes from.
	for subtask, want := range map[string]string{"raft/1": "Diego Ongaro", "paxos/2": "Part-Time Parliament", "zab/1": "Apache ZooKeeper"} {
		name, iteration, _ := strings.Cut(subtask, "/")
		text, err := command(t, dir, "show", "@last", "--turn", agents[name]+"/"+iteration).CombinedOutput()
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("swarm show does not have what is behind [%s]: %v\n%s", subtask, err, text)
		}
	}
}

var (
	runID   = regexp.MustCompile(`\d{8}-\d{6}-[a-z0-9]{7}`)
	figures = regexp.MustCompile(`· \S+ · ~\S+ tokens( · \d+ % of them for coordination)?`)
)

// comparable is a text without what differs from run to run.
func comparable(text string) string {
	text = figures.ReplaceAllString(runID.ReplaceAllString(text, "RUN"), "FIGURES")
	return strings.Join(strings.Fields(text), " ")
}

// agentsOf returns the agents of the last swarm by their subtasks.
func agentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := command(t, dir, "show", "@last", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		Tasks []struct {
			Agent   string
			Subtask struct{ ID string }
		}
	}
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	agents := map[string]string{}
	for _, task := range run.Tasks {
		agents[task.Subtask.ID] = task.Agent
	}
	return agents
}
