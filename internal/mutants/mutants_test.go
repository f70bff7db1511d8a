package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant breaks one promise.
type mutant struct {
	promise string // what is promised, and broken here
	file    string // from the module's root
	old     string // stands in the file once
	new     string
	pkg     string // where the test is that must fail
	test    string // as for -run
	when    when
}

// when says which runs have a mutant.
type when int

const (
	quick when = iota // `make test` runs it, too
	slow              // only `make mutants`
	long              // only `make mutants`, and its test needs SWARM_TEST_LONG
)

const root = "../.."

// TestEveryMutantIsAChange checks that the text that a mutant replaces is still there.
func TestEveryMutantIsAChange(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.promise] {
			t.Errorf("two mutants are called %q", m.promise)
		}
		seen[m.promise] = true
		if _, err := m.source(); err != nil {
			t.Errorf("%s: %v", m.promise, err)
		}
	}
}

// source returns the changed file.
func (m mutant) source() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, errors.New("the text stands " + map[bool]string{true: "no longer", false: "more than once"}[n == 0] + " in " + m.file +
			": write in internal/mutants/list_test.go what is to be replaced now\n" + m.old)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// TestMutants demands that each mutant is found by its test. SWARM_TEST_MUTANTS=all runs all of them.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles packages")
	}
	for _, m := range all {
		if m.when != quick && os.Getenv("SWARM_TEST_MUTANTS") == "" {
			continue
		}
		t.Run(m.promise, func(t *testing.T) {
			began := time.Now()
			passes, out := m.run(t, "")
			if !passes {
				t.Fatalf("the test fails without the change:\n%s", end(out))
			}
			passes, out = m.run(t, m.overlay(t))
			switch {
			case passes:
				t.Errorf("%s %s passes although the promise is broken", m.pkg, m.test)
			case !strings.Contains(out, "--- FAIL: ") && !strings.Contains(out, "panic: test timed out"): // a wait that never ends is found, too
				t.Errorf("no test failed, but something else did:\n%s", end(out))
			default:
				t.Logf("found in %.1f s", time.Since(began).Seconds())
			}
		})
	}
}

// overlay writes the changed file beside the tree, which stays as it is.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	source, err := m.source()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, file := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	where, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {where: changed}})
	if err = errors.Join(err, os.WriteFile(changed, source, 0o600), os.WriteFile(file, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs the mutant's test.
func (m mutant) run(t *testing.T, overlay string) (passes bool, out string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
	defer stop()
	patience := "1m"
	if m.when == long {
		patience = "10m"
	}
	args := []string{"test", "-v", "-vet=off", "-timeout", patience, "-run", m.test}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+m.pkg)...)
	cmd.Dir = root
	if m.when == long {
		cmd.Env = append(os.Environ(), "SWARM_TEST_LONG=1")
	}
	text, err := cmd.CombinedOutput()
	out = string(text)
	if err == nil && !strings.Contains(out, "--- PASS: ") {
		t.Skipf("no test %s was run in %s:\n%s", m.test, m.pkg, end(out))
	}
	return err == nil, out
}

// end returns the end of a text.
func end(text string) string { return text[max(0, len(text)-3000):] }
