// Package engine runs loops. It is the contract between the loops and whatever runs them: what a record in the log is to a
// loop, and which adapter does which call. [swarm/internal/engine/local] runs them in this process, and
// [swarm/internal/engine/replay] from a recording.
package engine

import (
	"context"

	"swarm"
	"swarm/internal/fact"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/turn"
	"swarm/internal/wording"
)

// An Engine runs the loop that a call names, from the records of the run's log, and returns when the loop has ended or ctx has.
// It may be asked again for the same run at any time: calls whose ends are in the log are not made again. The fence of c is that of
// the run's owner; the engine gives it to every call that the loop makes, and says which of them may have been made before.
type Engine func(ctx context.Context, h *Adapters, c flow.Call) (flow.Result, error)

// Adapters do the calls of a run's loops.
type Adapters struct {
	Log    swarm.Log
	Turn   *turn.Runner
	Mailer Mailer // nil = no loop of this run writes to agents
}

// A Mailer writes to agents in the name of the run. Asked for the same again, it does nothing. What gives somebody a turn has a number,
// that of the newest envelope that does.
type Mailer interface {
	Overdue(ctx context.Context, envelope string, over bool) (int64, error)
	Return(ctx context.Context, agent string, why swarm.Message) (int64, error)
	Note(ctx context.Context, id, agent string, m swarm.Message) error
	Urge(ctx context.Context, id, agent string, m swarm.Message) (int64, error)
	Grant(ctx context.Context, fence int64, wish string) (int64, error)
}

// Call does one call for a loop. A call that changes something appends its end to the log, addressed to the loop; done again, it
// finds that end. Reading a plan changes nothing and leaves no record: a stored plan never changes.
func (a *Adapters) Call(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	switch c.Kind {
	case flow.KindTurn:
		return a.Turn.Do(ctx, loop, c)
	case flow.KindPlan:
		p, err := a.Turn.Plan(c.Ref)
		return flow.Result{CallEnd: swarm.CallEnd{ID: c.ID, Status: swarm.CallOK}, Plan: p}, err
	}
	if a.Mailer == nil {
		return flow.Result{}, swarm.Errorf(swarm.Storage, "nothing here does the call %s of kind %q", c.ID, c.Kind)
	}
	var wrote int64
	var err error
	switch c.Kind {
	case flow.KindRemind, flow.KindGiveUp:
		wrote, err = a.Mailer.Overdue(ctx, c.Ref, c.Kind == flow.KindGiveUp)
	case flow.KindUrge:
		wrote, err = a.Mailer.Urge(ctx, c.ID, c.Agent, c.Note)
	case flow.KindNote:
		err = a.Mailer.Note(ctx, c.ID, c.Agent, c.Note)
	case flow.KindReturn:
		wrote, err = a.Mailer.Return(ctx, c.Agent, c.Note)
	case flow.KindGrant:
		wrote, err = a.Mailer.Grant(ctx, c.Fence, c.Ref)
	default:
		err = swarm.Errorf(swarm.Storage, "nothing here does the call %s of kind %q", c.ID, c.Kind)
	}
	if err != nil {
		return flow.Result{}, err
	}
	return a.short(ctx, loop, c, wrote)
}

// short ends a call that was done.
func (a *Adapters) short(ctx context.Context, loop string, c flow.Call, wrote int64) (flow.Result, error) {
	end := swarm.CallEnd{ID: c.ID, Call: c.Print(), Status: swarm.CallOK, Wrote: wrote}
	seqs, err := a.Log.Append(ctx, swarm.Batch{Fence: c.Fence, Events: []swarm.Event{{Kind: swarm.CallEnded, Key: swarm.EndKey(c.ID), To: swarm.ToLoop(loop), Agent: c.Agent, Data: swarm.Encode(end)}}})
	if err != nil {
		return flow.Result{}, err
	}
	return flow.Result{CallEnd: end, Seq: seqs[0]}, nil
}

// Event is the event that a fact of a loop becomes. The sentences of what it says are made here.
func Event(loop string, f flow.Fact) swarm.Event {
	body := f.Body
	switch b := body.(type) {
	case swarm.Reason:
		body = wording.Reason(b)
	case swarm.RunEnd:
		if b.Why != nil {
			b.Reason = wording.Text(*b.Why)
		}
		body = b
	}
	e := swarm.NewEvent(f.Kind, body)
	e.Key, e.To, e.Agent, e.Task, e.Turn = f.Key, swarm.ToLoop(loop), f.Agent, f.Task, f.Turn
	return e
}

// Inbox lists whose records a loop is given: its own, everybody's control, and its agent's mail.
func Inbox(c flow.Call) []string {
	inbox := []string{swarm.ToLoop(c.ID), swarm.ToControl}
	if c.Kind == "team" {
		inbox = append(inbox, swarm.ToAgents)
	}
	if c.Agent != "" {
		inbox = append(inbox, swarm.ToAgent(c.Agent))
	}
	return inbox
}

// Signal reads a record as a loop sees it. Facts that the loop itself has told are none. A plan has no body: the loop
// asks for it.
func Signal(e swarm.Event) (s flow.Signal, ok bool, err error) {
	s.Fact = fact.Head(&e)
	switch e.Kind {
	case swarm.TurnEnded, swarm.LoopEnded, swarm.CallEnded:
		s.Result, err = turn.Answer(e)
		s.Body = s.Result.CallEnd
	case swarm.HandoffStored:
		s.Body, err = mailOf(&e)
	case swarm.Control, swarm.ApprovalAsked, swarm.ApprovalAnswered, swarm.WaitBegan, swarm.WaitEnded:
		s.Fact, _, err = fact.Of(&e)
	case swarm.PlanAdded, swarm.Tick, swarm.RunOwned:
	default:
		return s, false, nil
	}
	return s, true, err
}

// mailOf is what a loop has to know of an envelope: it also looks whether the same is written again.
func mailOf(e *swarm.Event) (m plan.Mail, err error) {
	stored, err := swarm.Body[swarm.StoredEnvelope](e)
	if err != nil {
		return m, err
	}
	m = fact.Mail(e, &stored)
	m.Says = string(swarm.HashOf(swarm.Encode(stored.Payload)))
	return m, nil
}
