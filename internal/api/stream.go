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

// stream sends a run as Server-Sent Events: first the events after a given one, then new events as
// they happen. The id of an SSE event is the number of the event in the log, so a client that lost
// its connection continues where it was.
//
// The stream ends when the run has ended and all its events are sent. A client that connects again
// after that gets 204 No Content, which keeps browsers from reconnecting for ever.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	q := ask(r, "workflow_id", "after", "type", "names")
	id := q.text("workflow_id")
	if id == "" && len(q.values) > 0 {
		q.fail(swarm.Errorf(swarm.BadInput, "no run is named").WithHint("write ?workflow_id=RUN; without any parameter the stream has the summaries of all runs"))
	}
	c, err := a.newClient(w, r, q)
	if err == nil && id == "" {
		a.streamSummaries(c, r)
		return
	}
	if err == nil {
		err = a.serveStream(c, r, id)
	}
	if err != nil {
		refuse(w, err)
	}
}

// streamSummaries sends the summaries of the newest runs and of all that go on, and then each summary
// that changes. The stream has no numbers: a client that connects again gets the summaries again.
func (a *API) streamSummaries(c *client, r *http.Request) {
	if err := c.begin(); err != nil || r.Method == http.MethodHead {
		return
	}
	defer a.summaries.Join()()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.Feed.Ending(), cancel)()
	beat := time.NewTicker(a.heartbeat)
	defer beat.Stop()
	for version := int64(-1); ctx.Err() == nil; {
		wire, newest, more := a.summaries.Take(version)
		version = newest
		var err error
		if len(wire) > 0 {
			err = c.write(wire)
		} else {
			select {
			case <-more:
			case <-beat.C:
				err = c.write([]byte(": heartbeat\n\n"))
			case <-ctx.Done():
			}
		}
		if err != nil {
			return
		}
	}
}

// serveStream streams a run to a client. It returns an error only before it has sent anything.
func (a *API) serveStream(c *client, r *http.Request, id string) error {
	f, err := a.join(id)
	if err != nil {
		return err
	}
	defer a.Feed.Leave(f)
	if err := f.Has(c.Sent); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		_ = c.begin() // HEAD wants only the headers
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.Feed.Ending(), cancel)()
	beat := time.NewTicker(a.heartbeat)
	defer beat.Stop()
	c.follow(ctx, f, beat.C)
	return nil
}

// join returns the follower of the run that a client names.
func (a *API) join(id string) (*feed.Follower, error) {
	run, err := a.lookup(id)
	if err != nil {
		return nil, err
	}
	return a.Feed.Join(run)
}

// lookup finds the run that a client names. One that has listeners is found already. This saves the
// memory of most clients' lookups: it is the deepest stack that the goroutine of a stream ever has.
func (a *API) lookup(id string) (swarm.RunID, error) {
	a.lookups <- struct{}{}
	defer func() { <-a.lookups }()
	if run := swarm.RunID(id); a.Feed.Listeners(run) > 0 {
		return run, nil
	}
	s, err := a.Control.Lookup(id)
	return s.ID, err
}

// A client is the receiver of one stream. Only the goroutine of its request uses it, so it has no
// mutex.
type client struct {
	w          http.ResponseWriter
	connection *http.ResponseController
	patience   time.Duration
	until      time.Time       // the current write deadline
	wants      map[string]bool // kinds of events; nil = all
	ourNames   bool            // it wants our names for the events of a swarm, too

	begun bool // the headers are sent
	feed.Cursor
}

// newClient reads what a request says about its stream: after, type, names and Last-Event-ID.
func (a *API) newClient(w http.ResponseWriter, r *http.Request, q *question) (*client, error) {
	c := &client{w: w, connection: http.NewResponseController(w), patience: a.patience}
	c.Sent, c.wants = q.number("after", 0, 0, math.MaxInt64), q.kinds("type", append([]string{feed.Delta}, feed.SeedNames...)...)
	switch names := q.text("names"); names {
	case "", "seed":
	case "ours":
		c.ourNames = true
	default:
		q.fail(swarm.Errorf(swarm.BadInput, "names cannot be %s", swarm.Quote(names)).WithHint("choose one of seed, ours"))
	}
	if last := strings.TrimSpace(r.Header.Get("Last-Event-ID")); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			q.fail(swarm.Errorf(swarm.BadInput, "Last-Event-ID %s is no event of a run", swarm.Quote(last)).WithHint("it is the id of the last event that was received: a whole number"))
		}
		c.Sent = n
	}
	return c, q.err
}

// follow sends frames to the client until the run is over or the client is gone. All clients read
// the same shared frames at their own pace, so a slow one delays no other. A write that blocks
// longer than the client's patience ends its stream.
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

// catchUp sends a page of events that are no longer in memory, from the log.
func (c *client) catchUp(f *feed.Follower) error {
	frames, err := f.Missed(c.Sent)
	if err != nil {
		return err
	}
	return c.give(frames, true)
}

// give writes the frames that the client wants and has not got yet, in one write.
func (c *client) give(frames []feed.Frame, past bool) error {
	var wire []byte
	for one := range c.Fresh(frames, past) {
		text := one.Wire
		if one.SeedName != "" && !c.ourNames {
			text = one.SeedWire
		}
		switch {
		case c.wants != nil && !c.wants[one.Kind] && !c.wants[one.SeedName], c.wants == nil && one.OursOnly && !c.ourNames:
		case wire == nil:
			wire = text[:len(text):len(text)] // usually the only frame: not copied, and the full slice expression makes append copy
		default:
			wire = append(wire, text...)
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

// begin sends the headers, unless they are sent already.
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

// write writes to the client and flushes. It moves the write deadline only when half of it has
// passed, because moving it for each of many writes is slow.
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
