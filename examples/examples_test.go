// Package examples_test runs the examples with the real program, as a reader would.
package examples_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A report is what `swarm show --json` says, as far as it is looked at here.
type report struct {
	Turns []struct{ ID, Status string }
}

func TestMedianFailsAndIsMended(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	needsNode(t)
	dir := copyOf(t, "median")
	if out, err := command(t, dir, "up").CombinedOutput(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, out)
	}
	first, second := status(t, dir, "tester/1/1"), status(t, dir, "tester/2/1")
	if first != "failed" || second != "completed" {
		t.Errorf("the tester is %s in iteration 1 and %s in iteration 2; want failed, then completed", first, second)
	}
}

// TestMedianNeedsTheEvaluator: the coder mends its code because of what it reads, and for no other reason.
func TestMedianNeedsTheEvaluator(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	needsNode(t)
	dir := copyOf(t, "median")
	prompt := filepath.Join(dir, "swarm", "prompts", "coder.md")
	text, err := os.ReadFile(prompt)
	if err != nil {
		t.Fatal(err)
	}
	deaf := strings.ReplaceAll(string(text), "{{output:evaluator}}", "")
	if deaf == string(text) {
		t.Fatal("the coder's prompt does not hold the evaluator's output")
	}
	if err := os.WriteFile(prompt, []byte(deaf), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, dir, "up").CombinedOutput()
	if code := exitCode(err); code != 1 {
		t.Fatalf("swarm up exits with %d, want 1: nobody told the coder what is wrong\n%s", code, out)
	}
	if got := status(t, dir, "tester/2/1"); got != "failed" {
		t.Errorf("the tester is %s in iteration 2, want failed", got)
	}
}

func status(t *testing.T, dir, turn string) string {
	t.Helper()
	out, err := command(t, dir, "show", "@last", "--json").Output()
	if err != nil {
		t.Fatalf("swarm show: %v", err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("swarm show: %v\n%s", err, out)
	}
	for _, x := range r.Turns {
		if x.ID == turn {
			return x.Status
		}
	}
	t.Fatalf("there is no turn %s\n%s", turn, out)
	return ""
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func needsNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("the agents of this example are Node programs, and there is no Node here")
	}
}

// copyOf is a copy of an example, because agents write into the folder that they work in.
func copyOf(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(name)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// command is the program, about to be called in a folder that is its home too.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SWARM_HOME="+filepath.Join(dir, ".home"))
	return cmd
}

// program is the path of swarm, built once.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(temp, "swarm")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", program, "swarm/cmd/swarm").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

var temp string // for what all tests share

func TestMain(m *testing.M) {
	var err error
	if temp, err = os.MkdirTemp("", "swarm-examples."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(temp)
	os.Exit(code)
}
