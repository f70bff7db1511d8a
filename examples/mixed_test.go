package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
)

// The mixed team needs no program, no key and no network to be looked at: its recording is beside it.
func TestMixedTeamReplays(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	dir := copyOf(t, "mixed")
	cmd := command(t, dir, "up", "--replay", "mixed.cassette")
	cmd.Env = append(cmd.Env, "PATH=/nowhere")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, out)
	}
	wantMixedMail(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "roman.sh")); err == nil {
		t.Error("a replay has written roman.sh")
	}
}

// TestRealMixedTeam runs it with the real Claude Code and the real script; only the models stand on this machine. With
// UPDATE_CASSETTE in the environment it makes the recording anew.
func TestRealMixedTeam(t *testing.T) {
	claude := npmtest.Path(t, npmtest.Claude, "claude")
	dir := copyOf(t, "mixed")
	text, err := os.ReadFile(filepath.Join("testdata", "mixed-models.json"))
	if err != nil {
		t.Fatal(err)
	}
	cues, err := modeltest.ReadCues([]byte(strings.ReplaceAll(string(text), "DIR", dir)))
	if err != nil {
		t.Fatal(err)
	}
	models := modeltest.StartCues(cues...)
	defer models.Close()
	cmd := command(t, dir, "up", "--record", "new.cassette", "--set", "providers.openai.base_url="+models.URL+"/v1")
	cmd.Env = append(cmd.Env, "HOME="+dir, "PATH="+filepath.Dir(claude)+":"+os.Getenv("PATH"), "ANTHROPIC_BASE_URL="+models.URL, "ANTHROPIC_API_KEY=sk-canary-mixed",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, out)
	}
	wantMixedMail(t, dir)
	if out, err := exec.Command("sh", filepath.Join(dir, "roman.sh"), "2026").Output(); err != nil || string(out) != "MMXXVI\n" {
		t.Errorf("roman.sh 2026 says %q, %v", out, err)
	}
	recorded, err := os.ReadFile(filepath.Join(dir, "new.cassette"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(recorded), "sk-canary") {
		t.Error("the recording holds a key")
	}
	if os.Getenv("UPDATE_CASSETTE") != "" {
		if err := os.WriteFile(filepath.Join("mixed", "mixed.cassette"), recorded, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wantMixedMail wants the coder to have read the planner's mail, and the planner the coder's.
func wantMixedMail(t *testing.T, dir string) {
	t.Helper()
	out, err := command(t, dir, "show", "@last").CombinedOutput()
	if err != nil {
		t.Fatalf("swarm show: %v\n%s", err, out)
	}
	for _, want := range []string{"planner  coder    answered  code/1/1", "coder    planner  injected  judge/1/1"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}
