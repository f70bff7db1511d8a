package api

import (
	"context"
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"swarm"
)

// stream tells a run as Server-Sent Events: what has been after a given event, and then what happens. An event's id is its number, so
// that who was cut off can come back to where he was. When the run has ended and all is told, the stream ends; who comes back to it
// after that is told so by 204, which keeps browsers from trying for ever.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	c := &client{w: w, connection: http.NewResponseController(w), patience: a.patience, pos: -1}
	id, err := c.read(r)
	if err != nil {
		refuse(w, err)
		return
	}
	s, err := a.find(id)
	if err != nil {
		refuse(w, err)
		return
	}
	f, err := a.hub.join(s.ID)
	if err != nil {
		refuse(w, err)
		return
	}
	defer a.hub.leave(f)
	if err := f.has(c.sent); err != nil {
		refuse(w, err)
		return
	}
	if r.Method == http.MethodHead {
		_ = c.begin() // that is all he wants
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.ending, cancel)()
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

	begun  bool    // the answer has begun
	sent   int64   // the last event that it has, or need not have
	met    bool    // it has found its place in the frames
	pos    int64   // the number of its next frame; -1, or one that is gone = it has to be found
	live   int64   // before this frame it is given events only
	speech []frame // what it is given when it gets there
}

// read reads what is wanted.
func (c *client) read(r *http.Request) (id string, err error) {
	q := ask(r, "workflow_id", "after", "type")
	c.sent, c.wants, id = q.number("after", 0, 0, math.MaxInt64), q.kinds("type", delta), q.text("workflow_id")
	if id == "" {
		q.fail(swarm.Errorf(swarm.BadInput, "no run is named").WithHint("write ?workflow_id=RUN"))
	}
	if last := strings.TrimSpace(r.Header.Get("Last-Event-ID")); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			q.fail(swarm.Errorf(swarm.BadInput, "Last-Event-ID %s is no event of a run", swarm.Quote(last)).WithHint("it is the id of the last event that was received: a whole number"))
		}
		c.sent = n
	}
	return id, q.err
}

// follow gives the client everything, until there is nothing more or it is gone. A client that does not take what it is given within
// its time is left; nobody waits for it, because everybody takes from the same frames at his own pace.
func (c *client) follow(ctx context.Context, f *follower, beat <-chan time.Time) {
	for ctx.Err() == nil {
		next := f.take(c)
		var err error
		switch {
		case next.behind:
			err = c.catchUp(f)
		case len(next.frames) > 0:
			err = c.give(next.frames, next.past)
		case next.over:
			if !c.begun {
				c.w.WriteHeader(http.StatusNoContent)
			}
			return
		default:
			if err = c.begin(); err != nil {
				return
			}
			select {
			case <-next.more:
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

// A portion is what a client is given next.
type portion struct {
	frames []frame
	past   bool            // of which it wants the events, and not what was said
	behind bool            // it has to read the log
	over   bool            // nothing will ever come
	more   <-chan struct{} // is closed when there is more
}

const portionFrames = 256

// take is what a client has not been given yet.
func (f *follower) take(c *client) portion {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.pos < f.first {
		if c.sent < f.floor {
			return portion{behind: true}
		}
		f.meet(c)
	}
	past, upto := c.pos < c.live, f.first+int64(len(f.frames))
	if past {
		upto = c.live
	} else if said := c.speech; said != nil {
		c.speech = nil
		return portion{frames: said}
	}
	from := c.pos
	c.pos = min(upto, from+portionFrames)
	return portion{frames: f.frames[from-f.first : c.pos-f.first], past: past, over: f.over || f.err != nil, more: f.more}
}

// meet finds the frame with which a client goes on. Who comes is told what running turns have said so far, when he has been told
// the events before it; who was too slow is told that something is missing.
func (f *follower) meet(c *client) {
	c.pos = f.after(c.sent)
	if c.met {
		c.live, c.speech = c.pos, []frame{sayingFrame(saying{Run: f.id, piece: piece{Kind: gap}})}
		return
	}
	c.met, c.live = true, f.first+int64(len(f.frames))
	for _, s := range f.speech {
		c.speech = append(c.speech, s.frames...)
	}
}

// has says whether there is such an event. One that the follower has not got to may have been told elsewhere.
func (f *follower) has(seq int64) error {
	f.mu.Lock()
	last := f.seq
	f.mu.Unlock()
	if seq <= last {
		return nil
	}
	v, err := f.look.Fold()
	if err == nil && seq > v.Seq {
		err = swarm.Errorf(swarm.BadInput, "run %s has no event %d yet", f.id, seq).WithHint("its last one is %d", v.Seq)
	}
	return err
}

// catchUp gives the client a page of what only the log has.
func (c *client) catchUp(f *follower) error {
	frames, err := f.missed(c.sent)
	if err != nil {
		return err
	}
	return c.give(frames, true)
}

// missed is a page of what only the log has.
func (f *follower) missed(after int64) ([]frame, error) {
	events, err := f.look.Read(after, portionFrames)
	frames := make([]frame, len(events))
	for i := range events {
		frames[i] = eventFrame(f.id, &events[i])
	}
	return frames, err
}

// fresh are the frames that the client does not have. From then on it has them.
func (c *client) fresh(frames []frame, past bool) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		for _, one := range frames {
			if one.seq > 0 && one.seq <= c.sent || one.seq == 0 && past {
				continue
			}
			c.sent = max(c.sent, one.seq)
			if !yield(one) {
				return
			}
		}
	}
}

// give writes the frames that the client wants and does not have.
func (c *client) give(frames []frame, past bool) error {
	var wire []byte
	for one := range c.fresh(frames, past) {
		switch {
		case c.wants != nil && !c.wants[one.kind]:
		case wire == nil:
			wire = one.wire[:len(one.wire):len(one.wire)] // most often it is the only one
		default:
			wire = append(wire, one.wire...)
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
