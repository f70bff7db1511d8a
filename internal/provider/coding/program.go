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

// A program is a running process. A program that is kept outlives the turn that started it.
//
// Two goroutines serve it: wait waits for its end, and a second one decodes its output. mu guards
// the state that they share with the turns: the attached turn and its lines.
type program struct {
	proc     *process.Process
	shape    string // launch settings; a later turn with others needs a new process
	redactor *secret.Redactor
	folder   string // holds its files, or ""
	talks    bool   // its standard input is open
	cancel   context.CancelFunc
	stopped  atomic.Bool        // we made it end
	pieces   chan piece         // its output, on the way to the attached turn
	done     chan struct{}      // closed when the process group is gone and all its output is decoded
	status   syscall.WaitStatus // set before done is closed
	exit     int                // status as shells print it; set before done is closed
	waitErr  error              // why its end is unknown; set before done is closed

	mu      sync.Mutex
	lines   process.Lines
	turn    *turn // the attached turn, or nil: then output is dropped
	session string
}

// A piece is a part of a program's output.
type piece struct {
	noise bool // from standard error
	text  string
}

// maxPieces is the length of the queue between reading and decoding. Each piece is at most as long
// as a pipe's buffer. The queue lets a program that has ended be read to its end within its grace
// time, even if decoding is slow.
const maxPieces = 128

// maxLine is the longest line that is accepted. An answer is one line, and so is a file that a tool
// has read.
const maxLine = 16 << 20

// startProgram starts a process for a turn and gives it its input. text is the encoded prompt.
func (a *agent) startProgram(
	r provider.Request,
	session, shape string,
	t *turn,
	l launch,
	text string,
) (*program, error) {
	dir := a.folderOf(r)
	p := &program{
		shape:   shape,
		talks:   l.persistent || l.talks,
		lines:   process.Lines{Max: maxLine},
		pieces:  make(chan piece, maxPieces),
		done:    make(chan struct{}),
		session: session,
	}
	if err := p.writeFiles(&l); err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			p.removeFiles()
		}
	}()
	added := map[string]string{}
	maps.Copy(added, l.env)
	maps.Copy(added, r.Env)
	env, err := a.env.Of(r.Mark(), added, dir)
	if err == nil {
		env, err = overlayEnv(env, l.overlay)
	}
	if err != nil {
		return nil, err
	}
	path, missing := a.programSpec().Find(dir)
	if missing != nil {
		return nil, missing
	}
	// The turn is attached before the start, so that it misses no output.
	p.redactor = secret.New(env, nil)
	t.attach(p)
	var files []string
	if p.folder != "" {
		files = []string{p.folder}
	}
	path, argv, err := a.box.Wrap(path, append(append([]string{}, a.argv...), l.args...), r.Workspace(dir, files...))
	if err != nil {
		return nil, a.programSpec().StartError(dir, err)
	}
	job := process.Job{
		Path:   path,
		Argv:   argv,
		Dir:    dir,
		Env:    env,
		Input:  &text,
		Talk:   p.talks,
		Grace:  a.grace,
		Run:    r.Run,
		Turn:   string(r.Turn),
		Stdout: func(text string) { p.pieces <- piece{false, text} },
		Stderr: func(text string) { p.pieces <- piece{true, text} },
	}
	if p.proc, err = job.Start(); err != nil {
		return nil, a.programSpec().StartError(dir, err)
	}
	started = true
	// The program's life is not bound to the turn's context, because it may outlive the turn.
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.wait(ctx)
	return p, nil
}

// writeFiles writes the launch's files into a private folder.
func (p *program) writeFiles(l *launch) error {
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
		p.removeFiles()
		return &swarm.Error{
			Kind: swarm.Other,
			Msg:  "there is no place for the program's settings",
			Hint: "make room in " + os.TempDir(),
			Err:  err,
		}
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

// removeFiles removes the folder of the launch's files.
func (p *program) removeFiles() {
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
}

// wait waits until the process group has ended and its output is decoded, then closes done.
func (p *program) wait(ctx context.Context) {
	drained := make(chan struct{})
	go func() {
		for piece := range p.pieces {
			p.handlePiece(piece)
		}
		close(drained)
	}()
	if p.status, _, p.waitErr = p.proc.Wait(ctx); p.waitErr == nil {
		p.exit = process.ExitCode(p.status)
	}
	// The order matters: no more pieces come once Wait has returned, so the channel can be closed.
	// The rest of a line is known only when all pieces are decoded.
	p.cancel()
	p.removeFiles()
	close(p.pieces)
	<-drained
	p.mu.Lock()
	if p.turn != nil && len(p.lines.Rest) > 0 {
		p.turn.hearRest(p.lines.Rest)
	}
	p.mu.Unlock()
	close(p.done)
}

// stop makes the program end. It does not wait for the end.
func (p *program) stop() {
	if !p.hasEnded() {
		p.stopped.Store(true)
	}
	p.cancel()
}

// end makes the program end, and waits for it.
func (p *program) end() {
	p.stop()
	<-p.done
}

// hasEnded says whether the program has ended.
func (p *program) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// handlePiece gives output to the attached turn. Without a turn it is dropped, but lines are still
// split, so that the next turn starts at the beginning of a line.
func (p *program) handlePiece(said piece) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil {
		defer p.turn.sendPending()
	}
	if said.noise {
		if p.turn != nil {
			p.turn.writeStderr(said.text)
		}
		return
	}
	ok := p.lines.Write(said.text, func(line []byte) {
		if p.turn != nil {
			p.turn.hearLine(line)
		}
	})
	if !ok && p.turn != nil {
		p.turn.abort(
			swarm.Errorf(swarm.Protocol, "it wrote a line of more than %d MB", maxLine>>20).
				WithHint("look at what the program prints; ask for less at once"),
		)
	}
}

// detach ends the listening of the attached turn. The turn changes no more once detach has
// returned.
func (p *program) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn = nil
}

// takeKept returns the program that was kept for the agent's next turn, or nil. A program with
// another launch or in another session cannot do the turn and is ended.
func (a *agent) takeKept(r provider.Request, shape string) *program {
	p, ok := a.Take(r)
	if !ok || !p.hasEnded() && p.shape == shape && r.Session != "" && p.session == r.Session {
		return p
	}
	p.end()
	return nil
}

// shapeOf encodes all that a launch depends on, except for the session.
func (a *agent) shapeOf(r provider.Request) string {
	b, _ := json.Marshal([]any{a.vendor.launch(r, "", a.lookup(r)).args, a.folderOf(r), r.Env, r.Door, r.Root, r.Docs()})
	return string(b)
}

// lookup returns the values of the variables that a turn's program has, before the vendor adds some.
func (a *agent) lookup(r provider.Request) lookup {
	env := sync.OnceValue(func() []string {
		env, _ := a.env.Of(r.Mark(), r.Env, a.folderOf(r)) // the start reports the error
		return env
	})
	return func(name string) string {
		value, _ := process.Lookup(env(), name)
		return value
	}
}

// folderOf returns the folder in which the program works.
func (a *agent) folderOf(r provider.Request) string {
	if r.Dir != "" {
		return r.Dir
	}
	return a.dir
}
