package replay

import (
	"fmt"

	"swarm"
	"swarm/internal/flow"
)

// mismatch says how the run is not the recorded one.
func (p *player) mismatch(format string, args ...any) *swarm.Error {
	return &swarm.Error{Kind: swarm.Mismatch, File: p.rec.File, Msg: fmt.Sprintf(format, args...),
		Hint: "the plan has changed since it was recorded; record the run again with --record"}
}

func (p *player) missing(what string) *swarm.Error {
	return p.mismatch("%s is not in the recording", what)
}

// hasLeft says whether the replay has left the recording.
func (p *player) hasLeft() bool { return p.mismatched != nil }

// stray notes that the replay has left the recording: from here on nothing is copied. The first reason counts.
func (p *player) stray(turn string, why *swarm.Error, err error) error {
	if err == nil && !p.hasLeft() {
		p.mismatched, p.culprit = why, turn
	}
	return err
}

// endStray ends the turns that are open when the replay has left the recording, one with each call, first the one in which it
// did. The loop ends the run for that.
func (p *player) endStray() (flow.Signal, error) {
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
	c := a.call
	end := swarm.CallEnd{ID: c.ID, Call: c.Print(), Status: swarm.CallFailed, Kind: swarm.Mismatch, Unbegun: !a.started,
		Reason: p.mismatched.Error(), Hint: p.mismatched.Hint}
	if id != p.culprit && p.culprit != "" {
		end.Reason, end.Hint = "the replay has left the recording with the turn "+p.culprit, ""
	}
	e := swarm.NewEvent(swarm.TurnEnded, end)
	e.Key, e.To, e.Task, e.Agent, e.Turn = swarm.EndKey(c.ID), swarm.ToLoop(p.loop.ID), c.Task, c.Agent, swarm.TurnID(c.ID)
	if _, err := p.new.put(0, e); err != nil {
		return flow.Signal{}, err
	}
	// To the loop it is newer than all that was recorded, so that it waits for none of that any more.
	s := flow.Signal{Result: flow.Result{CallEnd: end}}
	s.Kind, s.Key, s.Agent, s.Task, s.Turn, s.Body = e.Kind, e.Key, e.Agent, e.Task, e.Turn, end
	s.Seq = p.rec.Events[len(p.rec.Events)-1].Seq
	s.Result.Seq = s.Seq
	return s, nil
}

// giveUp ends a run that has left the recording while no turn was open.
func (p *player) giveUp() (flow.Result, error) {
	end := swarm.RunEnd{Status: swarm.Failed, Exit: swarm.ExitFailed, Reason: p.mismatched.Error()}
	r := flow.Result{CallEnd: swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Mismatch, Reason: end.Reason, Hint: p.mismatched.Hint}}
	return r, p.Tell(flow.Fact{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Body: end})
}
