package api

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/feed"
)

// stream tells a run as Server-Sent Events: what has been after a given event, and then what happens. An event's id is its number, so
// that who was cut off can come back to where he was. When the run has ended and all is told, the stream ends; who comes back to it
// after that is told so by 204, which keeps browsers from trying for ever.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	c := &client{w: w, connection: http.NewResponseController(w), patience: a.patience}
	id, err := c.read(r)
	if err != nil {
		refuse(w, err)
		return
	}
	s, err := a.Control.Lookup(id)
	if err != nil {
		refuse(w, err)
		return
	}
	f, err := a.Feed.Join(s.ID)
	if err != nil {
		refuse(w, err)
		return
	}
	defer a.Feed.Leave(f)
	if err := f.Has(c.Sent); err != nil {
		refuse(w, err)
		return
	}
	if r.Method == http.MethodHead {
		_ = c.begin() // that is all he wants
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.Feed.Ending(), cancel)()
	beat := time.NewTicker(a.heartbeat)
	defer beat.Stop()
	c.follow(ctx, f, beat.C)
}

// A client is who reads a stream.
type client struct {
	w          http.ResponseWriter
	connection *http.ResponseController
	patience   time.Duration
	until      time.Time       // it is waited for
	wants      map[string]bool // kinds; none = all

	begun bool // the answer has begun
	feed.Cursor
}

// read reads what is wanted.
func (c *client) read(r *http.Request) (id string, err error) {
	q := ask(r, "workflow_id", "after", "type")
	c.Sent, c.wants, id = q.number("after", 0, 0, math.MaxInt64), q.kinds("type", feed.Delta), q.text("workflow_id")
	if id == "" {
		q.fail(swarm.Errorf(swarm.BadInput, "no run is named").WithHint("write ?workflow_id=RUN"))
	}
	if last := strings.TrimSpace(r.Header.Get("Last-Event-ID")); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			q.fail(swarm.Errorf(swarm.BadInput, "Last-Event-ID %s is no event of a run", swarm.Quote(last)).WithHint("it is the id of the last event that was received: a whole number"))
		}
		c.Sent = n
	}
	return id, q.err
}

// follow gives the client everything, until there is nothing more or it is gone. A client that does not take what it is given within
// its time is left; nobody waits for it, because everybody takes from the same frames at his own pace.
func (c *client) follow(ctx context.Context, f *feed.Follower, beat <-chan time.Time) {
	for ctx.Err() == nil {
		next := f.Take(&c.Cursor)
		var err error
		switch {
		case next.Behind:
			err = c.catchUp(f)
		case len(next.Frames) > 0:
			err = c.give(next.Frames, next.Past)
		case next.Over:
			if !c.begun {
				c.w.WriteHeader(http.StatusNoContent)
			}
			return
		default:
			if err = c.begin(); err != nil {
				return
			}
			select {
			case <-next.More:
			case <-beat:
				err = c.write([]byte(": heartbeat\n\n"))
			case <-ctx.Done():
			}
		}
		if err != nil {
			return
		}
	}
}

// catchUp gives the client a page of what only the log has.
func (c *client) catchUp(f *feed.Follower) error {
	frames, err := f.Missed(c.Sent)
	if err != nil {
		return err
	}
	return c.give(frames, true)
}

// give writes the frames that the client wants and does not have.
func (c *client) give(frames []feed.Frame, past bool) error {
	var wire []byte
	for one := range c.Fresh(frames, past) {
		switch {
		case c.wants != nil && !c.wants[one.Kind]:
		case wire == nil:
			wire = one.Wire[:len(one.Wire):len(one.Wire)] // most often it is the only one
		default:
			wire = append(wire, one.Wire...)
		}
	}
	if wire == nil {
		return nil
	}
	if err := c.begin(); err != nil {
		return err
	}
	return c.write(wire)
}

// begin begins the answer.
func (c *client) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	return c.write(nil)
}

// write writes within the client's time. That is set anew when half of it is over, not for each of many writes.
func (c *client) write(wire []byte) error {
	if now := time.Now(); c.until.Sub(now) < c.patience/2 {
		c.until = now.Add(c.patience)
		if err := c.connection.SetWriteDeadline(c.until); err != nil {
			return err
		}
	}
	if _, err := c.w.Write(wire); err != nil {
		return err
	}
	return c.connection.Flush()
}
