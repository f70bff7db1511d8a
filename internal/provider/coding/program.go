package coding

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A program is a running one. It outlives the turn that has started it if it is kept.
type program struct {
	proc   *process.Process
	shape  string // what must be the same for another turn to be done by it
	hide   *secret.Redactor
	folder string // for its files, or ""
	cancel context.CancelFunc
	made   atomic.Bool        // it was made to end
	pieces chan piece         // of what it says, on their way to whoever listens
	over   chan struct{}      // closed when nothing of it is left, and all that it said was heard
	status syscall.WaitStatus // then
	exit   int                // the same in one number, as shells say it
	lost   error              // nobody can say how it ended

	mu      sync.Mutex
	lines   process.Lines
	turn    *turn // who listens; nil = nobody
	session string
}

// A piece is something that a program has said.
type piece struct {
	noise bool // on standard error
	text  string
}

// maxPieces are held for somebody who is slow to listen, each as long as a pipe holds. A program that has ended is read to its end
// within its grace, however long it takes to understand it.
const maxPieces = 128

// maxLine is the longest line that is read. An answer is one line, and so is what a tool has read.
const maxLine = 16 << 20

// start makes a process for a turn and gives it what it has to read.
func (a *agent) start(r provider.Request, session, shape string, t *turn, l launch, text string) (*program, error) {
	dir := a.folderOf(r)
	p := &program{shape: shape, lines: process.Lines{Max: maxLine}, pieces: make(chan piece, maxPieces), over: make(chan struct{}), session: session}
	if err := p.place(&l); err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			p.clean()
		}
	}()
	added := map[string]string{}
	maps.Copy(added, l.env)
	maps.Copy(added, r.Env)
	env, err := a.env.Of(r.Mark(), added, dir)
	if err == nil {
		env, err = lay(env, l.over)
	}
	if err != nil {
		return nil, err
	}
	path, missing := a.program().Find(dir)
	if missing != nil {
		return nil, missing
	}
	p.hide = secret.New(env, nil)
	t.attach(p)
	job := process.Job{Path: path, Argv: append(append([]string{}, a.argv...), l.args...), Dir: dir, Env: env, Input: &text, Talk: l.kept, Grace: a.grace,
		Run: r.Run, Turn: r.Turn, Stdout: func(text string) { p.pieces <- piece{false, text} }, Stderr: func(text string) { p.pieces <- piece{true, text} }}
	if p.proc, err = job.Start(); err != nil {
		return nil, a.program().StartError(dir, err)
	}
	started = true
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.wait(ctx)
	return p, nil
}

// place puts the launch's files into a folder of their own.
func (p *program) place(l *launch) error {
	if len(l.files) == 0 {
		return nil
	}
	folder, err := os.MkdirTemp("", "swarm-agent-") // 0700
	if err == nil {
		p.folder = folder
		for name, text := range l.files {
			if err = os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				break
			}
		}
	}
	if err != nil {
		p.clean()
		return &swarm.Error{Kind: swarm.Other, Msg: "there is no place for the program's settings", Hint: "make room in " + os.TempDir(), Err: err}
	}
	args := make([]string, len(l.args))
	for i, arg := range l.args {
		args[i] = strings.ReplaceAll(arg, folderHere, folder)
	}
	env := map[string]string{}
	for k, v := range l.env {
		env[k] = strings.ReplaceAll(v, folderHere, folder)
	}
	l.args, l.env = args, env
	return nil
}

func (p *program) clean() {
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
}

// wait sees the program to its end.
func (p *program) wait(ctx context.Context) {
	drained := make(chan struct{})
	go func() {
		for piece := range p.pieces {
			p.hear(piece)
		}
		close(drained)
	}()
	if p.status, _, p.lost = p.proc.Wait(ctx); p.lost == nil {
		p.exit = process.ExitCode(p.status)
	}
	p.cancel()
	p.clean()
	close(p.pieces)
	<-drained
	p.mu.Lock()
	if p.turn != nil && len(p.lines.Rest) > 0 {
		p.turn.last(p.lines.Rest)
	}
	p.mu.Unlock()
	close(p.over)
}

// stop makes the program end. It does not wait for it.
func (p *program) stop() {
	if !p.gone() {
		p.made.Store(true)
	}
	p.cancel()
}

// end makes the program end, and waits for it.
func (p *program) end() {
	p.stop()
	<-p.over
}

// gone says that the program has ended.
func (p *program) gone() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// hear takes what the program says. What it says to nobody is dropped.
func (p *program) hear(said piece) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil {
		defer p.turn.utter()
	}
	if said.noise {
		if p.turn != nil {
			p.turn.noise(said.text)
		}
		return
	}
	ok := p.lines.Write(said.text, func(line []byte) {
		if p.turn != nil {
			p.turn.line(line)
		}
	})
	if !ok && p.turn != nil {
		p.turn.abort(swarm.Errorf(swarm.Protocol, "it wrote a line of more than %d MB", maxLine>>20).WithHint("look at what the program prints; ask for less at once"))
	}
}

// leave ends the listening of a turn: it hears nothing any more when this returns.
func (p *program) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn = nil
}

// take gives the agent's next turn the program that was kept for it, or nil. One of another shape, or in another session, is ended.
func (a *agent) take(r provider.Request, shape string) *program {
	p, ok := a.Take(r)
	if !ok || !p.gone() && p.shape == shape && r.Session != "" && p.session == r.Session {
		return p
	}
	p.end()
	return nil
}

// shapeOf is what a program is made by, without the session that it continues.
func (a *agent) shapeOf(r provider.Request) string {
	b, _ := json.Marshal([]any{a.vendor.launch(r, "").args, a.folderOf(r), r.Env, r.Door, r.Root})
	return string(b)
}

func (a *agent) folderOf(r provider.Request) string {
	if r.Dir != "" {
		return r.Dir
	}
	return a.dir
}
