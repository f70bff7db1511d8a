package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/yamlfile"
)

// valid is a file with a little of everything. Its own golden file uses all of it.
func valid(t testing.TB) string {
	raw, err := os.ReadFile("testdata/contract.golden")
	if err != nil {
		t.Fatal(err)
	}
	src, _, _ := strings.Cut(string(raw), dashes)
	return src
}

// TestEveryPrefix cuts a valid file after every byte. The rest is valid, or refused with a place.
// If the end is missing, the error names the last line.
func TestEveryPrefix(t *testing.T) {
	src := valid(t)
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 0; n < len(src); n += step {
		o, _ := options(src[:n])
		_, err := Compile(o)
		errs, _ := Check(o)
		if (err == nil) != (len(errs) == 0) {
			t.Fatalf("after %d bytes: Compile says %v, Check %v", n, err, errs)
		}
		if err == nil {
			continue
		}
		e, ok := err.(*swarm.Error)
		if !ok || swarm.ExitCode(err) != swarm.ExitBadInput || e.Msg == "" {
			t.Fatalf("after %d bytes: %#v", n, err)
		}
		if e.File != "swarm.yaml" || e.Line < 1 || e.Line > max(1, yamlfile.Lines([]byte(src[:n]))) {
			t.Fatalf("after %d bytes: no place in the file: %v", n, e)
		}
		stops := yamlfile.Lines([]byte(src[:n]))
		if n > 0 && src[n-1] != '\n' && e.Line != stops && !strings.Contains(e.Hint, fmt.Sprintf("ends in line %d without a newline", stops)) {
			t.Fatalf("after %d bytes: the file stops in line %d, and that is not said: %v (%s)", n, stops, e, e.Hint)
		}
	}
}

// TestFirstErrorIsOneOfAll compares Compile and Check: the error of Compile is among those of
// Check.
func TestFirstErrorIsOneOfAll(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.golden")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		src, _, _ := strings.Cut(string(raw), dashes)
		o, _ := options(src)
		_, err = Compile(o)
		errs, _ := Check(o)
		if err == nil {
			if len(errs) > 0 && len(o.Select) > 0 {
				t.Errorf("%s: Compile finds nothing, Check %v", file, errs[0])
			}
			continue
		}
		found := strings.Contains(err.Error(), "none is called main") // only a run has to choose
		for _, e := range errs {
			found = found || e.Error() == err.Error()
		}
		if !found {
			t.Errorf("%s: Check does not find %v", file, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.golden")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		src, _, _ := strings.Cut(string(raw), dashes)
		f.Add([]byte(src), "tasks.a.retries=2")
	}
	f.Fuzz(func(t *testing.T, src []byte, set string) {
		for _, sets := range [][]string{nil, {set}} {
			o := Options{File: "swarm.yaml", Source: src, Prompts: folder{}, Dir: "/here", Set: sets, Provider: "codex"}
			b, err := Compile(o)
			errs, warnings := Check(o)
			if err == nil && len(b.Plan.Tasks) > maxTasks {
				t.Fatal("too many tasks")
			}
			for _, e := range append(errs, warnings...) {
				if e.Msg == "" && e.Err == nil || strings.Contains(e.Msg, "%!") {
					t.Fatalf("an error that says nothing, or badly: %#v", e)
				}
			}
			if err == nil {
				checkPlan(t, b)
			}
		}
	})
}

// checkPlan checks the invariants of a plan: names exist, and texts are there.
func checkPlan(t *testing.T, b *Bundle) {
	t.Helper()
	bodies := map[swarm.Hash]bool{"": true}
	for _, body := range b.Bodies {
		bodies[swarm.HashOf(body)] = true
	}
	tasks, agents, providers := map[string]bool{}, map[string]bool{}, map[string]bool{"": len(b.Plan.Tasks) == 0}
	for _, p := range b.Plan.Providers {
		providers[p.Name] = true
	}
	for _, a := range b.Plan.Agents {
		if agents[a.Name] || !providers[a.Provider] || !bodies[a.Role] {
			t.Fatalf("agent %+v", a)
		}
		agents[a.Name] = true
	}
	for _, task := range b.Plan.Tasks {
		if tasks[task.Name] || task.Prompt == "" || !bodies[task.Prompt] || !agents[task.Agent] || task.Group >= len(b.Plan.Groups) {
			t.Fatalf("task %+v", task)
		}
		tasks[task.Name] = true
	}
	for _, task := range b.Plan.Tasks {
		for _, d := range task.DependsOn {
			if !tasks[d.Task] || d.Task == task.Name {
				t.Fatalf("task %s depends on %q", task.Name, d.Task)
			}
		}
	}
	for _, e := range b.Plan.Edges {
		if !agents[e.From] || !agents[e.To] {
			t.Fatalf("edge %+v", e)
		}
	}
}
