// Package feed follows runs for those who listen: streams over HTTP, and doors that wait for what becomes of a run. However many
// listen to a run, its log is read once and each event is encoded once; every listener takes frames at its own pace and reads
// the log when it has fallen behind.
package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"strconv"
	"sync"
	"time"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// Kept frames: how much of a run is kept in memory for those who follow it, and how often it is looked at for what the log does not tell: what
// running turns say, and whether somebody drives it.
const (
	Kept       = 4096
	keptBytes  = 8 << 20
	keptSpeech = 256 << 10 // of a running turn, for those who come while it speaks
	listenTime = 50 * time.Millisecond
	pollTime   = 500 * time.Millisecond
	page       = 1000 // events read at once
)

// A Hub follows runs. However many clients a run has, its log is read once and each event written out once.
type Hub struct {
	home *statedir.Home

	mu        sync.Mutex
	following map[swarm.RunID]*Follower
	closed    bool
	done      sync.WaitGroup

	ending context.Context
	end    context.CancelFunc
}

// New makes a hub for the runs of a home.
func New(h *statedir.Home) *Hub {
	hub := &Hub{home: h, following: map[swarm.RunID]*Follower{}}
	hub.ending, hub.end = context.WithCancel(context.Background())
	return hub
}

// Join gives the follower of a run; the first who comes starts it.
func (h *Hub) Join(id swarm.RunID) (*Follower, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, swarm.Errorf(swarm.Stopped, "this server is ending").WithHint("come back when it was started again")
	}
	f := h.following[id]
	if f == nil {
		f = newFollower(id)
		h.following[id] = f
		h.done.Go(func() { f.live(h.home) })
	}
	f.clients++
	h.mu.Unlock()
	<-f.ready // while others, of other runs, come and go
	if f.reader == nil {
		h.Leave(f)
		return nil, f.err
	}
	return f, nil
}

// Leave is the end of Join; the last who goes ends the follower.
func (h *Hub) Leave(f *Follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.clients--; f.clients == 0 && h.following[f.id] == f {
		delete(h.following, f.id)
		f.stop()
	}
}

// Listeners is how many listen to a run.
func (h *Hub) Listeners(run swarm.RunID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.following[run]; f != nil {
		return f.clients
	}
	return 0
}

// nudge has the follower of a run look at its log.
func (h *Hub) nudge(id swarm.RunID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.following[id]; f != nil {
		select {
		case f.nudged <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}

// Ending is over when the hub is closed.
func (h *Hub) Ending() context.Context { return h.ending }

// Close ends all followers.
func (h *Hub) Close() {
	h.end()
	h.mu.Lock()
	h.closed = true
	for _, f := range h.following {
		f.stop()
	}
	h.mu.Unlock()
	h.done.Wait()
}

// A Frame is an event, or something that a turn said, as it goes over the wire.
type Frame struct {
	Seq  int64  // of an event; 0 = something that was said
	Kind string // of the event, or [Delta]
	turn swarm.TurnID
	runs bool // the turn that said it still runs
	Wire []byte
}

// Delta is what the frames are called in which a turn says something, and gap is said in the place of what is gone.
const (
	Delta = "delta"
	gap   = statedir.Gap
)

// A Follower follows one run, and keeps its last frames. Frames are counted from 0 on.
type Follower struct {
	id       swarm.RunID
	ready    chan struct{} // is closed when it has begun, or could not
	reader   *run.Reader   // nil = it could not
	timeline *run.Timeline
	clients  int // the hub's
	ctx      context.Context
	stop     context.CancelFunc
	ended    bool                    // the run's own loop said so
	nudged   chan struct{}           // holds a value when there may be something new
	agents   map[swarm.TurnID]string // of the turns that run

	mu     sync.Mutex
	frames []Frame
	bytes  int
	first  int64                        // the number of frames[0]
	floor  int64                        // the last event that is in no frame any more
	seq    int64                        // the last event that was told
	speech map[swarm.TurnID]*turnSpeech // by turn: what those say that run
	more   chan struct{}                // is closed when there is more
	over   bool                         // nothing will ever come
	err    error                        // why it goes no further
}

// A turnSpeech is what a running turn has said so far.
type turnSpeech struct {
	frames []Frame
	bytes  int
}

func newFollower(id swarm.RunID) *Follower {
	f := &Follower{id: id, ready: make(chan struct{}), nudged: make(chan struct{}, 1), agents: map[swarm.TurnID]string{}, speech: map[swarm.TurnID]*turnSpeech{}, more: make(chan struct{})}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// live is all that a follower does, until it is stopped.
func (f *Follower) live(h *statedir.Home) {
	reader, err := f.begin(h)
	if f.err = err; err == nil {
		f.reader = reader
	}
	close(f.ready)
	if err == nil {
		f.run()
		<-f.ctx.Done() // its clients may still read the log
		reader.Close()
	}
}

// begin begins with the last events that there are, so that those who want to know what has been need not read the log one by one.
func (f *Follower) begin(h *statedir.Home) (*run.Reader, error) {
	reader, err := run.OpenReader(h, f.id)
	if err != nil {
		return nil, err
	}
	driven := reader.Driven() // asked first: what its driver wrote before it left is in the fold
	v, err := reader.Fold()
	if err == nil {
		f.timeline, err = reader.TimelineFrom(v)
	}
	if err == nil {
		f.ended = v.Status.Ended()
		f.over = f.ended && !driven
		err = f.recall(reader, v)
	}
	if err != nil {
		reader.Close()
		return nil, err
	}
	return reader, nil
}

// recall puts the events before a fold into frames.
func (f *Follower) recall(reader *run.Reader, v *view.Run) error {
	for i := range v.Len() {
		if t := v.At(i); t.InTurn() {
			f.agents[t.Turn] = t.Agent
		}
	}
	f.floor = max(0, v.Seq-Kept)
	for f.seq = f.floor; f.seq < v.Seq; {
		events, err := reader.Read(f.seq, int(min(page, v.Seq-f.seq)))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return swarm.Errorf(swarm.Storage, "the log ends before event %d", v.Seq)
		}
		for i := range events {
			f.add(EventFrame(f.id, &events[i]))
		}
	}
	return nil
}

// run tells what happens until it is stopped or there is nothing more to tell.
func (f *Follower) run() {
	if f.over {
		return
	}
	wake, off := f.reader.Watch()
	defer off()
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-wake:
		case <-f.nudged:
		case <-tick.C:
		case <-f.ctx.Done():
			return
		}
		left := f.ended && !f.reader.Driven() // asked first: what its driver wrote before it left is told below
		var new []Frame
		err := f.timeline.ReadNew(func(m run.Entry) error {
			new = append(new, f.frame(m))
			return nil
		})
		if f.publish(new, left, err) {
			return
		}
		pause := pollTime
		if len(f.agents) > 0 || f.ended {
			pause = listenTime
		}
		tick.Reset(pause)
	}
}

// frame makes a frame of an entry, and takes note of the turns that run.
func (f *Follower) frame(m run.Entry) Frame {
	if m.Event == nil {
		agent, runs := f.agents[m.Turn]
		said := deltaFrame(TurnDelta{f.id, m.Task, agent, m.Turn, StreamRecord{m.Time, m.Kind, m.Text, m.Gap}})
		said.runs = runs
		return said
	}
	switch m.Event.Kind {
	case swarm.TurnStarted:
		f.agents[m.Turn] = m.Event.Agent
	case swarm.TurnEnded:
		delete(f.agents, m.Turn)
	case swarm.RunEnded:
		f.ended = true
	case swarm.RunOwned, swarm.RunInterrupted: // what ran there runs no more, or begins again
		clear(f.agents)
	}
	return EventFrame(f.id, m.Event)
}

// publish hands out frames. It says whether they were the last ones.
func (f *Follower) publish(new []Frame, over bool, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range new {
		f.add(one)
	}
	f.over, f.err = over, err
	if len(new) > 0 || over || err != nil {
		close(f.more)
		f.more = make(chan struct{})
	}
	return over || err != nil
}

// add keeps a frame, and forgets the oldest ones when there are too many.
func (f *Follower) add(one Frame) {
	if one.Seq > 0 {
		f.seq = one.Seq
	}
	f.frames = append(f.frames, one)
	f.bytes += len(one.Wire)
	for len(f.frames) > Kept || f.bytes > keptBytes && len(f.frames) > 1 {
		gone := f.frames[0]
		f.frames, f.first, f.bytes = f.frames[1:], f.first+1, f.bytes-len(gone.Wire)
		f.floor = max(f.floor, gone.Seq)
	}
	switch swarm.EventKind(one.Kind) {
	case Delta:
		if one.runs {
			f.hear(one)
		}
	case swarm.TurnStarted, swarm.TurnEnded:
		delete(f.speech, one.turn)
	case swarm.RunOwned, swarm.RunInterrupted, swarm.RunEnded:
		clear(f.speech)
	}
}

// hear keeps what a running turn said last.
func (f *Follower) hear(one Frame) {
	s := f.speech[one.turn]
	if s == nil {
		s = &turnSpeech{}
		f.speech[one.turn] = s
	}
	s.frames = append(s.frames, one)
	s.bytes += len(one.Wire)
	for s.bytes > keptSpeech && len(s.frames) > 1 {
		s.bytes -= len(s.frames[0].Wire)
		s.frames = s.frames[1:]
	}
}

// after is the number of the first frame of an event after seq.
func (f *Follower) after(seq int64) int64 {
	if seq >= f.seq {
		return f.first + int64(len(f.frames))
	}
	return f.first + int64(sort.Search(len(f.frames), func(i int) bool {
		for k := i; k < len(f.frames); k++ {
			if f.frames[k].Seq > 0 {
				return f.frames[k].Seq > seq
			}
		}
		return true
	}))
}

// EventFrame writes an event. Its data is one line of JSON, so nothing in it can end the line; its name is one of ours or none.
func EventFrame(id swarm.RunID, e *swarm.Event) Frame {
	public := e.Public(id)
	data, err := json.Marshal(public)
	if err != nil { // its body is no JSON, and is told as a text
		public.Data, _ = json.Marshal(string(e.Data))
		data, _ = json.Marshal(public)
	}
	wire := strconv.AppendInt([]byte("id: "), e.Seq, 10)
	if isWord(string(e.Kind)) {
		wire = append(append(wire, "\nevent: "...), e.Kind...)
	}
	wire = append(append(wire, "\ndata: "...), data...)
	return Frame{Seq: e.Seq, Kind: string(e.Kind), turn: e.Turn, Wire: append(wire, "\n\n"...)}
}

// isWord says whether it is made of what kinds of events are made of.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return s != ""
}

// A TurnDelta is something that a turn says while it runs.
type TurnDelta struct {
	Run   swarm.RunID  `json:"run"`
	Task  string       `json:"task,omitempty"`
	Agent string       `json:"agent,omitempty"`
	Turn  swarm.TurnID `json:"turn,omitempty"`
	StreamRecord
}

// A StreamRecord is something that a turn said while it ran.
type StreamRecord struct {
	Time time.Time `json:"time,omitzero"`
	Kind string    `json:"kind"`
	Text string    `json:"text,omitempty"`
	Gap  int64     `json:"gap,omitempty"` // bytes that were not kept here
}

// deltaFrame writes what a turn said. It has no id: the log does not have it, and nobody can come back to it.
func deltaFrame(s TurnDelta) Frame {
	var b bytes.Buffer
	b.WriteString("event: " + Delta + "\ndata: ")
	_ = json.NewEncoder(&b).Encode(s) // strings and numbers always can be; ends the line
	b.WriteString("\n")
	return Frame{Kind: Delta, turn: s.Turn, Wire: b.Bytes()}
}
