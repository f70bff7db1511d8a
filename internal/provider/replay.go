package provider

import (
	"context"

	"swarm"
)

// Provider answers each turn as it was recorded, and starts nothing. A turn with another prompt than the recorded one is a
// mismatch.
func (c *Cassette) Provider() Provider { return replay{c} }

// Turns are the ids of the recorded turns, in the order of the file.
func (c *Cassette) Turns() []string { return c.order }

// Turn is a recorded turn.
func (c *Cassette) Turn(id string) (t RecordedTurn, ok bool) {
	t, ok = c.turns[id]
	return t, ok
}

// Arrange has a plan run as it was recorded: its turns begin in that order, and nothing else holds them back, since nobody does any
// work.
func (c *Cassette) Arrange(p *swarm.Plan) {
	p.Order, p.MaxParallel = c.places, 0
	for i := range p.Tasks {
		p.Tasks[i].Concurrency = 0
	}
}

type replay struct{ *Cassette }

// Check says that a recording is always there.
func (replay) Check(context.Context) Health { return Health{Found: true} }

func (p replay) Turn(ctx context.Context, r Request, live func(swarm.Delta)) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, swarm.CutError(ctx)
	}
	t, ok := p.turns[r.Turn]
	if !ok {
		return Reply{}, &swarm.Error{Kind: swarm.Mismatch, File: p.file, Msg: "the turn " + r.Turn + " is not in the cassette",
			Hint: "the plan has changed since it was recorded; record the run again with --record"}
	}
	if string(t.Prompt) != r.Prompt {
		err := Differs("the prompt of the turn "+r.Turn, string(t.Prompt), r.Prompt)
		err.File = p.file
		return Reply{}, err
	}
	if live != nil {
		t.retell(live)
	}
	reply := Reply{Output: []byte(t.Output), Bytes: t.Bytes, Usage: t.Usage, Session: t.Session, Exit: t.Exit, Verdicts: t.Verdicts}
	switch t.Kind {
	case "", swarm.Unexpected: // whether the output is what was expected follows from the verdicts
		return reply, nil
	}
	return reply, &swarm.Error{Kind: t.Kind, Msg: t.Reason, Hint: t.Hint}
}

// Differs says that something is not what was recorded, and how.
func Differs(what, recorded, now string) *swarm.Error {
	return &swarm.Error{Kind: swarm.Mismatch, Msg: what + " is not the recorded one (- recorded, + now):\n" + lineDiff(recorded, now),
		Hint: "undo the change, or record the run again with --record"}
}

// retell tells what happened in the turn.
func (t RecordedTurn) retell(live func(swarm.Delta)) {
	if t.Session != "" {
		live(swarm.Delta{Kind: swarm.DeltaSession, Session: t.Session})
	}
	for _, tool := range t.Tools {
		call := tool
		call.Output, call.Failed = "", false
		live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &call})
		live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &tool})
	}
	if t.Output != "" {
		live(swarm.Delta{Kind: swarm.DeltaText, Text: string(t.Output)})
	}
}
