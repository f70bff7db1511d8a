//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/sqlite"
)

// The tests that use this file break the real program on purpose. They start it as another process,
// kill, stop or starve it, and compare its results with a ledger that agents keep outside its
// state.

// A stopped driver is replaced when its lease expires. Tests wait for that, so the lease is short.
func init() {
	if lease, err := time.ParseDuration(os.Getenv("SWARM_TEST_LEASE")); err == nil {
		run.Lease = lease
	}
}

// long says whether the tests have an hour and not a minute.
var long = os.Getenv("SWARM_TEST_LONG") != ""

// times is how often something is tried: with -short, usually, and when the tests are long.
func times(short, usual, most int) int {
	switch {
	case long:
		return most
	case testing.Short():
		return short
	}
	return usual
}

// A place is a folder with a pipeline and agents, and a state folder of its own.
type place struct {
	*testing.T
	dir, home string
	env       []string
	as        *syscall.Credential // the user who runs the program; nil = this one
	outs      map[string]string   // what outputs has found
}

// newPlace copies testdata/kill.
func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, dir: t.TempDir()}
	p.home = filepath.Join(p.dir, "home")
	p.check(os.CopyFS(p.dir, os.DirFS(filepath.Join("testdata", "kill"))))
	return p
}

func (p *place) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// swarm makes a call of the program. A call that hangs is made to print its goroutines.
func (p *place) swarm(args ...string) *exec.Cmd {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	p.Cleanup(stop)
	cmd := exec.CommandContext(ctx, "swarm", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.Dir = p.dir
	cmd.Env = append(append(os.Environ(), "SWARM_HOME="+p.home, "NO_COLOR=1", "GORACE=atexit_sleep_ms=0"), p.env...)
	if p.as != nil {
		cmd.Path, cmd.SysProcAttr = filepath.Join(p.dir, "bin", "swarm"), &syscall.SysProcAttr{Credential: p.as}
		cmd.Env = append(cmd.Env, "HOME="+p.dir, "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"))
	}
	return cmd
}

// runs runs the program, which must exit with a code, and returns what it said.
func (p *place) runs(code int, args ...string) (stdout, stderr string) {
	p.Helper()
	out, errs, got := p.try(args...)
	if got != code {
		p.Fatalf("swarm %s exited with %d, want %d:\n%s%s", strings.Join(args, " "), got, code, tail(out), tail(errs))
	}
	return out, errs
}

func (p *place) try(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	cmd := p.swarm(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// A listed is a run as `swarm ls` shows it.
type listed struct {
	ID     string
	Status swarm.Status
}

// list is what `swarm ls` says, the newest first.
func (p *place) list() (all []listed) {
	p.Helper()
	out, _ := p.runs(0, "ls", "--json")
	p.check(json.Unmarshal([]byte(out), &all))
	return all
}

// log reads the events of a run from a copy of its log. Opening the log itself would make SQLite
// recover it, which the program under test must do.
func (p *place) log(id string) []swarm.Event {
	p.Helper()
	l := p.openCopy(id)
	defer l.Close()
	events, err := l.Read(0, 1<<20)
	p.check(err)
	for i, e := range events {
		if e.Seq != int64(i+1) {
			p.Fatalf("event %d of the log has the number %d", i+1, e.Seq)
		}
	}
	return events
}

func (p *place) openCopy(id string) *sqlite.Log {
	p.Helper()
	dir := p.TempDir()
	for _, end := range []string{".db", ".db-wal"} {
		b, err := os.ReadFile(filepath.Join(p.home, "runs", id+end))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.check(err)
		p.check(os.WriteFile(filepath.Join(dir, id+end), b, 0o600))
	}
	l, err := sqlite.OpenReadOnly(filepath.Join(dir, id+".db"))
	p.check(err)
	return l
}

// body reads the body of an event.
func body[T any](p *place, e swarm.Event) (b T) {
	p.Helper()
	p.check(json.Unmarshal(e.Data, &b))
	return b
}

// An entry is a line of the agents' ledger.
type entry struct {
	word    string // start or end
	turn    swarm.TurnID
	attempt string
	prompt  string // its checksum
}

func (p *place) ledger() (all []entry) {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, "ledger"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p.check(err)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			p.Fatalf("the ledger has a line %q", line)
		}
		all = append(all, entry{f[0], swarm.TurnID(f[1]), f[2], f[3]})
	}
	return all
}

// outputs are the last outputs of all tasks of a run that has ended, as `swarm out` prints them.
func (p *place) outputs(id string) map[string]string {
	p.Helper()
	if p.outs == nil {
		p.outs = map[string]string{}
		for _, e := range p.log(id) {
			if e.Kind == swarm.TaskCompleted && p.outs[e.Task] == "" {
				p.outs[e.Task], _ = p.runs(0, "out", id, e.Task)
			}
		}
	}
	return p.outs
}

// copies are the files of outputs.
func (p *place) copies(id string) map[string]string {
	p.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(p.home, "outputs", id, "*.txt"))
	p.check(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		p.check(err)
		all[strings.TrimSuffix(filepath.Base(f), ".txt")] = string(b)
	}
	return all
}

// left tells of the living processes that belong to a run.
func left(id string) (found []string) {
	for _, pid := range processesWith("SWARM_RUN_ID=" + id) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		found = append(found, fmt.Sprint(pid, " ", strings.ReplaceAll(string(name), "\x00", " ")))
	}
	return found
}

// processesWith are the living processes with a variable in their environment.
func processesWith(variable string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), variable) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// A driving is a process that drives a run and prints its events.
type driving struct {
	*place
	cmd    *exec.Cmd
	lines  chan swarm.PublicEvent // what it prints; closed at its end
	stderr bytes.Buffer
	said   []swarm.PublicEvent // what was taken from lines
}

// drives starts a process that drives a run.
func (p *place) drives(args ...string) *driving {
	p.Helper()
	d := &driving{place: p, cmd: p.swarm(append(args, "--json")...), lines: make(chan swarm.PublicEvent, 1000)}
	out, err := d.cmd.StdoutPipe()
	p.check(err)
	d.cmd.Stderr = &d.stderr
	p.check(d.cmd.Start())
	go func() {
		defer close(d.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			var e swarm.PublicEvent
			if json.Unmarshal(in.Bytes(), &e) == nil { // the last line may be half a one
				d.lines <- e
			}
		}
	}()
	return d
}

// says waits for the next line; false when there is none.
func (d *driving) says() (swarm.PublicEvent, bool) {
	e, ok := <-d.lines
	if ok {
		d.said = append(d.said, e)
	}
	return e, ok
}

// until waits for an event of a kind.
func (d *driving) until(kind swarm.EventKind) swarm.PublicEvent {
	d.Helper()
	for {
		e, ok := d.says()
		if !ok {
			d.Fatalf("swarm %s has ended without %s: %s", strings.Join(d.cmd.Args[1:], " "), kind, d.stderr.String())
		}
		if e.Kind == kind {
			return e
		}
	}
}

// ends waits for the process and returns its exit code; -1 when it was killed.
func (d *driving) ends() int {
	for {
		if _, ok := d.says(); !ok {
			break
		}
	}
	_ = d.cmd.Wait()
	return d.cmd.ProcessState.ExitCode()
}

// soFar takes what it has said until now.
func (d *driving) soFar() []swarm.PublicEvent {
	for {
		select {
		case e, ok := <-d.lines:
			if !ok {
				return d.said
			}
			d.said = append(d.said, e)
		default:
			return d.said
		}
	}
}

func (d *driving) signal(s syscall.Signal) { _ = d.cmd.Process.Signal(s) }

// kill kills it, and says whether it was alive until then.
func (d *driving) kill() bool {
	d.signal(syscall.SIGKILL)
	return d.ends() == -1
}

// A tally is what a log says of a run's turns.
type tally struct {
	starts, ends map[swarm.TurnID]int
	prompts      map[swarm.TurnID]swarm.Hash
	status       map[swarm.TurnID]swarm.CallState
}

func (p *place) tally(events []swarm.Event) tally {
	p.Helper()
	t := tally{map[swarm.TurnID]int{}, map[swarm.TurnID]int{}, map[swarm.TurnID]swarm.Hash{}, map[swarm.TurnID]swarm.CallState{}}
	for _, e := range events {
		switch e.Kind {
		case swarm.TurnStarted:
			s := body[swarm.TurnStart](p, e)
			if t.starts[e.Turn]++; s.Start != t.starts[e.Turn] {
				p.Errorf("start %d of %s calls itself %d", t.starts[e.Turn], e.Turn, s.Start)
			}
			if before, ok := t.prompts[e.Turn]; ok && before != s.Prompt {
				p.Errorf("%s was started again with another prompt", e.Turn)
			}
			t.prompts[e.Turn] = s.Prompt
		case swarm.TurnEnded:
			t.ends[e.Turn]++
			t.status[e.Turn] = body[swarm.CallEnd](p, e).Status
		}
	}
	return t
}

func names[K ~string, V any](m map[K]V) string {
	return strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(m))), "[]")
}

func words(events []swarm.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, strings.TrimSpace(strconv.FormatInt(e.Seq, 10)+" "+string(e.Kind)+" "+e.Task+" "+string(e.Turn)+" "+string(e.Data)))
	}
	return strings.Join(all, "\n")
}

// compose puts another compose file in place of the pipeline.
func (p *place) compose(text string) {
	p.Helper()
	p.check(os.WriteFile(filepath.Join(p.dir, "swarm", "swarm.yaml"), []byte(text), 0o600))
}
