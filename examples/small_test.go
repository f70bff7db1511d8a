package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
)

// TestSmallExamples runs the commands in the README of each small example as a reader would: in a copy of its folder,
// without a key and without a coding agent.
func TestSmallExamples(t *testing.T) {
	for name, want := range map[string]string{
		"pipeline":      "APPROVED: 1900 is none",
		"loop":          "\n20\n",
		"team":          "reported: roman.go prints Roman numerals",
		"repl":          "reviewer | APPROVED",
		"coding-agents": "APPROVE: it greets by name",
		"local-model":   "GOOD: 5, 7, 5",
		"review":        "CHANGES: return the error of Close",
		"ci":            "APPROVE: the change is small",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := filepath.Join(name, "README.md")
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if _, picture, found := strings.Cut(string(text), "]("); !found {
				t.Errorf("%s has no picture", page)
			} else if picture, _, _ := strings.Cut(picture, ")"); !exists(filepath.Join(name, picture)) {
				t.Errorf("%s: there is no %s; `make pictures` makes it", page, picture)
			}
			commands := blocks(t, page, "sh")
			if len(commands) != 1 {
				t.Fatalf("%s has %d blocks of commands", page, len(commands))
			}
			dir := copyOf(t, name)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd := exec.CommandContext(ctx, "sh", "-e")
			cmd.Stdin = strings.NewReader(commands[0])
			cmd.Dir, cmd.WaitDelay = dir, time.Second
			cmd.Env = append(os.Environ(), "HOME="+dir, "SWARM_HOME="+filepath.Join(dir, ".home"), "PATH="+filepath.Dir(program(t))+":/usr/bin:/bin")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, and there has to be %q in\n%s", err, want, out)
			}
		})
	}
}

// TestLocalModelExample runs the example with a model server on this machine. With UPDATE_CASSETTE in the environment it makes
// the recording anew.
func TestLocalModelExample(t *testing.T) {
	models := modeltest.StartCues(
		modeltest.Cue{When: "Count its syllables", Answers: []modeltest.Answer{{Text: "An old silent log: 5. One line falls into the file: 7. The disk makes a sound: 5.\nGOOD: 5, 7, 5"}}},
		modeltest.Cue{When: "Write a haiku", Answers: []modeltest.Answer{{Text: "An old silent log\nOne line falls into the file\nThe disk makes a sound"}}},
	)
	defer models.Close()
	dir := copyOf(t, "local-model")
	if out, err := command(t, dir, "up", "--record", "new.cassette", "--set", "providers.local.base_url="+models.URL+"/v1").CombinedOutput(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, out)
	}
	keepCassette(t, filepath.Join(dir, "new.cassette"), "local-model/local.cassette")
}

// TestRealCodingAgents runs the example with the real Claude Code and the real Codex; only their models stand on this machine.
// With UPDATE_CASSETTE in the environment it makes the recording anew.
func TestRealCodingAgents(t *testing.T) {
	claude, codex := npmtest.Path(t, npmtest.Claude, "claude"), npmtest.Path(t, npmtest.Codex, "codex")
	dir := copyOf(t, "coding-agents")
	models := modeltest.StartCues(
		modeltest.Cue{When: "SWARM_TASK_ID is review", Answers: []modeltest.Answer{{Text: "APPROVE: it greets by name, and the world without one."}}},
		modeltest.Cue{When: "SWARM_TASK_ID is code", Answers: []modeltest.Answer{
			{Text: "I write greet.sh.", Calls: []modeltest.Call{{Name: "Write", Args: `{"file_path":"` + dir + `/greet.sh","content":"echo \"Hello, ${1:-world}!\"\n"}`}}},
			{Text: "greet.sh greets its first argument, or the world."},
		}},
	)
	defer models.Close()
	writeFiles(t, dir, map[string]string{".codex/config.toml": `model = "gpt-5.4"
model_provider = "local"
[model_providers.local]
name = "local"
wire_api = "responses"
env_key = "CODEX_API_KEY"
base_url = "` + models.URL + `/v1"
`})
	cmd := command(t, dir, "up", "--record", "new.cassette")
	cmd.Env = append(cmd.Env, "HOME="+dir, "CODEX_HOME="+filepath.Join(dir, ".codex"), "PATH="+filepath.Dir(claude)+":"+filepath.Dir(codex)+":"+os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL="+models.URL, "ANTHROPIC_API_KEY=sk-canary-a", "CODEX_API_KEY=sk-canary-b", "OPENAI_API_KEY=sk-canary-b",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, out)
	}
	keepCassette(t, filepath.Join(dir, "new.cassette"), "coding-agents/agents.cassette")
}

// keepCassette makes a new recording the one of an example, if it is asked for. A recording holds no key and no path of this machine.
func keepCassette(t *testing.T, recorded, place string) {
	t.Helper()
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "sk-canary") {
		t.Error("the recording holds a key")
	}
	if os.Getenv("UPDATE_CASSETTE") != "" {
		if err := os.WriteFile(place, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
