package turn

import (
	"context"
	"crypto/rand"
	"errors"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/prompt"
)

// begin appends the turn's start and waits until it is on disk.
//
// - If the turn has ended meanwhile, begin returns that end.
// - If another worker has just started the turn, begin fails with ErrStale.
// - If earlier starts have used up the budget, begin fails with OverBudget.
//
// In each of these cases the caller must not call the provider.
func (r *Runner) begin(ctx context.Context, w *work) (*flow.Result, error) {
	b := swarm.Batch{Fence: w.c.Fence, Bodies: [][]byte{[]byte(w.made.Text)}}
	if w.c.Again { // otherwise no other worker can have ended it
		b.Absent = []string{swarm.EndKey(string(w.turn))}
	}
	w.start++
	start := swarm.TurnStart{Iteration: w.c.Iteration, Attempt: w.c.Attempt, Start: w.start, Owner: w.c.Fence, By: rand.Text(), Provider: w.spec.Name, Model: w.model,
		Prompt: swarm.HashOf(b.Bodies[0]), Bytes: len(w.made.Text), Spans: w.made.Spans, Inputs: w.inputs, Session: w.session, Snapshots: w.snapshots,
		Topics: w.topics, Rules: w.known, Outputs: w.outputs, Answered: w.c.Answered, Reserves: w.need, Want: string(w.c.Want), Judged: w.judged}
	if start.History = w.recalled; w.session != "" || w.sent != w.made.Text {
		start.Sent, b.Bodies = swarm.HashOf([]byte(w.sent)), append(b.Bodies, []byte(w.sent))
	}
	b.Events = []swarm.Event{{Kind: swarm.TurnStarted, Key: swarm.StartKey(w.turn, w.start), Task: w.c.Task, Agent: w.c.Agent, Turn: w.turn, Data: swarm.Encode(start)}}
	seqs, err := r.Log.Append(ctx, b)
	r.clearPending(w)
	if err == nil {
		w.began = seqs[0]
	}
	if err == nil && w.need != (swarm.Usage{}) {
		return nil, r.verdict(seqs[0])
	}
	if !errors.Is(err, swarm.ErrConflict) && !errors.Is(err, swarm.ErrStale) {
		return nil, err
	}
	end, ok, err := r.Log.Find(swarm.EndKey(string(w.turn)))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, swarm.ErrStale
	}
	result, err := Answer(end)
	return &result, err
}

// nextStart is the key of the start that would replace this worker's start. Every batch of a turn
// requires that this key is absent, so a replaced worker cannot write.
func (w *work) nextStart() string { return swarm.StartKey(w.turn, w.start+1) }

// resumeStart looks for earlier starts of the turn. A turn that was started before keeps the prompt
// of its first start, because the inputs may have changed since. The prompt also lists the messages
// that the turn has sent already.
func (r *Runner) resumeStart(w *work) (begun bool, err error) {
	e, ok, err := r.Log.Find(swarm.StartKey(w.turn, 1))
	if err != nil || !ok {
		return false, err
	}
	first, err := swarm.Body[swarm.TurnStart](&e)
	if err != nil {
		return true, err
	}
	text, err := r.Log.Body(first.Prompt)
	if err != nil {
		return true, err
	}
	sent, err := r.sent(w.turn)
	if err != nil {
		return true, err
	}
	w.snapshots, w.topics, w.known, w.outputs, w.judged, w.recalled = first.Snapshots, first.Topics, first.Rules, first.Outputs, first.Judged, first.History
	w.made, w.inputs, w.session = prompt.Prompt{Text: string(text), Spans: first.Spans}.WithSent(sent), first.Inputs, first.Session
	for ok {
		w.start++
		if _, ok, err = r.Log.Find(w.nextStart()); err != nil {
			return true, err
		}
	}
	return true, nil
}

// sent lists the messages that turns have sent. They stand even if the turn failed or was cut.
func (r *Runner) sent(turns ...swarm.TurnID) ([]string, error) {
	if r.AgentAPI == nil || len(turns) == 0 {
		return nil, nil
	}
	return r.AgentAPI.Sent(turns...)
}
