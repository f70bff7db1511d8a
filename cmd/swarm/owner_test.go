//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/sqlite"
)

// holds makes agents wait until they are released.
func (p *place) holds() (letGo func()) {
	p.Helper()
	hold := filepath.Join(p.dir, "hold")
	p.check(os.WriteFile(hold, nil, 0o600))
	return func() { p.check(os.Remove(hold)) }
}

func (p *place) count(log []swarm.Event, kind swarm.EventKind) (n int) {
	for _, e := range log {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestOneOfManyResumesDrives(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	letGo := p.holds()
	d := p.drives("up")
	id := string(d.until(swarm.TurnStarted).Run)
	d.kill()
	p.list()
	before := p.log(id)

	type end struct {
		pid, code int
		said      string
	}
	const many = 8
	ends := make(chan end, many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			var stderr strings.Builder
			cmd := p.swarm("resume", "@last")
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			_ = cmd.Wait()
			ends <- end{cmd.Process.Pid, cmd.ProcessState.ExitCode(), stderr.String()}
		})
	}
	var losers []end
	for range many - 1 {
		losers = append(losers, <-ends)
	}
	letGo()
	winner := <-ends
	all.Wait()
	if winner.code != 0 {
		t.Errorf("who drives exited with %d: %s", winner.code, winner.said)
	}
	for _, l := range losers {
		if want := fmt.Sprintf("process %d drives the run %s", winner.pid, id); l.code != 2 || !strings.Contains(l.said, want) {
			t.Errorf("another exited with %d: %s\nwant 2, and %s", l.code, l.said, want)
		}
	}
	after := p.log(id)
	for _, kind := range []swarm.EventKind{swarm.RunOwned, swarm.Control} {
		if n := p.count(after, kind) - p.count(before, kind); n != 1 {
			t.Errorf("%d of them have written %s", n, kind)
		}
	}
}

// soon waits until something is so.
func (p *place) soon(what string, so func() bool) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("after a minute still not: %s", what)
		}
	}
}

// stopped starts a run, and stops its driver with a signal while turns run. It never stops the
// driver inside a commit: the driver would hold the write lock, and be killed for that.
func stopped(t *testing.T) (p *place, d *driving, id string, letGo func()) {
	t.Helper()
	p = newPlace(t)
	p.env = []string{"SWARM_TEST_LEASE=400ms"}
	letGo = p.holds()
	d = p.drives("up")
	id = string(d.until(swarm.TurnStarted).Run)
	p.soon("both copies' first agents are at work", func() bool { return len(p.ledger()) == 2 })
	turn, err := os.Open(filepath.Join(p.home, "runs", id+".db.lock"))
	p.check(err)
	defer turn.Close()
	p.soon("it is stopped between commits", func() bool {
		d.signal(syscall.SIGSTOP)
		p.soon("it is stopped", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
			return err == nil && strings.Contains(string(stat), ") T ")
		})
		if syscall.Flock(int(turn.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		d.signal(syscall.SIGCONT)
		return false
	})
	t.Cleanup(func() { d.signal(syscall.SIGKILL) })
	return p, d, id, letGo
}

func TestAStoppedDriverIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	t.Parallel()
	calm := newPlace(t)
	calm.runs(0, "up")
	p, old, id, letGo := stopped(t)
	var next *driving
	p.soon("the lease is over", func() bool {
		next = p.drives("resume", "@last")
		if _, ok := next.says(); ok {
			return true
		}
		if code := next.ends(); code != 2 || !strings.Contains(next.stderr.String(), "drives the run") {
			t.Fatalf("before the lease is over: exit %d, %s", code, next.stderr.String())
		}
		return false
	})
	for {
		start := body[swarm.TurnStart](p, swarm.Event{Data: next.until(swarm.TurnStarted).Data})
		if start.Owner == 2 {
			break
		}
	}
	old.signal(syscall.SIGCONT)
	if code := old.ends(); code != 1 || !strings.Contains(old.stderr.String(), "has taken over the run "+id) {
		t.Errorf("the woken driver exited with %d: %s", code, old.stderr.String())
	}
	p.runs(0, "ls") // which must not take the new driver's agents for the old one's
	letGo()
	if code := next.ends(); code != 0 {
		t.Errorf("the new driver exited with %d: %s", code, next.stderr.String())
	}
	log := p.log(id)
	v := &victim{place: p, id: id}
	v.holdAgainst(calm)
	for _, e := range log {
		if e.Kind == swarm.TurnStarted && body[swarm.TurnStart](p, e).Start > 1 && body[swarm.TurnStart](p, e).Owner != 2 {
			t.Errorf("%s was started again by the old driver", e.Turn)
		}
	}
	if p.list(); left(id) != nil {
		t.Errorf("processes are left: %q", left(id))
	}
}

// The fence alone refuses the late end of a turn. No driver has started the turn again, so no
// idempotency key refuses it.
func TestAWokenDriverCanWriteNothing(t *testing.T) {
	t.Parallel()
	p, old, id, letGo := stopped(t)
	log, err := sqlite.Open(filepath.Join(p.home, "runs", id+".db"))
	p.check(err)
	defer log.Close()
	p.soon("the lease is over", func() bool {
		_, err := log.Own(context.Background(), flow.Version, time.Hour)
		var owned *swarm.OwnedError
		if !errors.As(err, &owned) {
			p.check(err)
			return true
		}
		return false
	})
	before := p.log(id)
	letGo()
	p.soon("the agents are through while their driver sleeps", func() bool { return len(p.ledger()) == 4 })
	old.signal(syscall.SIGCONT)
	if code := old.ends(); code != 1 || !strings.Contains(old.stderr.String(), "has taken over") {
		t.Errorf("the woken driver exited with %d: %s", code, old.stderr.String())
	}
	if after := p.log(id); len(after) != len(before) {
		t.Errorf("it has written:\n%s", words(after[len(before):]))
	}
}
