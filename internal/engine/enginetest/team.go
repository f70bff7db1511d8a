package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/engine"
	"swarm/internal/flow"
	"swarm/internal/provider"
	"swarm/internal/storetest"
)

// passOn is the work of a team: mail goes once round. The agent a fails at first, after half of its
// work. The lead is asked for a reply and forgets it at first. The agent b says that it has sent a
// message, and has not. If the goal is checked, the check fails at first.
func passOn(ctx context.Context, r provider.Request) (string, error) {
	send := func(args string) error {
		_, err := r.Call(ctx, "send_handoff", json.RawMessage(args))
		return err
	}
	write := func(name string) error { return os.WriteFile(filepath.Join(r.Dir, name), []byte(name), 0o600) }
	var err error
	switch {
	case r.Turn == "lead/1/1":
		err = send(`{"to":"a","message":"begin"}`)
	case r.Turn == "a/1/1":
		if err = errors.Join(send(`{"to":"b","message":"first half"}`), write("half.txt")); err == nil {
			err = swarm.Errorf(swarm.Unexpected, "it stopped half way")
		}
	case r.Turn == "a/1/2":
		err = errors.Join(send(`{"to":"b","message":"first half"}`), write("whole.txt"), send(`{"to":"lead","message":"done","response":{"expectation":"required"}}`))
	case r.Turn == "lead/3/1":
		err = send(`{"to":"a","message":"thanks"}`)
	case r.Turn == "lead/4/1": // the goal is not reached, and it is told so
		err = write("goal.txt")
	}
	if r.Turn == "b/1/1" {
		return "I sent the result to @lead.", err
	}
	return "out of " + string(r.Turn), err
}

func teamPlan() swarm.Plan {
	p := swarm.Plan{Kind: swarm.TeamRun, MaxParallel: 1, Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode},
		Edges: []swarm.Edge{{From: "lead", To: "a", Both: true}, {From: "a", To: "b"}}}
	for _, name := range []string{"lead", "a", "b"} {
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "team", Permissions: swarm.Permissions{Spawn: true}})
	}
	return p
}

// checkedPlan is a team whose goal is checked.
func checkedPlan() swarm.Plan {
	p := teamPlan()
	p.Team.Expect = &swarm.Expect{File: "goal.txt"}
	return p
}

func newTeamHarness(t *testing.T, run Subject, p swarm.Plan) *harness {
	b := newHarness(t, run, p, newTeam(passOn))
	goal := swarm.Envelope{Kind: swarm.Handoff, ID: "goal", FromNodeID: swarm.User, ToNodeID: "lead", Payload: swarm.Payload{Message: "go round"}}
	b.append(swarm.Event{Kind: swarm.HandoffStored, Key: swarm.MailKey("goal"), To: swarm.ToAgent("lead"), Data: swarm.Encode(goal)}, nil)
	return b
}

// driveTeam is drive for a team, whose agents message each other.
func (h *harness) driveTeam(after int, committed bool) (flow.Result, error) {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadWrite)
	h.check(err)
	defer log.Close()
	fence, taken := h.own(log)
	return h.runTeam(storetest.Crash(log, after, committed), fence, taken)
}

// runTeam runs the loop of a team. If this process has just taken the run, the log says so first.
func (h *harness) runTeam(log swarm.Log, fence int64, taken bool) (flow.Result, error) {
	adapters := h.adapters(log)
	mailer := &agentapi.Service{Run: "run", Log: log, Loop: "root", Fence: fence}
	adapters.Turn.AgentAPI, adapters.Turn.Snapshots, adapters.Mailer = mailer, memorySnapshots{}, mailer
	if fence > 1 { // The process that resumes a run is a newer version of the program.
		adapters.Mailer = reworded{mailer}
	}
	if taken {
		owned := swarm.Event{Kind: swarm.RunOwned, To: swarm.ToLoop("root"), Data: swarm.Encode(swarm.Ownership{Fence: fence})}
		if _, err := log.Append(h.t.Context(), swarm.Batch{Fence: fence, Events: []swarm.Event{owned}}); err != nil {
			h.fence = 0 // the engine never got the run, so the next process has to take it
			return flow.Result{}, err
		}
	}
	return h.run(h.t.Context(), adapters, flow.Call{ID: "root", Kind: "team", Ref: planKey, Fence: fence})
}

// reworded is the mailer of a program version whose texts are all different.
type reworded struct{ engine.Mailer }

func (r reworded) Note(ctx context.Context, id, agent string, m swarm.Message) error {
	return r.Mailer.Note(ctx, id, agent, inOtherWords(m))
}

func (r reworded) Urge(ctx context.Context, id, agent string, m swarm.Message) (int64, error) {
	return r.Mailer.Urge(ctx, id, agent, inOtherWords(m))
}

func (r reworded) Return(ctx context.Context, agent string, why swarm.Message) (int64, error) {
	return r.Mailer.Return(ctx, agent, inOtherWords(why))
}

func inOtherWords(m swarm.Message) swarm.Message { return swarm.NewMessage(m.Code+"_2", m.Args...) }

// A team continues after a crash at any append as if there was none. No message is lost or sent
// twice. Each envelope is consumed by one committed turn. The changes of each turn are reported
// once, and whole. Each check of the goal begins and ends once in the log.
func teamCrashes(t *testing.T, run Subject) {
	clean := newTeamHarness(t, run, checkedPlan())
	if r, err := clean.driveTeam(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	clean.checkDiffs(0)
	if !slices.Contains(want, "turn_ended b b/2/1") {
		t.Fatalf("who claimed to have sent something was not told:\n%s", strings.Join(want, "\n"))
	}
	if checks := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return !strings.HasPrefix(line, "check_") }); !slices.Equal(checks, []string{"check_ended", "check_ended", "check_started", "check_started"}) ||
		!slices.Contains(want, "turn_ended lead lead/4/1") {
		t.Fatalf("the goal was checked so: %v\n%s", checks, strings.Join(want, "\n"))
	}
	if !slices.Contains(want, "reply_overdue") || !slices.Contains(want, "turn_ended lead lead/3/1") {
		t.Fatalf("nobody was reminded:\n%s", strings.Join(want, "\n"))
	}
	run.atEveryAppend(t, 20, func(at int, committed bool) bool {
		b := newTeamHarness(t, run, checkedPlan())
		if !crash(t, at, committed, b.driveTeam) {
			return false
		}
		if got, _ := b.history(); !slices.Equal(got, want) {
			t.Errorf("crash at append %d, committed: %v: the log tells\n%s\nwant\n%s", at, committed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		b.checkMail(at)
		b.checkDiffs(at)
		return true
	})
}

// checkMail checks that every envelope that gave an agent a turn is consumed once.
func (h *harness) checkMail(at int) {
	h.t.Helper()
	events := h.events()
	consumed, returned := map[int64]int{}, map[string]bool{}
	for _, e := range events {
		if e.Kind == swarm.HandoffReturned {
			r, err := swarm.Body[swarm.Return](&e)
			h.check(err)
			returned[swarm.MailKey(r.Ref)] = true
		}
		if e.Kind != swarm.HandoffConsumed {
			continue
		}
		in, err := swarm.Body[swarm.Inputs](&e)
		h.check(err)
		for _, m := range events {
			if m.Kind == swarm.HandoffStored && m.To == swarm.ToAgent(e.Agent) && m.Seq > in.From && m.Seq <= in.Upto {
				consumed[m.Seq]++
			}
		}
	}
	for _, m := range events {
		if m.Kind == swarm.HandoffStored && consumed[m.Seq] != 1 && !returned[m.Key] {
			h.t.Errorf("crash at append %d: the envelope %s is consumed by %d turns", at, m.Key, consumed[m.Seq])
		}
	}
}

var _ engine.Mailer = (*agentapi.Service)(nil)
