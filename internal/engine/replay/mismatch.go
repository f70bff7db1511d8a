package replay

import (
	"fmt"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
)

// mismatch returns the error for a run that does not match its recording.
func (p *player) mismatch(format string, args ...any) *swarm.Error {
	return &swarm.Error{Kind: swarm.Mismatch, File: p.rec.File, Msg: fmt.Sprintf(format, args...),
		Hint: "the plan has changed since it was recorded; record the run again with --record"}
}

// missing returns the mismatch for something that the loop asks for and the recording does not
// have.
func (p *player) missing(what string) *swarm.Error {
	return p.mismatch("%s is not in the recording%s", what, p.changed())
}

// hasLeft reports whether the replay has left the recording. It never returns to it.
func (p *player) hasLeft() bool { return p.mismatched != nil }

// leave notes why the replay leaves the recording, unless err stops it anyway. Only the first
// reason is kept, because later ones follow from it. From here on both cursors stand still: nothing
// more is copied, and the loop gets no more recorded events.
func (p *player) leave(turn string, why *swarm.Error, err error) error {
	if err == nil && why != nil && !p.hasLeft() {
		p.mismatched, p.culprit = why, turn
	}
	return err
}

// endOpenTurn ends one open turn of a replay that has left the recording, as failed with the kind
// mismatch. The culprit is first, because the loop ends the run for the first such turn and reports
// its reason. The others follow in the order of their ids, one with each call. A turn whose recorded
// end was copied, and not given to the loop yet, has that end. Without an open turn there is no
// signal to give, so the mismatch itself is the error; [Engine] handles it.
func (p *player) endOpenTurn() (flow.Signal, error) {
	id := p.culprit
	if p.open[id] == nil {
		for other := range p.open {
			if id == p.culprit || other < id {
				id = other
			}
		}
	}
	a := p.open[id]
	if a == nil {
		return flow.Signal{}, p.mismatched
	}
	delete(p.open, id)
	p.told = true
	c := a.call
	// The signal has the last recorded number. So the loop, which knows recorded numbers only,
	// takes it for newer than every recorded event, and waits for none of them any more.
	last := p.rec.Events[len(p.rec.Events)-1].Seq
	if i, ok := p.at[swarm.EndKey(c.ID)]; ok && i < p.copied && !p.left[i] { // The log has its end already.
		s, _, err := engine.Signal(p.rec.Events[i])
		s.Seq, s.Result.Seq = last, last
		return s, err
	}
	end := swarm.CallEnd{ID: c.ID, Call: c.Print(), Status: swarm.CallFailed, Kind: swarm.Mismatch, Unbegun: !a.started,
		Reason: p.mismatched.Error(), Hint: p.mismatched.Hint}
	if id != p.culprit && p.culprit != "" {
		end.Reason, end.Hint = "the replay has left the recording with the turn "+p.culprit, ""
	}
	e := swarm.NewEvent(swarm.TurnEnded, end)
	e.Key, e.To, e.Task, e.Agent, e.Turn = swarm.EndKey(c.ID), swarm.ToLoop(p.loop.ID), c.Task, c.Agent, swarm.TurnID(c.ID)
	if c.Kind == flow.KindCheck { // it is the run's, and not its lead's
		e.Kind, e.Task, e.Agent, e.Turn = swarm.CheckEnded, "", "", ""
	}
	if _, err := p.new.put(0, e); err != nil {
		return flow.Signal{}, err
	}
	s := flow.Signal{Result: flow.Result{CallEnd: end}}
	s.Kind, s.Key, s.Agent, s.Task, s.Turn, s.Body = e.Kind, e.Key, e.Agent, e.Task, e.Turn, end
	s.Seq, s.Result.Seq = last, last
	return s, nil
}

// endRun ends a run that has left the recording while no turn was open. The loop had no turn to
// fail, so it could not end the run, nor its tasks.
func (p *player) endRun() (flow.Result, error) {
	p.told = true
	for _, plan := range p.plans {
		for _, t := range plan.Tasks {
			if err := p.cancelTask(t.Name, t.Agent); err != nil {
				return flow.Result{}, err
			}
		}
		for _, a := range plan.Agents {
			if plan.Kind.Team() {
				if err := p.cancelTask(a.Name, a.Name); err != nil {
					return flow.Result{}, err
				}
			}
		}
	}
	end := swarm.RunEnd{Status: swarm.Failed, Exit: swarm.ExitFailed, Reason: p.mismatched.Error()}
	r := flow.Result{CallEnd: swarm.CallEnd{
		Status: swarm.CallFailed, Kind: swarm.Mismatch, Reason: end.Reason, Hint: p.mismatched.Hint}}
	return r, p.Tell(flow.Fact{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Body: end})
}

// cancelTask cancels a task, or an agent of a team, that has not ended when the replay leaves the
// recording.
func (p *player) cancelTask(name, agent string) error {
	if p.closed[name] {
		return nil
	}
	return p.Tell(flow.Fact{Kind: swarm.TaskCancelled, Key: "left:" + name, Task: name, Agent: agent,
		Body: swarm.TaskEnd{Iteration: 1, Kind: swarm.Mismatch, Reason: "the replay has left the recording"}})
}
