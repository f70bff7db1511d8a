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

// errEnough ends the following of a run by who has heard what he wanted.
var errEnough = errors.New("enough")

// An updateStream tells a client what happens to a task.
type updateStream struct {
	*task
	yield  func(wire.Event, error) bool
	state  wire.TaskState // that the client was told last, with why
	reason string
	turn   swarm.TurnID // of the agent: the one whose words the client is given
	spoken string       // and what it was given of it
}

// tell tells a task: first as it is, then what happens, until nothing more happens without the client.
func (h *handler) tell(ctx context.Context, t *task, yield func(wire.Event, error) bool) {
	whole, err := t.whole(nil)
	if err != nil {
		yield(nil, protocolError(ctx, err))
		return
	}
	c := &updateStream{task: t, yield: yield, state: whole.Status.State, reason: t.why(whole.Status.State)}
	if !yield(whole, nil) || settled(c.state) {
		return
	}
	err = h.Feed.Follow(ctx, t.id, t.run.Seq, c.hear)
	if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		yield(nil, protocolError(ctx, err))
	}
}

// hear tells the client of one thing that happened.
func (c *updateStream) hear(m update) error {
	if m.Event == nil {
		if m.Agent == c.agent && m.Kind == string(swarm.DeltaText) && c.runs(m.Turn) {
			return c.say(m.Turn, m.Text)
		}
		return nil
	}
	if err := c.take(m.Event); err != nil {
		return err
	}
	switch {
	case m.Event.Kind == swarm.ArtifactStored:
		if err := c.keep(); err != nil {
			return err
		}
	case m.Event.Kind == swarm.TurnEnded && m.Agent == c.agent:
		if err := c.end(m.Turn); err != nil {
			return err
		}
	}
	return c.stand()
}

// runs says whether a turn still runs. What comes later of one that has ended, the client has already been given.
func (c *updateStream) runs(turn swarm.TurnID) bool {
	return slices.ContainsFunc(c.Turns, func(t view.Turn) bool { return t.ID == turn && t.Status == swarm.Running })
}

// give gives the client something.
func (c *updateStream) give(e wire.Event) error {
	if !c.yield(e, nil) {
		return errEnough
	}
	return nil
}

// say gives a piece of what the agent says. The first of a turn takes the place of what it said before.
func (c *updateStream) say(turn swarm.TurnID, text string) error {
	more := turn == c.turn
	if !more {
		c.turn, c.spoken = turn, ""
	}
	c.spoken += text
	return c.chunk(text, more, false)
}

func (c *updateStream) chunk(text string, more, last bool) error {
	i := c.info()
	return c.give(&wire.TaskArtifactUpdateEvent{TaskID: i.TaskID, ContextID: i.ContextID, Artifact: c.said(text), Append: more, LastChunk: last})
}

// end gives what the agent has said in a turn, if that is not what the client was given piece by piece: some of it may have been
// missing, or it did not count.
func (c *updateStream) end(turn swarm.TurnID) error {
	text, err := c.output()
	if err != nil || text == "" || turn == c.turn && text == c.spoken {
		return err
	}
	c.turn, c.spoken = turn, text
	return c.chunk(text, false, true)
}

// keep gives the artifact that was kept last.
func (c *updateStream) keep() error {
	all, err := c.artifacts()
	if err != nil || len(all) == 0 {
		return err
	}
	i := c.info()
	return c.give(&wire.TaskArtifactUpdateEvent{TaskID: i.TaskID, ContextID: i.ContextID, Artifact: all[len(all)-1], LastChunk: true})
}

// stand tells where the task stands, if that is new.
func (c *updateStream) stand() error {
	s := c.status()
	reason := c.why(s.State)
	if s.State == c.state && reason == c.reason {
		return nil
	}
	c.state, c.reason = s.State, reason
	c.tell()
	i := c.info()
	if err := c.give(&wire.TaskStatusUpdateEvent{TaskID: i.TaskID, ContextID: i.ContextID, Status: s}); err != nil {
		return err
	}
	if settled(s.State) {
		return errEnough
	}
	return nil
}

// wait waits until nothing more happens to a task without the client.
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
		if err := t.take(m.Event); err != nil {
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
