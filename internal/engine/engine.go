// Package engine is the contract between the loops of [swarm/internal/flow] and the engines that
// run them. It says how a loop sees a record of the log, and which adapter makes which call.
// [swarm/internal/engine/local] runs loops in this process, and [swarm/internal/engine/replay] from
// a recording.
package engine

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/fact"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/turn"
	"swarm/internal/wording"
)

// An Engine runs the loop that a call names, from the records of the run's log. It returns when the
// loop or ctx has ended. It may be called again for the same run at any time: a call whose end is
// in the log is not made again. The fence of c is the owner's. The engine sets it in every call of
// the loop, and marks the calls that may have been made before.
type Engine func(ctx context.Context, h *Adapters, c flow.Call) (flow.Result, error)

// ErrCancelled ends the engine of a replay that a person has cancelled, see [swarm.CancelReplayKey].
var ErrCancelled = errors.New("the replay was cancelled")

// Adapters make the calls of a run's loops.
type Adapters struct {
	Log    swarm.Log
	Turn   *turn.Runner
	Mailer Mailer // nil = no loop of this run writes to agents
}

// A Mailer writes to agents in the name of the run. Its methods are idempotent, because a resumed
// loop repeats its calls. Those that give an agent a turn return the sequence number of the newest
// envelope that does.
type Mailer interface {
	Overdue(ctx context.Context, envelope string, over bool) (int64, error)
	Return(ctx context.Context, agent string, why swarm.Message) (int64, error)
	Note(ctx context.Context, id, agent string, m swarm.Message) error
	Urge(ctx context.Context, id, agent string, m swarm.Message) (int64, error)
	Grant(ctx context.Context, fence int64, request string) (int64, error)
	Divide(ctx context.Context, fence int64, turn string) (int64, error)
	Assign(ctx context.Context, fence int64, entry string) (int64, error)
}

// Call makes one call for a loop. A call with an effect appends its end to the log, addressed to
// the loop. Repeating the call finds that end. Reading a plan has no effect and leaves no record,
// because a stored plan never changes.
func (a *Adapters) Call(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	if c.Again {
		if e, ok, err := a.Log.Find(swarm.EndKey(c.ID)); err != nil {
			return flow.Result{}, err
		} else if ok {
			return turn.Answer(e)
		}
	}
	switch c.Kind {
	case flow.KindTurn:
		return a.Turn.Do(ctx, loop, c)
	case flow.KindAction:
		return a.Turn.Act(ctx, loop, c)
	case flow.KindCheck:
		return a.Turn.Check(ctx, loop, c)
	case flow.KindPlan:
		p, err := a.Turn.Plan(c.Ref)
		return flow.Result{CallEnd: swarm.CallEnd{ID: c.ID, Status: swarm.CallOK}, Plan: p}, err
	}
	if a.Mailer == nil {
		return flow.Result{}, swarm.Errorf(swarm.Storage, "no adapter makes the call %s of kind %q", c.ID, c.Kind)
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
	case flow.KindAssign:
		wrote, err = a.Mailer.Assign(ctx, c.Fence, c.Ref)
	case flow.KindDivide:
		wrote, err = a.Mailer.Divide(ctx, c.Fence, c.Ref)
	default:
		err = swarm.Errorf(swarm.Storage, "no adapter makes the call %s of kind %q", c.ID, c.Kind)
	}
	if err != nil {
		return flow.Result{}, err
	}
	return a.endCall(ctx, loop, c, wrote)
}

// endCall appends the end of a call that succeeded.
func (a *Adapters) endCall(ctx context.Context, loop string, c flow.Call, wrote int64) (flow.Result, error) {
	end := swarm.CallEnd{ID: c.ID, Call: c.Print(), Status: swarm.CallOK, Wrote: wrote}
	seqs, err := a.Log.Append(ctx, swarm.Batch{Fence: c.Fence, Events: []swarm.Event{{Kind: swarm.CallEnded, Key: swarm.EndKey(c.ID), To: swarm.ToLoop(loop), Agent: c.Agent, Data: swarm.Encode(end)}}})
	if err != nil {
		return flow.Result{}, err
	}
	return flow.Result{CallEnd: end, Seq: seqs[0]}, nil
}

// Event makes the event for a fact that a loop tells. The texts of its messages are made here.
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

// Inbox lists the addresses whose records a loop gets: its own, control, and the mail of its
// agents.
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

// readers has the kinds of records that are signals for a loop, each with its decoder. The others
// that are addressed to a loop are facts that it told itself. A signal without a decoder has no
// body: the loop reads a plan by a call.
var readers = map[swarm.EventKind]func(s *flow.Signal, e *swarm.Event) error{
	swarm.TurnEnded: readEnd, swarm.ActionEnded: readEnd, swarm.CheckEnded: readEnd, swarm.LoopEnded: readEnd, swarm.CallEnded: readEnd,
	swarm.HandoffStored: readMail,
	swarm.Control:       readFact, swarm.ApprovalAsked: readFact, swarm.ApprovalAnswered: readFact,
	swarm.WaitBegan: readFact, swarm.WaitEnded: readFact, swarm.RunOwned: readFact,
	swarm.PlanAdded: nil, swarm.Tick: nil,
}

// IsSignal reports whether the records of a kind are signals for a loop.
func IsSignal(kind swarm.EventKind) bool {
	_, ok := readers[kind]
	return ok
}

// Signal decodes a record for a loop.
func Signal(e swarm.Event) (s flow.Signal, ok bool, err error) {
	s.Fact = fact.Head(&e)
	read, ok := readers[e.Kind]
	if read != nil {
		err = read(&s, &e)
	}
	return s, ok, err
}

func readEnd(s *flow.Signal, e *swarm.Event) (err error) {
	s.Result, err = turn.Answer(*e)
	s.Body = s.Result.CallEnd
	return err
}

func readMail(s *flow.Signal, e *swarm.Event) (err error) {
	s.Body, err = mailOf(e)
	return err
}

func readFact(s *flow.Signal, e *swarm.Event) (err error) {
	s.Fact, _, err = fact.Of(e)
	return err
}

// mailOf decodes an envelope for a loop. Unlike other readers a loop detects repeated messages, so
// it gets a hash of the content.
func mailOf(e *swarm.Event) (m plan.Mail, err error) {
	stored, err := swarm.Body[swarm.StoredEnvelope](e)
	if err != nil {
		return m, err
	}
	m = fact.Mail(e, &stored)
	m.Says = string(swarm.HashOf(swarm.Encode(stored.Payload)))
	return m, nil
}
