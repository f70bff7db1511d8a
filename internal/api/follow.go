package api

import (
	"bytes"
	"context"
	"encoding/json"

	"swarm"
)

// A Told is one thing that happens in a run: an event, or something that a turn says.
type Told struct {
	Event       *swarm.Event // nil = a turn says something
	Agent, Turn string
	Kind, Text  string // of what is said: a piece of it
}

// Follow tells this process of a run, by the same follower that streams are told by: what has been after an event, and then what
// happens. It returns when there is nothing more to tell, when fn returns an error, and when ctx or the server ends.
func (a *API) Follow(ctx context.Context, id string, after int64, fn func(Told) error) error {
	f, err := a.hub.join(id)
	if err != nil {
		return err
	}
	defer a.hub.leave(f)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ending, func() { cancel(swarm.Errorf(swarm.Stopped, "this server is ending")) })()
	c := &client{pos: -1, sent: after}
	for ctx.Err() == nil {
		next := f.take(c)
		frames := next.frames
		switch {
		case next.behind:
			if frames, err = f.missed(c.sent); err != nil {
				return err
			}
			next.past = true
		case len(frames) > 0:
		case next.over:
			return f.failure()
		default:
			select {
			case <-next.more:
			case <-ctx.Done():
			}
		}
		for one := range c.fresh(frames, next.past) {
			told, err := one.told()
			if err == nil {
				err = fn(told)
			}
			if err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// failure is why a follower goes no further; nil = its run is through.
func (f *follower) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// told reads a frame. What it was made of is not kept beside it: there are few who want it.
func (f frame) told() (Told, error) {
	_, data, _ := bytes.Cut(f.wire, []byte("\ndata: "))
	if f.kind == delta {
		var s saying
		err := json.Unmarshal(data, &s)
		return Told{Agent: s.Agent, Turn: s.Turn, Kind: s.Kind, Text: s.Text}, err
	}
	var e swarm.PublicEvent
	err := json.Unmarshal(data, &e)
	return Told{Event: &swarm.Event{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, Data: e.Data}, Agent: e.Agent, Turn: e.Turn}, err
}

// Cancel ends a run for good. One that nobody drives is ended here.
func (a *API) Cancel(ctx context.Context, id string) error {
	_, err := a.cancel(ctx, id)
	return err
}
