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

// holds makes agents wait until they are let go.
func (p *place) holds() (letGo func()) {
	p.Helper()
	hold := filepath.Join(p.dir, "hold")
	p.check(os.WriteFile(hold, nil, 0o600))
	return func() { p.check(os.Remove(hold)) }
}

// A kept log is written by its owner alone, and anybody's word.
func (p *place) count(log []swarm.Event, kind swarm.EventKind) (n int) {
	for _, e := range log {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestOneOfManyResumesDrives(t *testing.T) {
	p := newPlace(t)
	letGo := p.holds()
	d := p.drives("up")
	id := d.until(swarm.TurnStarted).Run
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

// stopped starts a run whose driver is stopped in the middle of its turns for longer than its lease.
func stopped(t *testing.T) (p *place, d *process, id string, letGo func()) {
	t.Helper()
	p = newPlace(t)
	p.env = []string{"SWARM_TEST_LEASE=100ms"}
	letGo = p.holds()
	d = p.drives("up")
	id = d.until(swarm.TurnStarted).Run
	for len(p.ledger()) < 2 { // both copies' first agents are at work
		time.Sleep(time.Millisecond)
	}
	d.signal(syscall.SIGSTOP)
	t.Cleanup(func() { d.signal(syscall.SIGKILL) })
	return p, d, id, letGo
}

func TestAStoppedDriverIsReplaced(t *testing.T) {
	calm := newPlace(t)
	calm.runs(0, "up")
	p, old, id, letGo := stopped(t)
	var next *process
	for {
		next = p.drives("resume", "@last")
		if _, ok := next.says(); ok {
			break
		}
		if code := next.ends(); code != 2 || !strings.Contains(next.stderr.String(), "drives the run") {
			t.Fatalf("before the lease is over: exit %d, %s", code, next.stderr.String())
		}
	}
	next.until(swarm.TurnStarted)
	old.signal(syscall.SIGCONT)
	if code := old.ends(); code != 1 || !strings.Contains(old.stderr.String(), fmt.Sprintf("process %d has taken over the run %s", next.cmd.Process.Pid, id)) {
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

// What the fence alone refuses: nobody has started the turns again, so no key stands in the way of a late end.
func TestAWokenDriverCanWriteNothing(t *testing.T) {
	p, old, id, letGo := stopped(t)
	log, err := sqlite.Open(filepath.Join(p.home, "runs", id+".db"))
	p.check(err)
	defer log.Close()
	for {
		_, err := log.Own(context.Background(), flow.Version, time.Hour)
		var owned *swarm.OwnedError
		if !errors.As(err, &owned) {
			p.check(err)
			break
		}
	}
	before := p.log(id)
	letGo()
	for len(p.ledger()) < 4 { // the agents are through while their driver sleeps
		time.Sleep(time.Millisecond)
	}
	old.signal(syscall.SIGCONT)
	if code := old.ends(); code != 1 || !strings.Contains(old.stderr.String(), "has taken over") {
		t.Errorf("the woken driver exited with %d: %s", code, old.stderr.String())
	}
	if after := p.log(id); len(after) != len(before) {
		t.Errorf("it has written:\n%s", words(after[len(before):]))
	}
}
