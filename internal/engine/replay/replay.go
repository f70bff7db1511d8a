// Package replay is an engine that reaches no agent: it walks a recording and answers the calls of a loop from it.
//
// The loop is the one that runs live, and the run is a new one with a log of its own. What was recorded is copied into that log
// in its order, under new numbers, as the loop comes to it; what the loop itself decides is written as the loop says it now. A
// prompt is made again for every turn, from the new log, and held against the recorded one. So a replay shows whether the plan
// of now asks its agents the same as the plan that was recorded, and no agent, clock or person has a part in it.
//
// The loop lives in the numbers and the time of the recording: it is given the recorded events as they are, and [player.renumber]
// translates what is written. All is done in the goroutine of the loop, and nothing waits.
package replay

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
	"swarm/internal/recording"
)

// Engine is the engine that replays a recording.
func Engine(rec *recording.Recording) engine.Engine {
	return func(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
		loop := flow.Loops[c.Kind]
		if loop == nil {
			return flow.Result{}, swarm.Errorf(swarm.Storage, "there is no loop %q", c.Kind)
		}
		p := newPlayer(ctx, rec, h, c)
		r, err := loop(p, c)
		if p.hasLeft() && errors.Is(err, p.mismatched) { // no turn was left that could have told the loop so
			r, err = p.giveUp()
		}
		if err == nil {
			err = p.finish(r)
		}
		return r, err
	}
}

// A player is what one loop asks of the world. It belongs to the loop's goroutine.
type player struct {
	ctx    context.Context
	rec    *recording.Recording
	h      *engine.Adapters
	loop   flow.Call
	new    copier // the log of the new run
	prompt promptMaker

	at         map[string]int        // recorded events by key
	opening    int                   // those before it tell how the run began, up to its first owner; the new run began by itself
	owned      int64                 // where the new log has its first owner
	ended      bool                  // the recorded run has ended
	copied     int                   // those before it were copied, or left out
	left       map[int]bool          // left out
	given      int                   // those before it were given to the loop, or are not for it
	now        time.Time             // of the last one given
	open       map[string]*ask       // turns that the loop has asked for, and whose end it was not given
	asked      map[swarm.TurnID]bool // all turns that it has asked for
	mismatched *swarm.Error          // how the replay has left the recording; nil = it has not
	culprit    string                // the turn in which it did, if it was one
}

// An ask is a turn that the loop has asked for.
type ask struct {
	call    flow.Call
	started bool
	matched bool // it was copied by an earlier process, and shown by it
	start   int
}

func newPlayer(ctx context.Context, rec *recording.Recording, h *engine.Adapters, c flow.Call) *player {
	p := &player{ctx: ctx, rec: rec, h: h, loop: c, at: map[string]int{}, left: map[int]bool{}, open: map[string]*ask{}, asked: map[swarm.TurnID]bool{}}
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
	}
	_, p.ended = p.at[string(swarm.RunEnded)]
	return p
}

// Now is the time of the last record that Next returned, in the recorded run.
func (p *player) Now() time.Time { return p.now }

// Go notes that the loop asks for a turn. What the recording has of it is copied when its place comes.
func (p *player) Go(c flow.Call) error {
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
		if said, err := p.saidOf(end, c); said != nil || err != nil {
			return p.stray(c.ID, said, err)
		}
	case !has && !p.ended:
		return nil // the process that was recorded did not come to begin it
	}
	if !has || first < p.copied {
		return p.stray(c.ID, p.missing("the turn "+c.ID), nil)
	}
	return nil
}

// saidOf says why the recorded end of a call is not that of the call that the loop makes, if it is not.
func (p *player) saidOf(end int, c flow.Call) (*swarm.Error, error) {
	e, err := swarm.Body[swarm.CallEnd](&p.rec.Events[end])
	if err != nil || e.Call == c.Print() {
		return nil, err
	}
	return p.mismatch("the recording has %q under %s, and the plan asks for %q now", e.Call, c.ID, c.Print()), nil
}

// Do answers a short call as it was answered. A plan is the new run's own.
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
		return done, p.stray("", p.missing("what the run did for "+c.ID), nil)
	}
	if said, err := p.saidOf(i, c); said != nil || err != nil {
		return done, p.stray("", said, err)
	}
	if err := p.copyTo(i + 1); err != nil || p.hasLeft() {
		return done, err
	}
	s, _, err := engine.Signal(p.rec.Events[i])
	return s.Result, err
}

// plan reads a plan of the new run. What only holds turns back, or gives them time, is taken from the recorded plan: nothing is
// started here, and time is the recorded one.
func (p *player) plan(c flow.Call) (flow.Result, error) {
	if err := p.new.flush(); err != nil {
		return flow.Result{}, err
	}
	r, err := p.h.Call(p.ctx, p.loop.ID, c)
	i, ok := p.at[c.Ref]
	if err != nil || r.Plan == nil || !ok {
		return r, err
	}
	was, err := swarm.Body[swarm.Plan](&p.rec.Events[i])
	if err != nil {
		return r, err
	}
	now := *r.Plan
	now.MaxParallel, now.Budget.Wall, now.Tasks = was.MaxParallel, was.Budget.Wall, slices.Clone(now.Tasks)
	for i := range now.Tasks {
		t := &now.Tasks[i]
		if j := slices.IndexFunc(was.Tasks, func(w swarm.Task) bool { return w.Name == t.Name }); j >= 0 {
			t.Concurrency, t.WaitTimeout = was.Tasks[j].Concurrency, was.Tasks[j].WaitTimeout
		}
	}
	if now.Team != nil && was.Team != nil {
		team := *now.Team
		team.ReplyTimeout = was.Team.ReplyTimeout
		now.Team = &team
	}
	r.Plan = &now
	return r, nil
}

// Tell writes what the loop decides, in the place that it had in the recording if it has one there. The loop's words count, and not
// the recorded ones.
func (p *player) Tell(f flow.Fact) error {
	e, old := engine.Event(p.loop.ID, f), int64(0)
	if i, ok := p.at[f.Key]; ok && i >= p.copied && !p.hasLeft() {
		if err := p.copyTo(i); err != nil {
			return err
		}
		if !p.hasLeft() {
			p.copied, old = i+1, p.rec.Events[i].Seq
		}
	}
	key, err := p.renumberKey(&e)
	if err != nil {
		return err
	}
	e.Key = key
	_, err = p.new.put(old, e)
	return err
}

// Next is the next recorded event that is addressed to the loop. Ticks are among them.
func (p *player) Next(time.Duration) (flow.Signal, error) {
	if err := p.ctx.Err(); err != nil {
		return flow.Signal{}, context.Cause(p.ctx)
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
		if e.Kind == swarm.TurnEnded {
			delete(p.open, s.Result.ID)
		}
		p.now = e.Time
		return s, nil
	}
	return p.endStray()
}

// addressed says whether a recorded event is one for the loop.
func (p *player) addressed(e *swarm.Event) bool {
	return slices.ContainsFunc(engine.Inbox(p.loop), func(to string) bool {
		return e.To == to || to == swarm.ToAgents && strings.HasPrefix(e.To, to)
	})
}

// end is what becomes of a loop that still waits at the end of the recording. If the recorded run has ended, this one has left the
// recording. If it has not, nobody can say how it goes on.
func (p *player) end() error {
	if err := p.copyTo(len(p.rec.Events)); err != nil || p.hasLeft() {
		return err
	}
	if p.ended {
		return p.stray("", p.mismatch("the recorded run has ended, and with the plan of now it goes on"), nil)
	}
	if err := p.new.flush(); err != nil {
		return err
	}
	return swarm.Errorf(swarm.Stopped, "the recording ends here: the recorded run had not ended")
}

// finish writes down the loop's own end, and with it all that was told.
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
