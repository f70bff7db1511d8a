package coding

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A turn is one turn on its way. While it is attached to a program, the program's lock guards it.
type turn struct {
	request provider.Request
	facts   facts
	id      string // of the message that begins it
	live    func(swarm.Delta)
	hear    listener
	hide    *secret.Redactor
	later   bool // the program has done others before
	streams map[swarm.DeltaKind]*secret.Stream
	pending struct { // what came of one kind, and is told when no more of it is there to read: a flood is not told line by line
		kind swarm.DeltaKind
		text []byte
	}
	begun bool // some text was shown that has not ended its line
	tools map[string]tool

	output  process.Tail // its last message, once it has said that it is the last
	said    process.Tail // all that was shown of what it said
	stderr  process.Tail
	usage   swarm.Usage
	session string
	heard   bool // the program has said something
	asked   bool // a model was

	finished bool         // the program has said its result
	fault    *swarm.Error // or that it failed
	lost     bool         // the session is not there
	fatal    error        // what ends the program too
	half     bool         // it ended in the middle of a line
	ended    chan struct{}
	tired    *time.Timer // runs while the program waits for its model's server
	patience time.Duration
}

// A tool is one that was called.
type tool struct{ name, file string }

// Turn does one turn.
func (a *agent) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if ctx.Err() != nil {
		return provider.Reply{}, swarm.CutError(ctx)
	}
	if live == nil {
		live = func(swarm.Delta) {}
	}
	text := r.Prompt
	if r.Session != "" && r.Fresh != "" {
		text = r.Fresh
	}
	t, reply, err := a.once(ctx, r, live, text)
	if t != nil && t.lost && r.Session != "" && ctx.Err() == nil {
		live(swarm.Delta{Kind: swarm.DeltaStderr, Text: fmt.Sprintf("the session %s is gone; a new one is begun\n", r.Session)})
		r.Session = ""
		_, reply, err = a.once(ctx, r, live, r.Prompt)
	}
	return reply, err
}

// once has a program do the turn: the one that was kept, or a new one. One that was kept and is found dead is replaced.
func (a *agent) once(ctx context.Context, r provider.Request, live func(swarm.Delta), text string) (*turn, provider.Reply, error) {
	shape := a.shapeOf(r)
	if p := a.take(r, shape); p != nil {
		t := a.newTurn(r, live, true)
		t.attach(p)
		go func() { _, _ = p.proc.Write([]byte(a.vendor.say(text, t.id))) }()
		reply, err := a.finish(ctx, p, t, true)
		if t.heard || t.fatal != nil || ctx.Err() != nil || !p.gone() {
			return t, reply, err
		}
	}
	t := a.newTurn(r, live, false)
	l := a.vendor.launch(r, r.Session)
	p, err := a.start(r, r.Session, shape, t, l, a.vendor.say(text, t.id))
	if err != nil {
		return nil, provider.Reply{Free: true}, err
	}
	reply, err := a.finish(ctx, p, t, l.kept)
	return t, reply, err
}

func (a *agent) newTurn(r provider.Request, live func(swarm.Delta), later bool) *turn {
	t := &turn{request: r, facts: a.facts, id: newID(), live: live, later: later, tools: map[string]tool{}, streams: map[swarm.DeltaKind]*secret.Stream{},
		stderr: process.Tail{Max: 8 << 10}, ended: make(chan struct{}), session: r.Session, patience: a.patient}
	t.tired = time.NewTimer(time.Hour)
	t.tired.Stop()
	t.hear = a.vendor.listen(t)
	return t
}

// attach has the turn listen to a program.
func (t *turn) attach(p *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.hide, p.turn = p.hide, t
}

// finish waits for the end of a turn, which is not always the program's.
func (a *agent) finish(ctx context.Context, p *program, t *turn, kept bool) (provider.Reply, error) {
	exhausted := false
	select {
	case <-t.ended:
	case <-p.over:
	case <-ctx.Done():
		p.stop() // at once, before anything is waited for
	case <-t.tired.C:
		exhausted = true
	}
	t.tired.Stop()
	p.mu.Lock()
	good := t.good()
	p.mu.Unlock()
	if kept && ctx.Err() == nil && good {
		p.leave()
		p.session = t.session
		a.Keep(t.request, p)
		return t.reply(0), nil
	}
	a.end(ctx, p, t, exhausted || kept)
	p.leave()
	t.flush()
	reply := t.reply(p.exit)
	if p.made.Load() && ctx.Err() == nil {
		reply.Exit = 0 // that it was made to end says nothing about it
	}
	if exhausted {
		return reply, swarm.Errorf(swarm.RateLimited, "%s waits for its model's server, which has told it to come back later", a.facts.Title).WithHint(provider.ComeBack)
	}
	return reply, t.verdict(ctx, p)
}

// good says that the program has done what it was asked.
func (t *turn) good() bool { return t.finished && t.fault == nil && t.fatal == nil }

// end sees the program to its end: it has some time to come to it by itself if it has said all, and none at all otherwise.
func (a *agent) end(ctx context.Context, p *program, t *turn, atOnce bool) {
	p.mu.Lock()
	atOnce = atOnce || t.fatal != nil || !t.finished && t.fault == nil
	p.mu.Unlock()
	if atOnce {
		p.leave()
	} else {
		late := time.NewTimer(a.settle)
		defer late.Stop()
		select {
		case <-p.over:
		case <-ctx.Done():
		case <-late.C:
		}
	}
	p.end()
}

// verdict is how a turn has failed, if it has. The program has ended.
func (t *turn) verdict(ctx context.Context, p *program) error {
	name := t.facts.Title
	switch {
	case t.good() && p.made.Load():
		return nil
	case ctx.Err() != nil && !t.good():
		return swarm.CutError(ctx)
	case t.fatal != nil:
		return t.fatal
	case t.fault != nil:
		return t.fault
	case p.lost != nil:
		return &swarm.Error{Kind: swarm.Other, Msg: "nobody can say how " + name + " ended", Err: p.lost}
	case p.exit != 0:
		return t.exited(p.status)
	case t.half:
		return swarm.Errorf(swarm.NoResult, "%s ended in the middle of a line, without a result%s", name, t.lastWords()).WithHint(provider.TryAgain)
	case !t.finished:
		return swarm.Errorf(swarm.NoResult, "%s ended without a result%s", name, t.lastWords()).WithHint(provider.TryAgain)
	}
	return nil
}

func (t *turn) lastWords() string { return process.LastWords(t.stderr.Bytes()) }

// reply is what the turn has come to. Of one that has failed before its last message, what the agent has said so far is kept.
func (t *turn) reply(exit int) provider.Reply {
	output := &t.output
	if output.Len() == 0 && !t.good() {
		output = &t.said
	}
	return provider.Reply{Output: output.Bytes(), Bytes: output.Len(), Usage: t.usage, Free: !t.asked && !t.finished, Session: t.session,
		Exit: exit, Stderr: t.stderr.Bytes()}
}

// line hears one line. What is no JSON is a message of some part of the program that knows nothing of the stream.
func (t *turn) line(line []byte) {
	if len(line) == 0 || t.fatal != nil {
		return
	}
	if line[0] != '{' {
		t.mutters(line)
		return
	}
	t.tired.Stop()
	switch err := t.hear.line(line); {
	case errors.Is(err, errNoJSON):
		t.mutters(line)
	case err != nil:
		t.abort(err)
	default:
		t.heard = true
	}
}

// last hears the end of the stream, which no end of a line follows.
func (t *turn) last(rest []byte) {
	if json.Valid(rest) || rest[0] != '{' {
		t.line(rest)
		return
	}
	t.half = true
}

// abort ends the turn and the program.
func (t *turn) abort(err error) {
	if t.fatal == nil {
		t.fatal = err
	}
	t.over()
}

func (t *turn) over() {
	select {
	case <-t.ended:
	default:
		close(t.ended)
	}
}

// noise is what the program says that is not for its user.
func (t *turn) noise(text string) { t.says(swarm.DeltaStderr, text) }

// mutters is a line of it in the middle of the stream.
func (t *turn) mutters(line []byte) {
	t.says(swarm.DeltaStderr, "")
	t.pending.text = append(append(t.pending.text, line...), '\n')
}

// says adds to what is told next. What came before it of another kind is told first.
func (t *turn) says(kind swarm.DeltaKind, text string) {
	if t.pending.kind != kind {
		t.utter()
		t.pending.kind = kind
	}
	t.pending.text = append(t.pending.text, text...)
}

// utter tells what is pending, as far as it may be shown now.
func (t *turn) utter() {
	kind := t.pending.kind
	if len(t.pending.text) == 0 {
		return
	}
	text := strings.ToValidUTF8(string(t.pending.text), string(utf8.RuneError))
	if t.pending.text = t.pending.text[:0]; cap(t.pending.text) > maxPending {
		t.pending.text = nil
	}
	if t.streams[kind] == nil {
		t.streams[kind] = t.hide.Stream()
	}
	t.emit(kind, t.streams[kind].Write(text))
	if m, ok := t.hear.(mutterer); ok && kind == swarm.DeltaStderr {
		m.mutters(text)
	}
}

// maxPending is how much room is kept for what is pending: as much as comes at once.
const maxPending = 128 << 10

func (t *turn) emit(kind swarm.DeltaKind, text string) {
	if text == "" {
		return
	}
	switch kind {
	case swarm.DeltaText:
		_, _ = t.said.Write([]byte(text))
	case swarm.DeltaStderr:
		_, _ = t.stderr.Write([]byte(text))
	}
	t.live(swarm.Delta{Kind: kind, Text: text})
}

// tell tells something that is no text, after what was said before it.
func (t *turn) tell(d swarm.Delta) {
	t.utter()
	t.live(d)
}

// flush shows what was held back.
func (t *turn) flush() {
	t.utter()
	for kind, s := range t.streams {
		t.emit(kind, s.Flush())
	}
}

// newID names a message: a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
