package a2a

import (
	"context"
	"errors"
	"slices"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/feed"
	"swarm/internal/view"
)

type update = feed.Update

// errEnough stops following a run: the follower has what it needs.
var errEnough = errors.New("enough")

// An updateStream sends the updates of a task to one client.
type updateStream struct {
	*task
	yield  func(wire.Event, error) bool
	state  wire.TaskState // the last state that was sent
	reason string         // and its explanation
	turn   swarm.TurnID   // the agent's turn whose text was sent last
	spoken string         // the text of that turn that was sent
}

// stream sends a task as it is now, and then its updates, until it has ended or needs the client.
func (h *handler) stream(ctx context.Context, t *task, yield func(wire.Event, error) bool) {
	whole, err := t.whole(nil)
	if err != nil {
		yield(nil, protocolError(ctx, err))
		return
	}
	c := &updateStream{task: t, yield: yield, state: whole.Status.State, reason: t.why(whole.Status.State)}
	if !yield(whole, nil) || settled(c.state) {
		return
	}
	err = h.Feed.Follow(ctx, t.id, t.run.Seq, c.update)
	if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		yield(nil, protocolError(ctx, err))
	}
}

// update sends the client what one update changes.
func (c *updateStream) update(m update) error {
	if m.Event == nil {
		if m.Agent == c.agent && m.Kind == string(swarm.DeltaText) && c.runs(m.Turn) {
			return c.sendDelta(m.Turn, m.Text)
		}
		return nil
	}
	if err := c.apply(m.Event); err != nil {
		return err
	}
	switch {
	case m.Event.Kind == swarm.ArtifactStored:
		if err := c.sendArtifact(); err != nil {
			return err
		}
	case m.Event.Kind == swarm.TurnEnded && m.Agent == c.agent:
		if err := c.sendOutput(m.Turn); err != nil {
			return err
		}
	}
	return c.sendStatus()
}

// runs reports whether a turn still runs. Deltas of an ended turn may arrive late; the client has
// its output already.
func (c *updateStream) runs(turn swarm.TurnID) bool {
	return slices.ContainsFunc(c.Turns, func(t view.Turn) bool { return t.ID == turn && t.Status == swarm.Running })
}

// give sends an event to the client.
func (c *updateStream) give(e wire.Event) error {
	if !c.yield(e, nil) {
		return errEnough
	}
	return nil
}

// sendDelta sends a piece of the agent's output. The first piece of a turn replaces the earlier
// output.
func (c *updateStream) sendDelta(turn swarm.TurnID, text string) error {
	more := turn == c.turn
	if !more {
		c.turn, c.spoken = turn, ""
	}
	c.spoken += text
	return c.chunk(text, more, false)
}

func (c *updateStream) chunk(text string, more, last bool) error {
	i := c.info()
	return c.give(&wire.TaskArtifactUpdateEvent{TaskID: i.TaskID, ContextID: i.ContextID, Artifact: c.outputArtifact(text), Append: more, LastChunk: last})
}

// sendOutput sends the whole output at the end of a turn, if it differs from the pieces that were
// sent. Pieces may have been lost, and the output of a failed turn does not replace a good one.
func (c *updateStream) sendOutput(turn swarm.TurnID) error {
	text, err := c.output()
	if err != nil || text == "" || turn == c.turn && text == c.spoken {
		return err
	}
	c.turn, c.spoken = turn, text
	return c.chunk(text, false, true)
}

// sendArtifact sends the artifact that was stored last.
func (c *updateStream) sendArtifact() error {
	all, err := c.artifacts()
	if err != nil || len(all) == 0 {
		return err
	}
	i := c.info()
	return c.give(&wire.TaskArtifactUpdateEvent{TaskID: i.TaskID, ContextID: i.ContextID, Artifact: all[len(all)-1], LastChunk: true})
}

// sendStatus sends the state of the task, if it has changed.
func (c *updateStream) sendStatus() error {
	s := c.status()
	reason := c.why(s.State)
	if s.State == c.state && reason == c.reason {
		return nil
	}
	c.state, c.reason = s.State, reason
	c.noteShown()
	i := c.info()
	if err := c.give(&wire.TaskStatusUpdateEvent{TaskID: i.TaskID, ContextID: i.ContextID, Status: s}); err != nil {
		return err
	}
	if settled(s.State) {
		return errEnough
	}
	return nil
}

// wait waits until a task has ended or needs the client.
func (h *handler) wait(ctx context.Context, id wire.TaskID) error {
	reader, t, err := h.open(ctx, id)
	if err != nil {
		return err
	}
	defer reader.Close()
	if settled(t.state()) {
		return nil
	}
	err = h.Feed.Follow(ctx, t.id, t.run.Seq, func(m update) error {
		if m.Event == nil {
			return nil
		}
		if err := t.apply(m.Event); err != nil {
			return err
		}
		if settled(t.state()) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
