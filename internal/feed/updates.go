package feed

import (
	"bytes"
	"context"
	"encoding/json"

	"swarm"
)

// An Update is one thing that happens in a run: an event, or a delta of a turn.
type Update struct {
	Event      *swarm.Event // nil = a delta
	Agent      string
	Turn       swarm.TurnID
	Kind, Text string // of a delta
}

// Follow calls fn with the events after a number, and then with everything that happens. It uses
// the follower that streams use. It returns when there is nothing more, when fn returns an error,
// or when ctx or the server ends.
func (h *Hub) Follow(ctx context.Context, id swarm.RunID, after int64, fn func(Update) error) error {
	f, err := h.Join(id)
	if err != nil {
		return err
	}
	defer h.Leave(f)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ending, func() { cancel(swarm.Errorf(swarm.Stopped, "this server is ending")) })()
	c := &Cursor{Sent: after}
	for ctx.Err() == nil {
		next := f.Take(c)
		frames := next.Frames
		switch {
		case next.Behind:
			if frames, err = f.Missed(c.Sent); err != nil {
				return err
			}
			next.Past = true
		case len(frames) > 0:
		case next.Over:
			return f.failure()
		default:
			select {
			case <-next.More:
			case <-ctx.Done():
			}
		}
		for one := range c.Fresh(frames, next.Past) {
			update, err := one.update()
			if err == nil {
				err = fn(update)
			}
			if err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// failure returns why a follower has stopped; nil = its run has ended.
func (f *Follower) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// update decodes a frame. Frames do not keep the value that they were made from, because few
// listeners need it.
func (f Frame) update() (Update, error) {
	_, data, _ := bytes.Cut(f.Wire, []byte("\ndata: "))
	if f.Kind == Delta {
		var s TurnDelta
		err := json.Unmarshal(data, &s)
		return Update{Agent: s.Agent, Turn: s.Turn, Kind: s.Kind, Text: s.Text}, err
	}
	var e swarm.PublicEvent
	err := json.Unmarshal(data, &e)
	event := &swarm.Event{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, Data: e.Data}
	return Update{Event: event, Agent: e.Agent, Turn: e.Turn}, err
}

// Watch wakes the listeners of a run at once after each event, until stop is called. It is for runs
// that this process drives: the logs of other processes are polled.
func (h *Hub) Watch(id swarm.RunID, log swarm.Log) (stop func()) {
	wake, off := log.Watch()
	quit, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		for {
			select {
			case <-wake:
				h.nudge(id)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-left
		off()
	}
}
