package turn

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/prompt"
)

// begin writes down, on disk, that the turn starts. When an earlier process had started it, it goes on with that one's prompt;
// when it had ended it, its end is the answer.
func (h *Hand) begin(ctx context.Context, w *work) (*flow.Result, error) {
	for {
		start := swarm.TurnStart{Iteration: w.c.Iteration, Attempt: w.c.Attempt, Start: w.start, Owner: h.Fence, Provider: w.spec.Name, Model: w.model,
			Prompt: swarm.HashOf([]byte(w.made.Text)), Bytes: len(w.made.Text), Spans: w.made.Spans, Inputs: w.inputs, Session: w.session, Trees: w.trees,
			Topics: w.topics, Answered: w.c.Answered}
		bodies := [][]byte{[]byte(w.made.Text)}
		if w.session != "" {
			fresh := []byte(w.made.Fresh())
			start.Sent, bodies = swarm.HashOf(fresh), append(bodies, fresh)
		}
		_, err := h.Log.Append(ctx, swarm.Batch{Fence: h.Fence, Bodies: bodies, Events: []swarm.Event{{Kind: swarm.TurnStarted,
			Key: swarm.StartKey(w.c.ID, w.start), Task: w.c.Task, Agent: w.c.Agent, Turn: w.c.ID, Data: swarm.Encode(start)}}})
		if !errors.Is(err, swarm.ErrConflict) {
			return nil, err
		}
		if end, ok, err := h.Log.Find(swarm.EndKey(w.c.ID)); err != nil || ok {
			r, err2 := Answer(end)
			return &r, errors.Join(err, err2)
		}
		if _, err := h.again(w); err != nil {
			return nil, err
		}
	}
}

// again makes w the next start of a turn that was begun before, if it was. It has the first start's prompt, since what that was
// made from may be another by now, and is told what that start had already sent.
func (h *Hand) again(w *work) (begun bool, err error) {
	e, ok, err := h.Log.Find(swarm.StartKey(w.c.ID, 1))
	if err != nil || !ok {
		return false, err
	}
	first, err := swarm.Body[swarm.TurnStart](&e)
	if err != nil {
		return true, err
	}
	text, err := h.Log.Body(first.Prompt)
	if err != nil {
		return true, err
	}
	sent, err := h.sent(w.c.ID)
	if err != nil {
		return true, err
	}
	w.trees, w.topics = first.Trees, first.Topics
	w.made, w.inputs, w.session = prompt.Prompt{Text: string(text), Spans: first.Spans}.WithSent(sent), first.Inputs, first.Session
	for w.start = 2; ok; w.start++ {
		if _, ok, err = h.Log.Find(swarm.StartKey(w.c.ID, w.start)); err != nil || !ok {
			return true, err
		}
	}
	return true, nil
}

// sent is what turns have sent that stands, whatever became of them.
func (h *Hand) sent(turns ...string) ([]string, error) {
	if h.Office == nil || len(turns) == 0 {
		return nil, nil
	}
	return h.Office.Sent(turns...)
}
