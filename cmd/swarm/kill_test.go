//go:build linux

package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
)

// TestKilledAtAnyMoment kills the driver of a run at random moments, and resumes the run until it
// ends. The result must equal that of an undisturbed run.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	calm := newPlace(t)
	calm.runs(0, "up")
	kills := times(3, 20, 1000)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	v := &victim{random: rand.New(rand.NewPCG(seed, 0))}
	for v.kills < kills && !t.Failed() {
		v.place = newPlace(t)
		v.drive()
		v.holdAgainst(calm)
	}
	t.Logf("%d kills of %d runs: %d turns ended, %d of them started again, %d pauses acknowledged", v.kills, v.count, v.ended, v.again, v.pauses)
}

// A victim is a run whose drivers are killed.
type victim struct {
	*place
	disk   *disk // nil = its drivers are killed; else the power goes out
	random *rand.Rand
	id     string
	deaths []death
	old    int64 // how long the log was when the last driver began
	paused int   // how many pauses were acknowledged

	kills, count, ended, again, pauses int // over all runs
}

// A death is the state that was durable when a driver was killed.
type death struct {
	ended  map[swarm.TurnID]int // turns whose end was in the log
	ledger int                  // how long the agents' ledger was
}

// drive drives the run to its end, with a new driver after each kill.
func (v *victim) drive() {
	v.Helper()
	v.id, v.deaths, v.old, v.paused = "", nil, 0, 0
	v.count++
	for args := []string{"up"}; ; {
		d := v.drives(args...)
		killed := v.killSometime(d)
		if code := d.cmd.ProcessState.ExitCode(); !killed && code != 0 {
			v.Fatalf("swarm %v exited with %d: %s", args, code, d.stderr.String())
		}
		ledger := len(v.ledger())
		all := v.list() // the next command
		switch {
		case len(all) > 1:
			v.Fatalf("there are %d runs", len(all))
		case len(all) == 0:
			continue // it died before there was one
		}
		v.id = all[0].ID
		if found := left(v.id); found != nil {
			v.Errorf("processes are left after the next command: %q", found)
		}
		log := v.log(v.id)
		v.holds(log, d.said)
		v.old = int64(len(log))
		if all[0].Status.Ended() {
			return
		}
		if all[0].Status != swarm.Interrupted {
			v.Fatalf("nobody drives the run, and it is %s", all[0].Status)
		}
		v.deaths = append(v.deaths, death{v.tally(log).ends, ledger})
		args = []string{"resume", "@last"}
	}
}

// killSometime kills a driver at a random moment, sometimes just after a pause was acknowledged. It
// returns false if the driver had ended before.
func (v *victim) killSometime(d *driving) bool {
	v.Helper()
	lines, instant := v.random.IntN(30), time.Duration(v.random.IntN(6000))*time.Microsecond
	if v.random.IntN(4) == 0 { // perhaps before it has said anything
		lines, instant = 0, 8*instant
	}
	for n := 0; n < lines; {
		e, ok := d.says()
		if !ok {
			break
		}
		if e.Seq > v.old {
			n++
		}
	}
	if v.random.IntN(8) == 0 {
		if _, _, code := v.try("pause", "@last"); code == 0 {
			v.paused++
			v.pauses++
		}
	}
	<-time.After(instant)
	if v.disk != nil {
		v.disk.losesPower(d)
		v.kills++
		return true
	}
	if !d.kill() {
		return false
	}
	v.kills++
	return true
}

// holds checks that the log has every event that a driver printed before it was killed, and every
// command that was acknowledged.
func (v *victim) holds(log []swarm.Event, said []swarm.PublicEvent) {
	v.Helper()
	for _, s := range said {
		if v.disk != nil && !promised[s.Kind] {
			continue
		}
		if s.Seq > int64(len(log)) || log[s.Seq-1].Kind != s.Kind || log[s.Seq-1].Turn != s.Turn {
			v.Errorf("the driver said %d %s %s, and the log does not:\n%s", s.Seq, s.Kind, s.Turn, words(log))
		}
	}
	pauses := 0
	for _, e := range log {
		if e.Kind == swarm.Control && body[swarm.ControlCommand](v.place, e).Command == swarm.CommandPause {
			pauses++
		}
	}
	if pauses != v.paused {
		v.Errorf("%d pauses were acknowledged, and the log has %d", v.paused, pauses)
	}
}

// holdAgainst compares the run with an undisturbed one, its log with the agents' ledger, and what
// commands print with both.
func (v *victim) holdAgainst(calm *place) {
	v.Helper()
	calmID := calm.list()[0].ID
	want, got := calm.tally(calm.log(calmID)), v.tally(v.log(v.id))
	if names(want.ends) != names(got.ends) || names(got.ends) != names(got.starts) {
		v.Errorf("turns ended: %s\nstarted: %s\nwant %s", names(got.ends), names(got.starts), names(want.ends))
	}
	for turn, n := range got.ends {
		v.ended++
		if n != 1 || got.prompts[turn] != want.prompts[turn] || got.status[turn] != want.status[turn] {
			v.Errorf("%s: %d ends, prompt %s, status %s; without a kill one, %s, %s", turn, n, got.prompts[turn], got.status[turn], want.prompts[turn], want.status[turn])
		}
	}
	v.holdLedger(got, calm.ledger())
	v.holdShown(got)
	if outputs := v.outputs(v.id); !maps.Equal(outputs, calm.outputs(calmID)) {
		v.Errorf("the outputs are %q, want %q", outputs, calm.outputs(calmID))
	}
	if v.disk != nil {
		return // the files of outputs are copies for people, and wait for no disk
	}
	if copies := v.copies(v.id); !maps.Equal(copies, calm.copies(calmID)) {
		v.Errorf("the copies of outputs are %q, want %q", copies, calm.copies(calmID))
	}
}

// holdLedger compares the log with the agents' ledger.
func (v *victim) holdLedger(log tally, calm []entry) {
	v.Helper()
	prompts, ends, starts := map[swarm.TurnID]string{}, map[swarm.TurnID]int{}, map[swarm.TurnID]int{}
	for _, e := range calm {
		prompts[e.turn] = e.prompt
	}
	for i, e := range v.ledger() {
		if e.prompt != prompts[e.turn] {
			v.Errorf("%s was asked %s, and without a kill %s", e.turn, e.prompt, prompts[e.turn])
		}
		if e.word == "end" {
			ends[e.turn]++
			continue
		}
		starts[e.turn]++
		for _, d := range v.deaths {
			if i >= d.ledger && d.ended[e.turn] > 0 {
				v.Errorf("%s had ended when a driver was killed, and was done again", e.turn)
			}
		}
	}
	for turn := range log.ends {
		if ends[turn] == 0 {
			v.Errorf("the log says that %s has ended, and the agent never came to its end", turn)
		}
		if starts[turn] > log.starts[turn] {
			v.Errorf("the agent was asked %s %d times, and the log knows of %d", turn, starts[turn], log.starts[turn])
		}
	}
}

// holdShown compares `swarm show` with the log. A turn that was started more than once must be
// marked, because its agent may have acted twice.
func (v *victim) holdShown(log tally) {
	v.Helper()
	var shown struct {
		Turns []struct {
			ID      swarm.TurnID
			Starts  int
			Retried bool
		}
	}
	out, _ := v.runs(0, "show", v.id, "--json")
	v.check(json.Unmarshal([]byte(out), &shown))
	var again []swarm.TurnID
	for _, t := range shown.Turns {
		if t.Starts != log.starts[t.ID] || t.Retried != (t.Starts > 1) {
			v.Errorf("%s is shown with %d starts, retried %v; the log has %d", t.ID, t.Starts, t.Retried, log.starts[t.ID])
		}
		if t.Retried {
			v.again++
			again = append(again, t.ID)
		}
	}
	if slices.Sort(again); len(again) != len(slices.Compact(again)) {
		v.Errorf("a turn is shown twice: %q", again)
	}
}

// A process that dies while it creates a run leaves incomplete files. Commands ignore them, and
// prune removes them.
func TestHalfMadeRuns(t *testing.T) {
	for name, leave := range map[string]func(path string) error{
		"before anything was written": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"before its first event": func(path string) error {
			l, err := sqlite.Create(path)
			if err == nil {
				err = l.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.runs(0, "up")
			whole := p.list()[0].ID
			const half = "20991231-235959-0000000" // newer than any
			p.check(leave(filepath.Join(p.home, "runs", half+".db")))
			files := func() []string {
				all, err := filepath.Glob(filepath.Join(p.home, "runs", half+"*"))
				p.check(err)
				return all
			}
			for _, args := range [][]string{{"ls", "--json"}, {"ls", "--json", "-g"}, {"show", "--json", "@last"}, {"show", "--json", "@last", "-g"}} {
				if out, _ := p.runs(0, args...); strings.Contains(out, half) || !strings.Contains(out, whole) {
					t.Errorf("swarm %s:\n%s", strings.Join(args, " "), out)
				}
			}
			p.runs(2, "resume", half)
			p.runs(0, "prune", "-g", "--older-than", "0")
			if len(files()) == 0 {
				t.Error("prune has removed what may be a run that is being made")
			}
			for _, f := range files() {
				p.check(os.Chtimes(f, time.Time{}, time.Now().Add(-time.Hour)))
			}
			p.runs(0, "prune", "-g", "--older-than", "30m")
			if len(files()) != 0 {
				t.Errorf("prune leaves %q", files())
			}
		})
	}
}

// An acknowledged cancel holds even if the driver is killed: no turn starts after it.
func TestAnAcknowledgedCancelIsObeyed(t *testing.T) {
	for range times(1, 4, 100) {
		p := newPlace(t)
		p.holds()
		d := p.drives("up")
		id := d.until(swarm.TurnStarted).Run
		p.runs(0, "cancel", "@last")
		d.kill()
		status := p.list()[0].Status // those that the driver had just started are ended by this
		asked := len(p.ledger())
		if !status.Ended() {
			p.runs(1, "resume", "@last")
		}
		if status := p.list()[0].Status; status != swarm.Cancelled {
			t.Errorf("the cancelled run is %s", status)
		}
		if again := p.ledger()[asked:]; len(again) != 0 {
			t.Errorf("after the run was cancelled its agents noted %v", again)
		}
		if found := left(string(id)); found != nil {
			t.Errorf("processes are left: %q", found)
		}
	}
}
