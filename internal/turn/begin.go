package turn

import (
	"context"
	"crypto/rand"
	"errors"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/prompt"
)

// begin writes down, on disk, that the turn starts. If the turn has ended by now, its end is the answer. If another worker has
// just begun it, begin is refused with ErrStale, and this one must not call the provider. Nor must it if starts before this one
// have used the budget up.
func (r *Runner) begin(ctx context.Context, w *work) (*flow.Result, error) {
	b := swarm.Batch{Fence: w.c.Fence, Bodies: [][]byte{[]byte(w.made.Text)}}
	if w.c.Again { // else nobody can have ended it
		b.Absent = []string{swarm.EndKey(string(w.turn))}
	}
	w.start++
	start := swarm.TurnStart{Iteration: w.c.Iteration, Attempt: w.c.Attempt, Start: w.start, Owner: w.c.Fence, By: rand.Text(), Provider: w.spec.Name, Model: w.model,
		Prompt: swarm.HashOf(b.Bodies[0]), Bytes: len(w.made.Text), Spans: w.made.Spans, Inputs: w.inputs, Session: w.session, Snapshots: w.snapshots,
		Topics: w.topics, Rules: w.known, Outputs: w.outputs, Answered: w.c.Answered, Reserves: w.need}
	if w.session != "" {
		fresh := []byte(w.made.Fresh())
		start.Sent, b.Bodies = swarm.HashOf(fresh), append(b.Bodies, fresh)
	}
	b.Events = []swarm.Event{{Kind: swarm.TurnStarted, Key: swarm.StartKey(w.turn, w.start), Task: w.c.Task, Agent: w.c.Agent, Turn: w.turn, Data: swarm.Encode(start)}}
	seqs, err := r.Log.Append(ctx, b)
	r.unask(w)
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

// nextStart is the key of the start that would replace this worker's: what a turn writes is refused once that is there.
func (w *work) nextStart() string { return swarm.StartKey(w.turn, w.start+1) }

// again finds how often the turn was begun before, if it was. It goes on with the first start's prompt, since what that was made
// from may be another by now, and is told what that start had already sent.
func (r *Runner) again(w *work) (begun bool, err error) {
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
	w.snapshots, w.topics, w.known, w.outputs = first.Snapshots, first.Topics, first.Rules, first.Outputs
	w.made, w.inputs, w.session = prompt.Prompt{Text: string(text), Spans: first.Spans}.WithSent(sent), first.Inputs, first.Session
	for ok {
		w.start++
		if _, ok, err = r.Log.Find(w.nextStart()); err != nil {
			return true, err
		}
	}
	return true, nil
}

// sent is what turns have sent that stands, whatever became of them.
func (r *Runner) sent(turns ...swarm.TurnID) ([]string, error) {
	if r.AgentAPI == nil || len(turns) == 0 {
		return nil, nil
	}
	return r.AgentAPI.Sent(turns...)
}
