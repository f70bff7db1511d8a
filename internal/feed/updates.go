package feed

import (
	"bytes"
	"context"
	"encoding/json"

	"swarm"
)

// An Update is one thing that happens in a run: an event, or something that a turn says.
type Update struct {
	Event      *swarm.Event // nil = a turn says something
	Agent      string
	Turn       swarm.TurnID
	Kind, Text string // of what is said: a piece of it
}

// Follow tells this process of a run, by the same follower that streams are told by: what has been after an event, and then what
// happens. It returns when there is nothing more to tell, when fn returns an error, and when ctx or the server ends.
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

// failure is why a follower goes no further; nil = its run is through.
func (f *Follower) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// update reads a frame. What it was made of is not kept beside it: there are few who want it.
func (f Frame) update() (Update, error) {
	_, data, _ := bytes.Cut(f.Wire, []byte("\ndata: "))
	if f.Kind == Delta {
		var s TurnDelta
		err := json.Unmarshal(data, &s)
		return Update{Agent: s.Agent, Turn: s.Turn, Kind: s.Kind, Text: s.Text}, err
	}
	var e swarm.PublicEvent
	err := json.Unmarshal(data, &e)
	return Update{Event: &swarm.Event{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, Data: e.Data}, Agent: e.Agent, Turn: e.Turn}, err
}

// Watch has those who follow a run that this process drives told of everything at once, until stop is called. Logs that others write
// are only looked at every few moments.
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
