package feed

import (
	"iter"

	"swarm"
)

// A Cursor is how far a listener has come. It belongs to one goroutine.
type Cursor struct {
	Sent int64 // the last event that it has, or need not have

	met    bool    // it has found its place in the frames
	found  bool    // pos is known
	pos    int64   // the number of its next frame; one that is gone has to be found again
	live   int64   // before this frame it is given events only
	speech []Frame // what it is given when it gets there
}

// A Batch is what a listener is given next.
type Batch struct {
	Frames []Frame
	Past   bool            // of which it wants the events, and not what was said
	Behind bool            // it has to read the log
	Over   bool            // nothing will ever come
	More   <-chan struct{} // is closed when there is more
}

const batchFrames = 256

// Take is what a listener has not been given yet.
func (f *Follower) Take(c *Cursor) Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.found || c.pos < f.first {
		if c.Sent < f.floor {
			return Batch{Behind: true}
		}
		f.meet(c)
	}
	past, upto := c.pos < c.live, f.first+int64(len(f.frames))
	if past {
		upto = c.live
	} else if said := c.speech; said != nil {
		c.speech = nil
		return Batch{Frames: said}
	}
	from := c.pos
	c.pos = min(upto, from+batchFrames)
	return Batch{Frames: f.frames[from-f.first : c.pos-f.first], Past: past, Over: f.over || f.err != nil, More: f.more}
}

// meet finds the frame with which a listener goes on. Who comes is told what running turns have said so far, when he has been told
// the events before it; who was too slow is told that something is missing.
func (f *Follower) meet(c *Cursor) {
	c.pos, c.found = f.after(c.Sent), true
	if c.met {
		c.live, c.speech = c.pos, []Frame{deltaFrame(TurnDelta{Run: f.id, StreamRecord: StreamRecord{Kind: gap}})}
		return
	}
	c.met, c.live = true, f.first+int64(len(f.frames))
	for _, s := range f.speech {
		c.speech = append(c.speech, s.frames...)
	}
}

// Has says whether there is such an event. One that the follower has not got to may have been told elsewhere.
func (f *Follower) Has(seq int64) error {
	f.mu.Lock()
	last := f.seq
	f.mu.Unlock()
	if seq <= last {
		return nil
	}
	v, err := f.reader.Fold()
	if err == nil && seq > v.Seq {
		err = swarm.Errorf(swarm.BadInput, "run %s has no event %d yet", f.id, seq).WithHint("its last one is %d", v.Seq)
	}
	return err
}

// Missed is a page of what only the log has.
func (f *Follower) Missed(after int64) ([]Frame, error) {
	events, err := f.reader.Read(after, batchFrames)
	frames := make([]Frame, len(events))
	for i := range events {
		frames[i] = EventFrame(f.id, &events[i])
	}
	return frames, err
}

// Fresh are the frames that the listener does not have. From then on it has them.
func (c *Cursor) Fresh(frames []Frame, past bool) iter.Seq[Frame] {
	return func(yield func(Frame) bool) {
		for _, one := range frames {
			if one.Seq > 0 && one.Seq <= c.Sent || one.Seq == 0 && past {
				continue
			}
			c.Sent = max(c.Sent, one.Seq)
			if !yield(one) {
				return
			}
		}
	}
}
