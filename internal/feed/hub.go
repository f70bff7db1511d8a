// Package feed follows runs for listeners: streams over HTTP, and doors that wait for a run's
// outcome. However many listeners a run has, its log is read once and each event is encoded once. A
// listener takes frames at its own pace. One that has fallen behind reads the log.
package feed

import (
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

// The limits of what a follower keeps in memory, and its polling intervals. Streams of running
// turns and the end of a driver are not in the log, so they must be polled.
const (
	Kept       = 4096 // frames of a run
	keptBytes  = 8 << 20
	keptSpeech = 256 << 10 // of a running turn, for listeners that join during it
	listenTime = 50 * time.Millisecond
	pollTime   = 500 * time.Millisecond
	page       = 1000 // events read at once
)

// A Hub follows runs: one follower for each run that has listeners. The mutex guards the map, the
// counts of listeners and closed.
type Hub struct {
	home *statedir.Home

	mu        sync.Mutex
	following map[swarm.RunID]*Follower
	closed    bool
	done      sync.WaitGroup

	ending context.Context // canceled when the hub is closed
	end    context.CancelFunc
}

// New returns a hub for the runs of a home.
func New(h *statedir.Home) *Hub {
	hub := &Hub{home: h, following: map[swarm.RunID]*Follower{}}
	hub.ending, hub.end = context.WithCancel(context.Background())
	return hub
}

// Join returns the follower of a run, and starts it for the first listener.
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
	<-f.ready // without the mutex: opening a long log must not block other runs
	if f.reader == nil {
		h.Leave(f)
		return nil, f.err
	}
	return f, nil
}

// Leave is the counterpart of Join. The last listener stops the follower.
func (h *Hub) Leave(f *Follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.clients--; f.clients == 0 && h.following[f.id] == f {
		delete(h.following, f.id)
		f.stop()
	}
}

// Listeners returns the number of listeners of a run.
func (h *Hub) Listeners(run swarm.RunID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.following[run]; f != nil {
		return f.clients
	}
	return 0
}

// nudge wakes the follower of a run to read its log.
func (h *Hub) nudge(id swarm.RunID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.following[id]; f != nil {
		select {
		case f.nudged <- struct{}{}:
		default: // it is woken already
		}
	}
}

// Ending returns a context that ends when the hub is closed.
func (h *Hub) Ending() context.Context { return h.ending }

// Close stops all followers and waits for them.
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

// A Frame is an event, or a delta of a turn, encoded for the wire.
type Frame struct {
	Seq  int64  // of an event; 0 = a delta
	Kind string // the event's kind, or [Delta]
	turn swarm.TurnID
	runs bool // the turn of the delta still runs
	Wire []byte

	SeedName string // of an event of a swarm: its name in seed 002, or "" if it has none
	SeedWire []byte // the event under that name
	OursOnly bool   // sent only under our names, because it comes after workflow_completed
}

func (f *Frame) size() int { return len(f.Wire) + len(f.SeedWire) }

// Delta is the kind of frames with deltas. A gap replaces deltas that were dropped.
const (
	Delta = "delta"
	gap   = statedir.Gap
)

// A Follower follows one run and keeps its newest frames. Frames are numbered from 0.
//
// The follower's goroutine owns the fields above the mutex, apart from clients, which is the hub's.
// Listeners read reader, swarm and err only after ready is closed. The mutex guards the fields below it.
type Follower struct {
	id       swarm.RunID
	ready    chan struct{} // closed when it has begun or failed to
	reader   *run.Reader   // nil = it failed to begin
	timeline *run.Timeline
	clients  int  // guarded by the hub's mutex
	swarm    bool // the run is a swarm, whose events have names in seed 002, too
	ctx      context.Context
	stop     context.CancelFunc
	ended    bool                    // the run has ended, by its log
	nudged   chan struct{}           // has a value when there may be new events
	agents   map[swarm.TurnID]string // by running turn

	mu     sync.Mutex
	frames []Frame
	bytes  int
	first  int64                        // the number of frames[0]
	floor  int64                        // the last event that is in no frame any more
	seq    int64                        // the last event that is in a frame
	speech map[swarm.TurnID]*turnSpeech // the deltas of running turns
	more   chan struct{}                // closed when there are more frames
	over   bool                         // there will be no more frames
	err    error                        // why it has stopped
}

// A turnSpeech is the newest deltas of a running turn.
type turnSpeech struct {
	frames []Frame
	bytes  int
}

func newFollower(id swarm.RunID) *Follower {
	f := &Follower{id: id, ready: make(chan struct{}), nudged: make(chan struct{}, 1),
		agents: map[swarm.TurnID]string{}, speech: map[swarm.TurnID]*turnSpeech{}, more: make(chan struct{})}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// live is the follower's goroutine.
func (f *Follower) live(h *statedir.Home) {
	reader, err := f.begin(h)
	if f.err = err; err == nil {
		f.reader = reader
	}
	close(f.ready)
	if err == nil {
		f.run()
		<-f.ctx.Done() // its listeners may still read the log
		reader.Close()
	}
}

// begin opens the run and loads its newest events, so that listeners that want the past need not
// each read the log.
func (f *Follower) begin(h *statedir.Home) (*run.Reader, error) {
	reader, err := run.OpenReader(h, f.id)
	if err != nil {
		return nil, err
	}
	driven := reader.Driven() // first: the last events of a driver that leaves now are in the fold
	v, err := reader.Fold()
	if err == nil {
		f.timeline, err = reader.TimelineFrom(v)
	}
	if err == nil {
		f.ended, f.swarm = v.Status.Ended(), v.Kind == swarm.SwarmRun
		f.over = f.ended && !driven
		err = f.recall(reader, v)
	}
	if err != nil {
		reader.Close()
		return nil, err
	}
	return reader, nil
}

// recall makes frames of the events before a fold.
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
			f.add(f.eventFrame(&events[i]))
		}
	}
	return nil
}

// run publishes new frames until it is stopped or there are no more.
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
		left := f.ended && !f.reader.Driven() // first: the last events of a driver that leaves now are read below
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

// frame makes a frame of an entry, and keeps track of the running turns.
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
	case swarm.RunOwned, swarm.RunInterrupted: // the turns of the old driver were cut
		clear(f.agents)
	}
	return f.eventFrame(m.Event)
}

// eventFrame encodes an event, and for a swarm also under its name in seed 002.
func (f *Follower) eventFrame(e *swarm.Event) Frame {
	one := EventFrame(f.id, e)
	if !f.swarm {
		return one
	}
	if s, ok := seedEvent(f.id, e); ok {
		data, err := json.Marshal(s)
		if err != nil { // its body is not JSON, and is sent as a string
			s.Payload, _ = json.Marshal(string(e.Data))
			data, _ = json.Marshal(s)
		}
		one.SeedName, one.SeedWire = s.Type, eventWire(e.Seq, s.Type, data)
	}
	one.OursOnly = e.Kind == swarm.LoopEnded && e.To == "" // of the run's own loop, which has told the run's end
	return one
}

// publish adds frames and wakes the listeners. It reports whether these were the last frames.
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

// add adds a frame and drops the oldest ones if there are too many.
func (f *Follower) add(one Frame) {
	if one.Seq > 0 {
		f.seq = one.Seq
	}
	f.frames = append(f.frames, one)
	f.bytes += one.size()
	for len(f.frames) > Kept || f.bytes > keptBytes && len(f.frames) > 1 {
		gone := f.frames[0]
		f.frames, f.first, f.bytes = f.frames[1:], f.first+1, f.bytes-gone.size()
		f.floor = max(f.floor, gone.Seq)
	}
	switch swarm.EventKind(one.Kind) {
	case Delta:
		if one.runs {
			f.keepDelta(one)
		}
	case swarm.TurnStarted, swarm.TurnEnded:
		delete(f.speech, one.turn)
	case swarm.RunOwned, swarm.RunInterrupted, swarm.RunEnded:
		clear(f.speech)
	}
}

// keepDelta keeps the newest deltas of a running turn.
func (f *Follower) keepDelta(one Frame) {
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

// after returns the number of the first frame of an event after seq. Frames of deltas have no Seq,
// so the search looks for the next event.
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

// EventFrame encodes an event for server-sent events. Its data is one line of JSON, so no content
// can end the frame. The event's name is left out unless it is a plain word, because a log could
// hold anything.
func EventFrame(id swarm.RunID, e *swarm.Event) Frame {
	public := e.Public(id)
	data, err := json.Marshal(public)
	if err != nil { // its body is not JSON, and is sent as a string
		public.Data, _ = json.Marshal(string(e.Data))
		data, _ = json.Marshal(public)
	}
	return Frame{Seq: e.Seq, Kind: string(e.Kind), turn: e.Turn, Wire: eventWire(e.Seq, string(e.Kind), data)}
}

// eventWire writes an event for the wire.
func eventWire(seq int64, name string, data []byte) []byte {
	wire := strconv.AppendInt([]byte("id: "), seq, 10)
	if isWord(name) {
		wire = append(append(wire, "\nevent: "...), name...)
	}
	wire = append(append(wire, "\ndata: "...), data...)
	return append(wire, "\n\n"...)
}

// isWord reports whether a text has only the characters of event kinds.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return s != ""
}

// A TurnDelta is a delta of a running turn.
type TurnDelta struct {
	Run   swarm.RunID  `json:"run"`
	Task  string       `json:"task,omitempty"`
	Agent string       `json:"agent,omitempty"`
	Turn  swarm.TurnID `json:"turn,omitempty"`
	StreamRecord
}

// A StreamRecord is the content of a delta.
type StreamRecord struct {
	Time time.Time `json:"time,omitzero"`
	Kind string    `json:"kind"`
	Text string    `json:"text,omitempty"`
	Gap  int64     `json:"gap,omitempty"` // bytes that were not stored
}

// deltaFrame encodes a delta. It has no id, because it is not in the log and a client cannot
// continue after it.
func deltaFrame(s TurnDelta) Frame {
	return Frame{Kind: Delta, turn: s.Turn, Wire: namedFrame(Delta, s)}
}
