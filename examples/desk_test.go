package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeskExample: a shell script and a Python program pass files on, each at its desk.
func TestDeskExample(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	dir := copyOf(t, "desk")
	if out, err := command(t, dir, "up").CombinedOutput(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, out)
	}
	out, err := command(t, dir, "out", "@last", "report").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "south has sold the most: 51.") {
		t.Errorf("swarm out: %v\n%s", err, out)
	}
	out, err = command(t, dir, "show", "@last", "--turn", "report").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "[x] The best shop is named") || !strings.Contains(string(out), filepath.Join("outbox", "report.md")) {
		t.Errorf("swarm show: %v\n%s", err, out)
	}
}
