package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/provider"
)

// waitCrashes tests a wait in a team in which one turn runs at a time: the lead waits for another
// agent. The wait can end only because a waiting agent needs no slot. After a crash at any append
// the run continues as if there was none.
func waitCrashes(t *testing.T, run Subject) {
	everywhere(t, run, func(*harness) func(context.Context, provider.Request) (string, error) {
		return func(ctx context.Context, r provider.Request) (string, error) {
			var err error
			if r.Turn == "lead/1/1" {
				if _, err = r.Call(ctx, "send_handoff", json.RawMessage(`{"to":"a","message":"begin"}`)); err == nil {
					_, err = r.Call(ctx, "wait_for", json.RawMessage(`{"agents":["a"]}`))
				}
			}
			return "out of " + string(r.Turn), err
		}
	}, "turn_ended a a/1/1", "turn_ended lead lead/1/1")
}

// singleCrashes tests a person who pauses, resumes, cancels and starts single agents while the team
// works. Each command is written once, as by a client that got its acknowledgement. The process
// crashes at any append before and after.
func singleCrashes(t *testing.T, run Subject) {
	everywhere(t, run, func(b *harness) func(context.Context, provider.Request) (string, error) {
		say := func(word swarm.Command, target string) {
			b.append(swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Key: "said:" + string(word) + target, Data: swarm.Encode(swarm.ControlCommand{Command: word, Target: target})}, nil)
		}
		return func(ctx context.Context, r provider.Request) (string, error) {
			send := func(args string) error {
				_, err := r.Call(ctx, "send_handoff", json.RawMessage(args))
				return err
			}
			var err error
			switch r.Turn {
			case "lead/1/1":
				say(swarm.CommandPause, "b")
				err = send(`{"to":"a","message":"begin"}`)
			case "a/1/1":
				err = errors.Join(send(`{"to":"b","message":"wait for me"}`), send(`{"to":"lead","message":"half"}`))
			case "lead/2/1":
				say(swarm.CommandResume, "b")
			case "b/1/1":
				say(swarm.CommandCancel, "a")
				say(swarm.CommandStart, "a")
				say(swarm.CommandReset, "a")
				err = send(`{"to":"lead","message":"a is new"}`)
			case "lead/3/1":
				err = send(`{"to":"a","message":"go on"}`)
			}
			return "out of " + string(r.Turn), err
		}
	}, "agent_paused b", "agent_resumed b", "agent_ended a", "agent_restarted a", "turn_ended a a/2/1", "turn_ended lead lead/3/1")
}

// backCrashes tests a lead that gets its mail back: one agent is ended before it reads its mail,
// and another never replies. The lead has a turn for each.
func backCrashes(t *testing.T, run Subject) {
	everywhere(t, run, func(b *harness) func(context.Context, provider.Request) (string, error) {
		say := func(word swarm.Command, target string) {
			b.append(swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Key: "said:" + string(word) + target, Data: swarm.Encode(swarm.ControlCommand{Command: word, Target: target})}, nil)
		}
		return func(ctx context.Context, r provider.Request) (string, error) {
			var err error
			send := func(args string) {
				_, e := r.Call(ctx, "send_handoff", json.RawMessage(args))
				err = errors.Join(err, e)
			}
			switch r.Turn {
			case "lead/1/1":
				say(swarm.CommandPause, "a")
				send(`{"to":"a","message":"begin"}`)
				send(`{"to":"b","message":"see to it"}`)
			case "b/1/1":
				say(swarm.CommandCancel, "a")
			case "lead/2/1":
				send(`{"to":"b","message":"then you","response":{"expectation":"required"}}`)
			}
			return "out of " + string(r.Turn), err
		}
	}, "agent_ended a", "handoff_returned", "turn_ended lead lead/2/1", "turn_ended b b/3/1", "turn_ended lead lead/3/1")
}

// everywhere runs a team once without a crash, checks the result, and then runs it with a crash at
// every append.
func everywhere(t *testing.T, run Subject, work func(*harness) func(context.Context, provider.Request) (string, error), wanted ...string) {
	begin := func() *harness {
		p := teamPlan()
		p.Edges = append(p.Edges, swarm.Edge{From: "b", To: "lead", Both: true})
		b := newTeamHarness(t, run, p)
		b.team.answer = work(b)
		return b
	}
	clean := begin()
	if r, err := clean.driveTeam(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	for _, line := range wanted {
		if !slices.Contains(want, line) {
			t.Fatalf("%s is missing:\n%s", line, strings.Join(want, "\n"))
		}
	}
	run.atEveryAppend(t, 10, func(at int, committed bool) bool {
		b := begin()
		if !crash(t, at, committed, b.driveTeam) {
			return false
		}
		if got, _ := b.history(); !slices.Equal(got, want) {
			t.Errorf("crash at append %d, committed: %v: the log tells\n%s\nwant\n%s", at, committed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		b.checkMail(at)
		return true
	})
}

// lateWait tests a process that has lost its run and then writes that an agent waits. The new
// owner's loop must not get that.
func lateWait(t *testing.T, run Subject) {
	started, finish := make(chan swarm.TurnID, 10), make(chan struct{})
	refused := make(chan error, 1)
	b := newTeamHarness(t, run, teamPlan())
	b.team.answer = func(ctx context.Context, r provider.Request) (string, error) {
		started <- r.Turn
		<-finish
		_, err := r.Call(ctx, "wait_for", json.RawMessage(`{"agents":["a"],"timeout":1}`))
		refused <- err
		return "late", err
	}
	log, err := b.store.Open(b.t.Context(), runID, swarm.ReadWrite)
	b.check(err)
	defer log.Close()
	done := make(chan error, 1)
	owner, err := log.Own(t.Context(), flow.Version, time.Nanosecond)
	b.check(err)
	go func() {
		_, err := b.runTeam(log, owner.Fence, true)
		done <- err
	}()
	<-started
	other, err := b.store.Open(b.t.Context(), runID, swarm.ReadWrite)
	b.check(err)
	defer other.Close()
	_, err = other.Own(t.Context(), flow.Version, leaseForTests)
	b.check(err)
	close(finish)
	if err := <-refused; !errors.Is(err, swarm.ErrFenced) {
		t.Errorf("a late wait was answered with %v", err)
	}
	<-done
}
