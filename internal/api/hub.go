package api

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"strconv"
	"sync"
	"time"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/run"
	"swarm/internal/view"
)

// How much of a run is kept in memory for those who follow it, and how often it is looked at for what the log does not tell: what
// running turns say, and whether somebody drives it.
const (
	keptFrames = 4096
	keptBytes  = 8 << 20
	keptSpeech = 256 << 10 // of a running turn, for those who come while it speaks
	listenTime = 50 * time.Millisecond
	lookTime   = 500 * time.Millisecond
)

// A hub follows runs. However many clients a run has, its log is read once and each event written out once.
type hub struct {
	home *home.Home

	mu        sync.Mutex
	following map[string]*follower
	closed    bool
	done      sync.WaitGroup
}

func newHub(h *home.Home) *hub { return &hub{home: h, following: map[string]*follower{}} }

// join gives the follower of a run; the first who comes starts it.
func (h *hub) join(id string) (*follower, error) {
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
	if f.look == nil {
		h.leave(f)
		return nil, f.err
	}
	return f, nil
}

// leave is the end of join; the last who goes ends the follower.
func (h *hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.clients--; f.clients == 0 && h.following[f.id] == f {
		delete(h.following, f.id)
		f.stop()
	}
}

// nudge has the follower of a run look at its log.
func (h *hub) nudge(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.following[id]; f != nil {
		select {
		case f.nudged <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for _, f := range h.following {
		f.stop()
	}
	h.mu.Unlock()
	h.done.Wait()
}

// A frame is an event, or something that a turn said, as it goes over the wire.
type frame struct {
	seq  int64  // of an event; 0 = something that was said
	kind string // of the event, or "delta"
	turn string
	runs bool // the turn that said it still runs
	wire []byte
}

// delta is what the frames are called in which a turn says something, and gap is said in the place of what is gone.
const (
	delta = "delta"
	gap   = home.Gap
)

// A follower follows one run, and keeps its last frames. Frames are counted from 0 on.
type follower struct {
	id      string
	ready   chan struct{} // is closed when it has begun, or could not
	look    *run.Look     // nil = it could not
	story   *run.Story
	clients int // the hub's
	ctx     context.Context
	stop    context.CancelFunc
	ended   bool              // the run's own loop said so
	nudged  chan struct{}     // holds a value when there may be something new
	agents  map[string]string // of the turns that run

	mu     sync.Mutex
	frames []frame
	bytes  int
	first  int64              // the number of frames[0]
	floor  int64              // the last event that is in no frame any more
	seq    int64              // the last event that was told
	speech map[string]*spoken // by turn: what those say that run
	more   chan struct{}      // is closed when there is more
	over   bool               // nothing will ever come
	err    error              // why it goes no further
}

// A spoken is what a running turn has said so far.
type spoken struct {
	frames []frame
	bytes  int
}

func newFollower(id string) *follower {
	f := &follower{id: id, ready: make(chan struct{}), nudged: make(chan struct{}, 1), agents: map[string]string{}, speech: map[string]*spoken{}, more: make(chan struct{})}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// live is all that a follower does, until it is stopped.
func (f *follower) live(h *home.Home) {
	look, err := f.begin(h)
	if f.err = err; err == nil {
		f.look = look
	}
	close(f.ready)
	if err == nil {
		f.run()
		<-f.ctx.Done() // its clients may still read the log
		look.Close()
	}
}

// begin begins with the last events that there are, so that those who want to know what has been need not read the log one by one.
func (f *follower) begin(h *home.Home) (*run.Look, error) {
	look, err := run.LookAt(h, f.id)
	if err != nil {
		return nil, err
	}
	driven := look.Driven() // asked first: what its driver wrote before it left is in the fold
	v, err := look.Fold()
	if err == nil {
		f.story, err = look.StoryFrom(v)
	}
	if err == nil {
		f.ended = v.Status.Ended()
		f.over = f.ended && !driven
		err = f.recall(look, v)
	}
	if err != nil {
		look.Close()
		return nil, err
	}
	return look, nil
}

// recall puts the events before a fold into frames.
func (f *follower) recall(look *run.Look, v *view.Run) error {
	for i := range v.Len() {
		if t := v.At(i); t.Status == swarm.Running {
			f.agents[t.Turn] = t.Agent
		}
	}
	f.floor = max(0, v.Seq-keptFrames)
	for f.seq = f.floor; f.seq < v.Seq; {
		events, err := look.Read(f.seq, int(min(mostPage, v.Seq-f.seq)))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return swarm.Errorf(swarm.Storage, "the log ends before event %d", v.Seq)
		}
		for i := range events {
			f.add(eventFrame(f.id, &events[i]))
		}
	}
	return nil
}

// run tells what happens until it is stopped or there is nothing more to tell.
func (f *follower) run() {
	if f.over {
		return
	}
	wake, off := f.look.Watch()
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
		left := f.ended && !f.look.Driven() // asked first: what its driver wrote before it left is told below
		var new []frame
		err := f.story.Tell(func(m run.Moment) error {
			new = append(new, f.frame(m))
			return nil
		})
		if f.publish(new, left, err) {
			return
		}
		pause := lookTime
		if len(f.agents) > 0 || f.ended {
			pause = listenTime
		}
		tick.Reset(pause)
	}
}

// frame makes a frame of a moment, and takes note of the turns that run.
func (f *follower) frame(m run.Moment) frame {
	if m.Event == nil {
		agent, runs := f.agents[m.Turn]
		said := sayingFrame(saying{f.id, m.Task, agent, m.Turn, piece{m.Time, m.Kind, m.Text, m.Gap}})
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
	return eventFrame(f.id, m.Event)
}

// publish hands out frames. It says whether they were the last ones.
func (f *follower) publish(new []frame, over bool, err error) bool {
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
func (f *follower) add(one frame) {
	if one.seq > 0 {
		f.seq = one.seq
	}
	f.frames = append(f.frames, one)
	f.bytes += len(one.wire)
	for len(f.frames) > keptFrames || f.bytes > keptBytes && len(f.frames) > 1 {
		gone := f.frames[0]
		f.frames, f.first, f.bytes = f.frames[1:], f.first+1, f.bytes-len(gone.wire)
		f.floor = max(f.floor, gone.seq)
	}
	switch swarm.EventKind(one.kind) {
	case delta:
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
func (f *follower) hear(one frame) {
	s := f.speech[one.turn]
	if s == nil {
		s = &spoken{}
		f.speech[one.turn] = s
	}
	s.frames = append(s.frames, one)
	s.bytes += len(one.wire)
	for s.bytes > keptSpeech && len(s.frames) > 1 {
		s.bytes -= len(s.frames[0].wire)
		s.frames = s.frames[1:]
	}
}

// after is the number of the first frame of an event after seq.
func (f *follower) after(seq int64) int64 {
	if seq >= f.seq {
		return f.first + int64(len(f.frames))
	}
	return f.first + int64(sort.Search(len(f.frames), func(i int) bool {
		for k := i; k < len(f.frames); k++ {
			if f.frames[k].seq > 0 {
				return f.frames[k].seq > seq
			}
		}
		return true
	}))
}

// eventFrame writes an event. Its data is one line of JSON, so nothing in it can end the line; its name is one of ours or none.
func eventFrame(id string, e *swarm.Event) frame {
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
	return frame{seq: e.Seq, kind: string(e.Kind), turn: e.Turn, wire: append(wire, "\n\n"...)}
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

// A saying is something that a turn says while it runs.
type saying struct {
	Run   string `json:"run"`
	Task  string `json:"task,omitempty"`
	Agent string `json:"agent,omitempty"`
	Turn  string `json:"turn,omitempty"`
	piece
}

// sayingFrame writes what a turn said. It has no id: the log does not have it, and nobody can come back to it.
func sayingFrame(s saying) frame {
	var b bytes.Buffer
	b.WriteString("event: " + delta + "\ndata: ")
	_ = json.NewEncoder(&b).Encode(s) // strings and numbers always can be; ends the line
	b.WriteString("\n")
	return frame{kind: delta, turn: s.Turn, wire: b.Bytes()}
}
