//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarm"
)

// The tests in this file damage the log of a run and then use the commands, as a person would who
// does not know of the damage. A command prints what it printed before, or it fails.

// damagePlace is a folder with a pipeline of three tasks and two iterations, and mail between them.
func damagePlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, dir: t.TempDir()}
	p.home = filepath.Join(p.dir, "home")
	p.check(os.Mkdir(filepath.Join(p.dir, "swarm"), 0o700))
	p.check(os.WriteFile(filepath.Join(p.dir, "swarm", "swarm.yaml"), []byte(`
provider: sh
providers:
  sh: {kind: command, command: [sh, agent.sh]}
agents: {boss: {}, coder: {}, tester: {}}
edges: ["boss -> coder"]
tasks:
  a: {agent: boss, prompt-string: "plan {{output:c}}"}
  b: {agent: coder, prompt-string: "code {{output:a}}", depends_on: [a]}
  c: {agent: tester, prompt-string: "test {{output:b}}", depends_on: [b]}
pipelines:
  main: {tasks: [a, b, c], iterations: 2}
`), 0o600))
	p.check(os.WriteFile(filepath.Join(p.dir, "agent.sh"), []byte(`
echo "$SWARM_TURN_ID" >> ledger
while [ "$SWARM_TURN_ID" = c/2/1 ] && [ -e hold ]; do sleep 0.01; done
cat > /dev/null
[ "$SWARM_AGENT" != boss ] || swarm send @coder "pay 100 to alice" > /dev/null
for i in 1 2 3 4 5 6 7 8 9; do echo "line $i of $SWARM_TURN_ID: pay 100 to alice"; done
`), 0o600))
	return p
}

// commandsOf are the commands that read a run.
func commandsOf(run string) [][]string {
	all := [][]string{{"show", run, "--json", "--prompt"}, {"show", run}, {"attach", run, "--json"}, {"mail", "--run", run, "--json"},
		{"logs", run}, {"why", run, "c"}, {"ls", "--json"}}
	for _, task := range []string{"a", "b", "c"} {
		all = append(all, []string{"out", run, task}, []string{"out", run, task, "--iteration", "1"}, []string{"show", run, "--turn", task, "--prompt"})
	}
	return all
}

// ages are parts of what is printed that change with the time.
var ages = regexp.MustCompile(`((\d+[dhms])+ ago|now) *`)

// inProcess runs a command in this process, which is much faster than to start the program. It is
// for commands that start no agents: with its first job this process would become the parent of all
// orphans of the tests beside it, which wait until those are gone.
func (p *place) inProcess(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = execute(args, os.Stdin, &out, &errs)
	return ages.ReplaceAllString(out.String(), "just now"), errs.String(), code
}

// enter makes a place the current folder of this process.
func (p *place) enter() {
	p.Chdir(p.dir)
	p.Setenv("SWARM_HOME", p.home)
	p.Setenv("NO_COLOR", "1")
}

// restore puts the state folder back to what it was.
func (p *place) restore(from string) {
	p.Helper()
	p.check(os.RemoveAll(p.home))
	p.check(os.CopyFS(p.home, os.DirFS(from)))
	p.check(filepath.WalkDir(p.home, func(path string, e fs.DirEntry, err error) error { // CopyFS makes folders that others can read
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}))
}

func TestDamageIsNeverPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	p := damagePlace(t)
	p.runs(0, "up")
	id := p.list()[0].ID
	good := filepath.Join(p.dir, "good")
	p.check(os.Rename(p.home, good))
	p.restore(good)
	p.enter()
	commands := commandsOf(id)
	want := map[string]string{}
	for _, args := range commands {
		out, errs, code := p.inProcess(args...)
		if code != 0 || out == "" {
			t.Fatalf("%v exits with %d: %s", args, code, errs)
		}
		want[strings.Join(args, " ")] = out
	}
	for _, end := range []string{".db", ".jsonl"} {
		file := filepath.Join("runs", id+end)
		bytes, err := os.ReadFile(filepath.Join(good, file))
		p.check(err)
		count := map[string]int{}
		for i := range times(5, 40, 2000) {
			p.restore(good)
			bad, r := slices.Clone(bytes), rand.New(rand.NewPCG(uint64(i), 3))
			at, bit := r.IntN(len(bad)), r.IntN(8)
			bad[at] ^= 1 << bit
			p.check(os.WriteFile(filepath.Join(p.home, file), bad, 0o600))
			how := "same"
			for _, args := range commands {
				out, errs, code := p.inProcess(args...)
				switch {
				case code == 0 && args[0] == "ls" && strings.Contains(out, id) && strings.Contains(out, "damaged"):
					how = "refused"
				case code == 0 && out != want[strings.Join(args, " ")]:
					how = "SILENT"
					t.Errorf("bit %d of byte %d of %s: %v prints\n%s", bit, at, end, args, out)
				case code != 0 && how == "same":
					how = "refused"
					if !strings.Contains(errs, "damaged") || !strings.Contains(errs, "swarm db check "+id) {
						t.Errorf("bit %d of byte %d of %s: %v says %s", bit, at, end, args, errs)
					}
				}
			}
			count[how]++
			if end == ".jsonl" && how != "same" {
				t.Errorf("bit %d of byte %d of the summary: %s", bit, at, how)
			}
			if now, err := os.ReadFile(filepath.Join(p.home, file)); how == "refused" && (err != nil || string(now) != string(bad)) {
				t.Errorf("bit %d of byte %d of %s: the damaged log was changed (%v)", bit, at, end, err)
			}
		}
		t.Logf("%s, %d bytes, %d commands each: %v", end, len(bytes), len(commands), count)
	}
}

// TestDamageOfAKilledRun kills a run, damages its write-ahead log, and resumes it. Turns whose end
// was acknowledged are never run again, unless the log is recovered first.
func TestDamageOfAKilledRun(t *testing.T) {
	p := damagePlace(t)
	hold := filepath.Join(p.dir, "hold")
	p.check(os.WriteFile(hold, nil, 0o600))
	d := p.drives("up")
	for ends := 0; ends < 5; { // of six turns
		e, ok := d.says()
		if !ok {
			t.Fatal("the run ended before it was killed")
		}
		if e.Kind == swarm.TurnEnded {
			ends++
		}
	}
	p.check(d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	p.check(os.Remove(hold))
	good := filepath.Join(p.dir, "good")
	p.check(os.Rename(p.home, good))
	files, err := filepath.Glob(filepath.Join(good, "runs", "*.db-wal"))
	p.check(err)
	if len(files) != 1 {
		t.Fatalf("the killed run left %q", files)
	}
	id := strings.TrimSuffix(filepath.Base(files[0]), ".db-wal")
	wal, err := os.ReadFile(files[0])
	p.check(err)
	ledger, err := os.ReadFile(filepath.Join(p.dir, "ledger"))
	p.check(err)
	p.restore(good)
	p.enter()
	ended := p.ended(id)
	count := map[string]int{}
	for i := range times(5, 40, 500) {
		p.restore(good)
		p.check(os.WriteFile(filepath.Join(p.dir, "ledger"), ledger, 0o600))
		bad, r := slices.Clone(wal), rand.New(rand.NewPCG(uint64(i), 4))
		at := r.IntN(len(bad))
		switch i % 3 {
		case 0:
			bad[at] ^= 1 << r.IntN(8)
		case 1:
			bad = bad[:at]
		case 2:
			for j := at; j < min(at+4096, len(bad)); j++ {
				bad[j] = byte(r.Uint32())
			}
		}
		p.check(os.WriteFile(filepath.Join(p.home, "runs", id+".db-wal"), bad, 0o600))
		_, _, code := p.inProcess("show", id, "--json")
		_, errs, resumed := p.try("resume", id)
		how := "resumed"
		if resumed != 0 {
			how = "refused"
			if !strings.Contains(errs, "damaged") {
				t.Errorf("number %d, at %d of %d: resume says %s", i, at, len(wal), errs)
			}
			if code == 0 && i%3 != 1 {
				t.Errorf("number %d, at %d of %d: the log is shown and not resumed", i, at, len(wal))
			}
		}
		now, err := os.ReadFile(filepath.Join(p.dir, "ledger"))
		p.check(err)
		for _, turn := range strings.Fields(strings.TrimPrefix(string(now), string(ledger))) {
			if ended[turn] {
				how = "SILENT"
				t.Errorf("number %d, at %d of %d: %s had ended, and is run again", i, at, len(wal), turn)
			}
		}
		if how == "refused" {
			how = "refused, recovered and resumed"
			if out, errs, code := p.inProcess("db", "recover", id, "--yes"); code != 0 {
				how = "refused, nothing is left" // The write-ahead log is cut before the first event.
				if !strings.Contains(errs, "not even its first event") {
					t.Errorf("number %d: it is not recovered: %s%s", i, out, errs)
				}
			} else if out, errs, code := p.try("resume", id); code != 0 {
				how = "refused, recovered, a text is lost"
				if !strings.Contains(errs, swarm.ErrNoBody.Error()) {
					t.Errorf("number %d: the recovered run is not resumed: %s%s", i, out, errs)
				}
			}
		}
		count[how]++
	}
	t.Logf("%d turns had ended; a write-ahead log of %d bytes: %v", len(ended), len(wal), count)
}

// ended returns the turns whose end is in the log.
func (p *place) ended(id string) map[string]bool {
	p.Helper()
	out, errs, _ := p.inProcess("attach", id, "--json") // The exit code is the run's, which was interrupted.
	ended := map[string]bool{}
	for line := range strings.Lines(out) {
		var e struct {
			Kind swarm.EventKind
			Turn string
		}
		p.check(json.Unmarshal([]byte(line), &e))
		if e.Kind == swarm.TurnEnded {
			ended[e.Turn] = true
		}
	}
	if len(ended) == 0 {
		p.Fatalf("no turn has ended: %s%s", out, errs)
	}
	return ended
}
