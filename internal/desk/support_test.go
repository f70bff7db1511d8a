package desk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// times is how often something is tried: usually, with -short less often, and when the tests are long.
func times(short, usual, most int) int {
	switch {
	case os.Getenv("SWARM_TEST_LONG") != "":
		return most
	case testing.Short():
		return short
	}
	return usual
}

// clock is the time of tests in which none passes.
var clock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newDesk makes a desk with instructions that say little.
func newDesk(t testing.TB) *Desk {
	t.Helper()
	d, _, err := Create(filepath.Join(t.TempDir(), "desk"), Setup{Skill: "# Writer\n", Instructions: Instructions{Task: "t", Objective: "o"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// put writes a file of the desk, as a worker does.
func put(t testing.TB, d *Desk, name, text string) {
	t.Helper()
	file := filepath.Join(d.Path(), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, d *Desk, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.Path(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func contains(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
}
