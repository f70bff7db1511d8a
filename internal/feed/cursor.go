package feed

import (
	"iter"

	"swarm"
)

// A Cursor is the position of a listener. It belongs to one goroutine.
type Cursor struct {
	Sent int64 // the last event that it has, or does not need

	met    bool    // it has had a position before
	found  bool    // pos is known
	pos    int64   // the number of its next frame, if found; it may have been dropped since
	live   int64   // before this frame it gets events only
	speech []Frame // the deltas that it gets at live
}

// A Batch is the next frames of a listener.
type Batch struct {
	Frames []Frame
	Past   bool            // the listener gets only the events of these frames
	Behind bool            // it must read the log, see [Follower.Missed]
	Over   bool            // there will be no more frames
	More   <-chan struct{} // closed when there are more frames
}

const batchFrames = 256

// Take returns the next frames of a listener, without waiting.
func (f *Follower) Take(c *Cursor) Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.found || c.pos < f.first {
		if c.Sent < f.floor {
			return Batch{Behind: true}
		}
		f.place(c)
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

// place finds the next frame of a listener. A new listener gets the deltas of running turns after
// the past events. A listener that was too slow gets a gap in place of the deltas that it has
// missed.
func (f *Follower) place(c *Cursor) {
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

// Has returns an error if the run has no such event yet. The log decides, because the follower may
// lag behind.
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

// Missed returns a page of events that are only in the log.
func (f *Follower) Missed(after int64) ([]Frame, error) {
	events, err := f.reader.Read(after, batchFrames)
	frames := make([]Frame, len(events))
	for i := range events {
		frames[i] = f.eventFrame(&events[i])
	}
	return frames, err
}

// Fresh iterates over the frames that the listener does not have, and moves the cursor past them.
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
