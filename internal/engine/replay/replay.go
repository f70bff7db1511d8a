// Package replay is an engine that runs a loop from a recording. It reaches no agent, no clock and
// no person.
//
// The loop is the same code that runs live. The run is a new one, with a log of its own. Three
// things go into that log:
//   - Recorded events are copied, in their order and under new numbers, as the loop comes to them.
//   - Facts that the loop decides are written as the loop decides them now, in the place that they
//     have in the recording.
//   - The opening (plan, goal, owner) is the new run's own.
//
// For every turn the engine makes the prompt again, from the new log, and compares it with the
// recorded one. It compares what the loop decides as well: facts, short calls and turns, in their
// order. So a replay shows whether the present plan asks its agents the same as the recorded plan
// did, and does the same with their answers. At the first difference the replay leaves the recording: it fails the open turns with
// the kind mismatch, and the loop ends the run.
//
// # Two cursors
//
// A [player] walks the recording with two cursors. Events before copied are in the new log, or were
// left out on purpose. Events before given were delivered to the loop, or are not addressed to it.
// The invariant is given ≤ copied: the loop never sees an event that its own log does not have.
// Both cursors only move forward. copied runs ahead when the loop tells a fact or makes a short
// call that the recording has further on.
//
// # Two number lines
//
// The loop works in the numbers and the time of the recording, because it gets the recorded events
// as they are. The new log has other numbers. [player.renumber] and [player.renumberKey] translate
// each event on its way into the log, and nothing else does.
//
// # Ownership
//
// All state belongs to the goroutine of the loop, so there is no mutex. Nothing waits: each answer,
// and each tick of the clock, is in the recording, so Next always has an event, an end or an error
// to return.
package replay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
	"swarm/internal/recording"
	"swarm/internal/turn"
)

// Engine returns the engine that replays a recording. It is used in place of the local engine, with
// the same adapters.
func Engine(rec *recording.Recording) engine.Engine {
	return func(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
		loop := flow.Loops[c.Kind]
		if loop == nil {
			return flow.Result{}, swarm.Errorf(swarm.Storage, "there is no loop %q", c.Kind)
		}
		p := newPlayer(ctx, rec, h, c)
		r, err := loop(p, c)
		if p.hasLeft() && errors.Is(err, p.mismatched) { // No turn was open by which the loop could learn of it.
			r, err = p.endRun()
		}
		if err == nil {
			err = p.finish(r)
		}
		return r, err
	}
}

// A player is the world of one loop: it implements the effects that the loop asks for. It belongs
// to the loop's goroutine, so its fields have no mutex. Places are indexes into rec.Events.
type player struct {
	ctx    context.Context
	rec    *recording.Recording
	h      *engine.Adapters
	loop   flow.Call
	new    copier // the log of the new run
	prompt promptMaker

	// The recording.
	at      map[string]int // places by idempotency key
	opening int            // events before this place are the opening, up to the first owner
	ended   bool           // the recorded run has ended
	decided []int          // the places of what the recorded loop decided and the replayed one has not yet, in order

	// The first plan: as it was recorded, and as it is now.
	was, is *swarm.Plan
	part    bool // the plan has not all tasks and agents of the recorded one

	plans  []*swarm.Plan   // all plans of the new run
	closed map[string]bool // tasks, or agents of a team, that have ended

	// The cursors. Invariant: given ≤ copied.
	copied int          // events before this place were copied, or left out
	left   map[int]bool // the places that were left out: the loop does not get them either
	given  int          // events before this place were given to the loop, or are not addressed to it
	now    time.Time    // the recorded time of the last event given

	// The turns.
	open  map[string]*ask       // turns that the loop has asked for, and whose end it was not given
	asked map[swarm.TurnID]bool // all turns that the loop has asked for

	// How the replay left the recording.
	mismatched *swarm.Error // nil = it has not
	culprit    string       // the turn that differed; "" = it was no turn
	told       bool         // a turn was ended with the mismatch, so the loop knows of it
}

// An ask is a turn that the loop has asked for.
type ask struct {
	call    flow.Call
	started bool // its first start was copied, and its prompt is the recorded one
	matched bool // an earlier process copied it, and showed it to the observers
	start   int  // the number of its last start: a crash makes a turn start again
}

func newPlayer(ctx context.Context, rec *recording.Recording, h *engine.Adapters, c flow.Call) *player {
	p := &player{ctx: ctx, rec: rec, h: h, loop: c,
		at: map[string]int{}, left: map[int]bool{}, open: map[string]*ask{}, asked: map[swarm.TurnID]bool{}, closed: map[string]bool{}}
	// A stop ends the replay between events. It does not cancel a write that has begun.
	p.new = copier{ctx: context.WithoutCancel(ctx), log: h.Log, fence: c.Fence, file: rec.File}
	p.prompt.live, p.now = h.Turn, rec.Events[0].Time
	for i := range rec.Events {
		e := &rec.Events[i]
		if e.Key != "" {
			p.at[e.Key] = i
		}
		if e.Kind == swarm.RunOwned && p.opening == 0 {
			p.opening = i + 1
		}
		if p.isDecision(e) {
			p.decided = append(p.decided, i)
		}
	}
	_, p.ended = p.at[string(swarm.RunEnded)]
	return p
}

// Now returns the recorded time of the last event that Next returned. So timeouts expire in a
// replay when they did live.
func (p *player) Now() time.Time { return p.now }

// Go notes that the loop asks for a turn. Nothing starts: the turn's recorded events are copied
// when the cursor comes to them. A turn that the recording does not have, or has before the cursor,
// is a mismatch.
func (p *player) Go(c flow.Call) error {
	if p.open[c.ID] != nil { // made again after a change of owner
		return nil
	}
	p.open[c.ID], p.asked[swarm.TurnID(c.ID)] = &ask{call: c}, true
	if p.hasLeft() {
		return nil
	}
	first, has := p.at[swarm.StartKey(swarm.TurnID(c.ID), 1)]
	end, ends := p.at[swarm.EndKey(c.ID)]
	if !has {
		first, has = end, ends
	}
	switch {
	case ends:
		if said, err := p.compareCall(end, c); said != nil || err != nil {
			return p.leave(c.ID, said, err)
		}
		if said := p.compareExpect(c); said != nil {
			return p.leave(c.ID, said, nil)
		}
	case !has && !p.ended:
		return nil // The recorded process stopped before it began the turn.
	}
	if !has || first < p.copied {
		what := "the turn " + c.ID
		if c.Kind == flow.KindCheck {
			what = "a check of the goal"
		}
		return p.leave(c.ID, p.missing(what), nil)
	}
	return nil
}

// compareCall compares the call that the loop makes with the recorded call of the same id. It
// returns the mismatch, or nil.
func (p *player) compareCall(end int, c flow.Call) (*swarm.Error, error) {
	e, err := swarm.Body[swarm.CallEnd](&p.rec.Events[end])
	if err != nil || e.Call == c.Print() {
		return nil, err
	}
	return p.mismatch("under %s the recording has %s, and the plan asks for %s now", c.ID, callName(e.Call), callName(c.Print())), nil
}

// callName describes a call for people, by its [flow.Call.Print].
func callName(print string) string {
	part := strings.SplitN(print, " ", 4)
	if len(part) == 4 && part[0] == flow.KindTurn {
		return "the task " + part[1] + " of @" + part[2]
	}
	return swarm.Quote(print)
}

// Do answers a short call with its recorded result. Only plans are read from the new run.
func (p *player) Do(c flow.Call) (flow.Result, error) {
	if c.Kind == flow.KindPlan {
		return p.plan(c)
	}
	done := flow.Result{CallEnd: swarm.CallEnd{ID: c.ID, Status: swarm.CallOK}}
	if p.hasLeft() {
		return done, nil
	}
	i, ok := p.at[swarm.EndKey(c.ID)]
	if !ok {
		return done, p.leave("", p.missing("what the run did for "+c.ID), nil)
	}
	if said := p.compareDecision("the call "+c.ID, i); said != nil {
		return done, p.leave("", said, nil)
	}
	if said, err := p.compareCall(i, c); said != nil || err != nil {
		return done, p.leave("", said, err)
	}
	if err := p.copyTo(i + 1); err != nil || p.hasLeft() {
		return done, err
	}
	s, _, err := engine.Signal(p.rec.Events[i])
	return s.Result, err
}

// plan reads a plan of the new run. Limits on parallelism, time and cost come from the recorded
// plan: they decided the recorded order and times of events, and a replay starts nothing that they
// could hold back. So does what happens to a team without progress: its default depends on whether a
// person is at a terminal, and the people of a replay are the recorded ones.
func (p *player) plan(c flow.Call) (flow.Result, error) {
	if err := p.new.flush(); err != nil {
		return flow.Result{}, err
	}
	r, err := p.h.Call(p.ctx, p.loop.ID, c)
	if err != nil || r.Plan == nil {
		return r, err
	}
	p.plans = append(p.plans, r.Plan)
	i, ok := p.at[c.Ref]
	if !ok {
		return r, nil
	}
	was, err := swarm.Body[swarm.Plan](&p.rec.Events[i])
	if err != nil {
		return r, err
	}
	now := *r.Plan
	now.MaxParallel, now.Budget, now.Tasks = was.MaxParallel, was.Budget, slices.Clone(now.Tasks)
	for i := range now.Tasks {
		t := &now.Tasks[i]
		if j := slices.IndexFunc(was.Tasks, func(w swarm.Task) bool { return w.Name == t.Name }); j >= 0 {
			t.Concurrency, t.WaitTimeout = was.Tasks[j].Concurrency, was.Tasks[j].WaitTimeout
		}
	}
	if now.Team != nil && was.Team != nil {
		team := *now.Team
		team.ReplyTimeout, team.OnStall = was.Team.ReplyTimeout, was.Team.OnStall
		now.Team = &team
	}
	if p.is == nil { // later plans are requests of agents that were granted
		p.was, p.is, p.part = &was, &now, lacks(&was, &now)
		if e := was.Edited; e != nil { // no compose file has it
			text, _ := p.rec.Text(e.Text)
			p.prompt.edited = &turn.Edit{Turn: e.Turn, Text: string(text), Want: e.Want}
		}
	}
	r.Plan = &now
	return r, nil
}

// Tell writes a fact that the loop decides. It has to be what the recorded loop decided next. All
// events before it are copied first, so that the new log keeps the order. The content is the loop's
// present one, and not the recorded one.
//
// A part of the recorded plan decides earlier, because it waits for less. So nothing is copied
// before its facts.
func (p *player) Tell(f flow.Fact) error {
	e, old := engine.Event(p.loop.ID, f), int64(0)
	i, recorded := p.at[f.Key]
	if !p.hasLeft() {
		said, err := p.compareFact(&e)
		if err = p.leave("", said, err); err != nil {
			return err
		}
	}
	if recorded && i >= p.copied && !p.hasLeft() && !p.part {
		if err := p.copyTo(i); err != nil {
			return err
		}
		if !p.hasLeft() {
			p.copied, old = i+1, p.rec.Events[i].Seq
		}
	}
	if p.hasLeft() && !p.told && len(p.open) == 0 {
		return p.mismatched // There is no turn by which the loop could learn of it; see [Engine].
	}
	key, err := p.renumberKey(&e)
	if err != nil {
		return err
	}
	e.Key = key
	switch f.Kind {
	case swarm.TaskStarted:
		delete(p.closed, f.Task)
	case swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		p.closed[f.Task] = true
	}
	_, err = p.new.put(old, e)
	return err
}

// Next returns the next recorded event that is addressed to the loop. It ignores the timeout and
// never waits, because the recording has the ticks of the clock too. It copies up to the event
// before it gives the event to the loop: given ≤ copied.
func (p *player) Next(time.Duration) (flow.Signal, error) {
	if err := p.ctx.Err(); err != nil {
		return flow.Signal{}, context.Cause(p.ctx)
	}
	if _, cancelled, err := p.h.Log.Find(swarm.CancelReplayKey); err != nil || cancelled {
		return flow.Signal{}, cmp.Or(err, p.new.flush(), engine.ErrCancelled)
	}
	for !p.hasLeft() {
		i := p.given
		for i < len(p.rec.Events) && !p.addressed(&p.rec.Events[i]) {
			i++
		}
		if i == len(p.rec.Events) {
			if err := p.end(); err != nil {
				return flow.Signal{}, err
			}
			break
		}
		if err := p.copyTo(i + 1); err != nil {
			return flow.Signal{}, err
		}
		if p.hasLeft() {
			break
		}
		p.given = i + 1
		e := p.rec.Events[i]
		s, ok, err := engine.Signal(e)
		if err != nil {
			return s, err
		}
		if !ok || p.left[i] || e.Kind == swarm.CallEnded {
			continue
		}
		if e.Kind == swarm.TurnEnded || e.Kind == swarm.CheckEnded {
			delete(p.open, s.Result.ID)
		}
		p.now = e.Time
		return s, nil
	}
	return p.endOpenTurn()
}

// addressed reports whether a recorded event is addressed to the loop.
func (p *player) addressed(e *swarm.Event) bool {
	return slices.ContainsFunc(engine.Inbox(p.loop), func(to string) bool {
		return e.To == to || to == swarm.ToAgents && strings.HasPrefix(e.To, to)
	})
}

// end handles a loop that still waits at the end of the recording. If the recorded run has ended,
// the replay has left the recording. If the recorded run was cut off, the replay stops there too,
// with all events copied and durable.
func (p *player) end() error {
	if err := p.copyTo(len(p.rec.Events)); err != nil || p.hasLeft() {
		return err
	}
	if p.ended {
		return p.leave("", p.mismatch("the recorded run has ended, and with the plan of now it goes on"), nil)
	}
	if err := p.new.flush(); err != nil {
		return err
	}
	return swarm.Errorf(swarm.Stopped, "the recording ends here: the recorded run had not ended")
}

// finish writes the loop's end, and flushes everything that is still in the batch.
func (p *player) finish(r flow.Result) error {
	end := r.CallEnd
	end.ID, end.Call = p.loop.ID, p.loop.Print()
	e := swarm.NewEvent(swarm.LoopEnded, end)
	e.Key, e.Agent = swarm.EndKey(p.loop.ID), p.loop.Agent
	if _, err := p.new.put(0, e); err != nil {
		return err
	}
	return p.new.flush()
}
