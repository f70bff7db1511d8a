package coding

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A turn is the state of one turn. While it is attached to a program, the program's lock guards it.
// After detach it belongs to the goroutine that called Turn.
type turn struct {
	request  provider.Request
	facts    facts
	id       string // of the message that begins it
	prompt   string // the part of the request's prompt that the session does not have
	dir      string // the program's working folder
	live     func(swarm.Delta)
	listener listener
	redactor *secret.Redactor
	program  *program // it does the turn
	later    bool     // a kept program does it, after other turns
	// ctx ends with the turn: no answer to what the program has asked is waited for any more. asking
	// counts who waits.
	ctx       context.Context
	endAsking context.CancelFunc
	asking    sync.WaitGroup
	streams   map[swarm.DeltaKind]*secret.Stream
	// pending collects text of one kind until there is no more to read, so that a flood becomes few
	// large deltas and not one for each line.
	pending struct {
		kind swarm.DeltaKind
		text []byte
	}
	lineOpen bool // the last shown text did not end its line
	tools    map[string]tool

	output    process.Tail // the last message, once the program has declared it the last
	shown     process.Tail // all text that was shown
	stderr    process.Tail
	usage     swarm.Usage
	listPrice float64      // of the answers so far, in US dollars; 0 = unknown
	total     *swarm.Usage // of the session, as the program reported it last; nil = it has not
	session   string
	heard     bool // the program has written a line of its stream
	unfit     bool // the program cannot do the turn when it is started like this; it has begun nothing
	modelUsed bool // a model was called, so the turn has cost something

	finished    bool         // the program has reported its result
	fault       *swarm.Error // the failure that the program reported, or nil
	sessionLost bool         // the session to be continued does not exist
	fatal       error        // an error that ends the program too
	midLine     bool         // the program ended in the middle of a line
	ended       chan struct{}
	resets      time.Time   // when the limit resets that the program has reported; zero = it has not
	modelWait   *time.Timer // runs while the program waits for its model's server
	patience    time.Duration
}

// A tool is a tool call of the turn, and the file that it changes.
type tool struct{ name, file string }

// Turn does one turn. If the session to be continued is gone, it begins a new one with the whole
// prompt.
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
	t, reply, err := a.runOnce(ctx, r, live, text)
	if t != nil && t.sessionLost && r.Session != "" && ctx.Err() == nil {
		live(swarm.Delta{
			Kind: swarm.DeltaStderr,
			Text: fmt.Sprintf("the session %s is gone; a new one is begun\n", r.Session),
		})
		r.Session = ""
		_, reply, err = a.runOnce(ctx, r, live, r.Prompt)
	}
	return reply, err
}

// runOnce has a program do the turn: the kept one, or a new one. A kept program that is found dead
// before it has said anything is replaced, because the turn has not begun.
func (a *agent) runOnce(
	ctx context.Context,
	r provider.Request,
	live func(swarm.Delta),
	text string,
) (*turn, provider.Reply, error) {
	if p := a.takeKept(r, a.shapeOf(r)); p != nil {
		t := a.newTurn(r, live, text, launch{}, true)
		t.attach(p)
		// The prompt may be longer than a pipe's buffer, and the program may never read it. The
		// turn must not wait for that.
		go func() { _, _ = p.proc.Write([]byte(a.vendor.begin(t, launch{}))) }()
		reply, err := a.finishTurn(ctx, p, t, true)
		// Once the program has said anything, or something else ended the turn, repeating it could
		// do its work twice.
		if t.heard || t.fatal != nil || ctx.Err() != nil || !p.hasEnded() {
			return t, reply, err
		}
	}
	for {
		l := a.vendor.launch(r, r.Session, a.lookup(r))
		t := a.newTurn(r, live, text, l, false)
		p, err := a.startProgram(r, r.Session, a.shapeOf(r), t, l, a.vendor.begin(t, l))
		if err != nil {
			return nil, provider.Reply{Free: true}, err
		}
		reply, err := a.finishTurn(ctx, p, t, l.persistent)
		older, ok := a.vendor.(downgrader)
		if err == nil || t.heard && !t.unfit || ctx.Err() != nil || !ok {
			return t, reply, err
		}
		cannot := older.downgrade(l, t)
		if cannot == "" {
			return t, reply, err
		}
		live(swarm.Delta{Kind: swarm.DeltaStderr, Text: "this version of " + a.facts.Title + " cannot " + cannot + "\n"})
	}
}

// newTurn makes the state of a turn. later says that a kept program does it.
func (a *agent) newTurn(r provider.Request, live func(swarm.Delta), prompt string, l launch, later bool) *turn {
	t := &turn{
		request:  r,
		prompt:   prompt,
		dir:      a.folderOf(r),
		facts:    a.facts,
		id:       newID(),
		live:     live,
		later:    later,
		tools:    map[string]tool{},
		streams:  map[swarm.DeltaKind]*secret.Stream{},
		stderr:   process.Tail{Max: 8 << 10},
		ended:    make(chan struct{}),
		session:  r.Session,
		patience: a.patience,
	}
	t.ctx, t.endAsking = context.WithCancel(context.Background())
	t.modelWait = time.NewTimer(time.Hour)
	t.modelWait.Stop()
	t.listener = a.vendor.newListener(t, l)
	return t
}

// attach makes the turn the one that receives the program's output.
func (t *turn) attach(p *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.redactor, t.program, p.turn = p.redactor, p, t
}

// finishTurn waits for the end of the turn. A program that is kept goes on after it.
func (a *agent) finishTurn(ctx context.Context, p *program, t *turn, kept bool) (provider.Reply, error) {
	defer context.AfterFunc(ctx, t.endAsking)()
	exhausted := false
	select {
	case <-t.ended:
	case <-p.done:
	case <-ctx.Done():
		p.stop() // before anything else waits
	case <-t.modelWait.C:
		exhausted = true
	}
	t.modelWait.Stop()
	p.mu.Lock()
	good := t.succeeded()
	p.mu.Unlock()
	// Nothing else can hear the program now, so it can wait for the next turn.
	if kept && ctx.Err() == nil && good {
		p.detach()
		t.endAsks()
		p.session = t.session
		a.Keep(t.request, p)
		return t.reply(0), nil
	}
	// A persistent program that failed or was cut would go on in an unknown state, so it ends at
	// once.
	a.endProgram(ctx, p, t, exhausted || kept)
	p.detach()
	t.endAsks()
	t.flush()
	reply := t.reply(p.exit)
	if p.stopped.Load() && ctx.Err() == nil {
		reply.Exit = 0 // we made it end, so its status says nothing
	}
	if exhausted {
		e := swarm.Errorf(swarm.RateLimited, "%s waits for its model's server, which has told it to come back later", a.facts.Title).
			WithHint(provider.ComeBack)
		e.Until = provider.ResetAt(string(t.stderr.Bytes()), time.Now())
		return reply, e
	}
	return reply, t.turnError(ctx, p)
}

// endAsks ends the waits for answers. The program is detached, so it can ask nothing more.
func (t *turn) endAsks() {
	t.endAsking()
	t.asking.Wait()
}

// succeeded says whether the program has reported a result and no failure.
func (t *turn) succeeded() bool { return t.finished && t.fault == nil && t.fatal == nil }

// endProgram sees the program to its end. A program that has reported everything gets some time to
// exit by itself; any other is ended at once.
func (a *agent) endProgram(ctx context.Context, p *program, t *turn, atOnce bool) {
	p.mu.Lock()
	atOnce = atOnce || t.fatal != nil || !t.finished && t.fault == nil
	p.mu.Unlock()
	if atOnce {
		p.detach()
	} else {
		if p.talks {
			p.proc.CloseInput() // the program ends at the end of its input
		}
		late := time.NewTimer(a.settleTime)
		defer late.Stop()
		select {
		case <-p.done:
		case <-ctx.Done():
		case <-late.C:
		}
	}
	p.end()
}

// turnError returns how the turn has failed, or nil. The program has ended.
func (t *turn) turnError(ctx context.Context, p *program) error {
	name := t.facts.Title
	switch {
	case t.succeeded() && p.stopped.Load():
		return nil
	case ctx.Err() != nil && !t.succeeded():
		return swarm.CutError(ctx)
	case t.fatal != nil:
		return t.fatal
	case t.fault != nil:
		return t.fault
	case p.waitErr != nil:
		return &swarm.Error{Kind: swarm.Other, Msg: "it is unknown how " + name + " ended", Err: p.waitErr}
	case p.exit != 0:
		return t.exitError(p.status)
	case t.midLine:
		return swarm.Errorf(swarm.NoResult, "%s ended in the middle of a line, without a result%s", name, t.lastWords()).
			WithHint(provider.TryAgain)
	case !t.finished:
		return swarm.Errorf(swarm.NoResult, "%s ended without a result%s", name, t.lastWords()).
			WithHint(provider.TryAgain)
	}
	return nil
}

func (t *turn) lastWords() string { return process.LastWords(t.stderr.Bytes()) }

// reply makes the reply of the turn. The reply of a turn that failed before its last message holds
// the text that was shown so far.
func (t *turn) reply(exit int) provider.Reply {
	output := &t.output
	if output.Len() == 0 && !t.succeeded() {
		output = &t.shown
	}
	usage := t.usage
	if !t.finished && usage.USD == 0 && t.listPrice > 0 { // the program tells its dollars at the end of a turn
		usage.USD, usage.Estimated = t.listPrice, true
	}
	return provider.Reply{
		Output:  output.Bytes(),
		Bytes:   output.Len(),
		Usage:   usage,
		Free:    !t.modelUsed && !t.finished,
		Session: t.session,
		Exit:    exit,
		Stderr:  t.stderr.Bytes(),

		SessionTotal: t.total,
	}
}

// hearLine takes one line of standard output. A line that is not JSON comes from a part of the
// program that does not know the stream.
func (t *turn) hearLine(line []byte) {
	if len(line) == 0 || t.fatal != nil {
		return
	}
	if line[0] != '{' {
		t.strayLine(line)
		return
	}
	switch err := t.listener.hearLine(line); {
	case errors.Is(err, errNoJSON):
		t.strayLine(line)
	case err != nil:
		t.abort(err)
	default:
		t.heard = true
	}
}

// hearRest takes the end of the stream, which no newline follows.
func (t *turn) hearRest(rest []byte) {
	if json.Valid(rest) || rest[0] != '{' {
		t.hearLine(rest)
		return
	}
	t.midLine = true
}

// abort ends the turn and the program.
func (t *turn) abort(err error) {
	if t.fatal == nil {
		t.fatal = err
	}
	t.markEnded()
}

// markEnded wakes finishTurn. A turn may report its end several times.
func (t *turn) markEnded() {
	select {
	case <-t.ended:
	default:
		close(t.ended)
	}
}

// writeStderr takes output that is not a part of the stream.
func (t *turn) writeStderr(text string) { t.appendPending(swarm.DeltaStderr, text) }

// strayLine takes a line of standard output that is not a part of the stream.
func (t *turn) strayLine(line []byte) {
	t.appendPending(swarm.DeltaStderr, "")
	t.pending.text = append(append(t.pending.text, line...), '\n')
}

// appendPending adds text to the next delta. Pending text of another kind is sent first.
func (t *turn) appendPending(kind swarm.DeltaKind, text string) {
	if t.pending.kind != kind {
		t.sendPending()
		t.pending.kind = kind
	}
	t.pending.text = append(t.pending.text, text...)
}

// sendPending sends the pending text, as far as redaction allows now.
func (t *turn) sendPending() {
	kind := t.pending.kind
	if len(t.pending.text) == 0 {
		return
	}
	text := strings.ToValidUTF8(string(t.pending.text), string(utf8.RuneError))
	if t.pending.text = t.pending.text[:0]; cap(t.pending.text) > maxPending {
		t.pending.text = nil
	}
	if t.streams[kind] == nil {
		t.streams[kind] = t.redactor.Stream()
	}
	t.emit(kind, t.streams[kind].Write(text))
	if m, ok := t.listener.(stderrListener); ok && kind == swarm.DeltaStderr {
		m.hearStderr(text)
	}
}

// maxPending is the size of the buffer that is kept for pending text: as much as comes at once.
const maxPending = 128 << 10

// emit sends redacted text, and keeps the tails that the reply and the errors need.
func (t *turn) emit(kind swarm.DeltaKind, text string) {
	if text == "" {
		return
	}
	switch kind {
	case swarm.DeltaText:
		_, _ = t.shown.Write([]byte(text))
	case swarm.DeltaStderr:
		_, _ = t.stderr.Write([]byte(text))
	}
	t.live(swarm.Delta{Kind: kind, Text: text})
}

// publish sends a delta that holds no text, after the pending text.
func (t *turn) publish(d swarm.Delta) {
	t.sendPending()
	t.live(d)
}

// flush sends the text that redaction held back.
func (t *turn) flush() {
	t.sendPending()
	for kind, s := range t.streams {
		t.emit(kind, s.Flush())
	}
}

// newID makes the name of a message: a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
