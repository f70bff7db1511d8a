package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// An agentProgram is a program that runs for one agent, and the session that it is in. One turn at
// a time owns it; only the attached turn is shared with other goroutines.
type agentProgram struct {
	host      *host
	launchKey string
	conn      *conn
	proc      *process.Process
	stop      context.CancelFunc
	done      chan struct{}      // closed when the process group has ended
	status    syscall.WaitStatus // set before done is closed

	hello       initializeResult
	initialized bool
	session     sessionInfo
	env         []string
	redactor    *secret.Redactor // of the secrets in env
	sessionCost float64          // US dollars that the session has cost by its own account; -1 = unknown
	ready       bool             // it has ended its turn by itself, or was told to, and can do another
	settled     chan struct{}    // closed when it has ended a turn that was cut, or has itself been ended

	mu   sync.Mutex
	turn *turn // the attached turn, or nil
}

// launchKey encodes what a program was started with and what cannot change while it runs.
func (h *host) launchKey(r provider.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q %q", h.arguments(r), r.Dir, r.Root, r.Docs(), r.Door)
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		fmt.Fprintf(&b, " %q=%q", name, r.Env[name])
	}
	return b.String()
}

// newAgentProgram makes a program that is not started yet.
func newAgentProgram(h *host, launchKey string, env []string) *agentProgram {
	p := &agentProgram{
		host:      h,
		launchKey: launchKey,
		env:       env,
		redactor:  secret.New(env, nil),
		conn:      newConn(),
		done:      make(chan struct{}),
		settled:   make(chan struct{}),
	}
	close(p.settled)
	p.conn.onNotice, p.conn.onRequest, p.conn.onStray = p.handleNotice, p.serveRequest, p.writeStderr
	return p
}

// start starts the process for a turn, and a goroutine that waits for its end.
func (p *agentProgram) start(job process.Job, r provider.Request) (err error) {
	if job.Path, job.Argv, err = p.host.box.Wrap(job.Path, job.Argv, r.Workspace(job.Dir)); err != nil {
		return err
	}
	job.Stdout = p.conn.readPiece
	job.Stderr = func(piece string) { p.publish(swarm.Delta{Kind: swarm.DeltaStderr, Text: piece}) }
	if p.proc, err = job.Start(); err != nil {
		return err
	}
	life, leave := context.WithCancel(context.Background())
	p.stop = leave
	go p.conn.writeOutbox(p.proc)
	go func() {
		defer leave()
		p.status, _, _ = p.proc.Wait(life)
		if rest := p.conn.lines.Rest; len(rest) > 0 {
			p.writeStderr(string(rest))
		}
		p.conn.close(errGone)
		close(p.done)
	}()
	return nil
}

// end ends the program with all processes that it has started, and waits for that.
func (p *agentProgram) end() {
	p.stop()
	<-p.done
}

// attach makes the turn the one that the program works on.
func (p *agentProgram) attach(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.ready = t, false
	t.setRedactor(p.redactor)
}

// detach ends the program's turn. What the program says from now on, for instance while it dies,
// belongs to no turn. ready says whether it can do another turn.
func (p *agentProgram) detach() (ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn = nil
	return p.ready && !p.conn.isClosed()
}

// currentTurn returns the attached turn, or nil.
func (p *agentProgram) currentTurn() *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn
}

// publish sends a delta to the attached turn. Without one it is dropped.
func (p *agentProgram) publish(d swarm.Delta) {
	if t := p.currentTurn(); t != nil {
		t.publish(d)
	}
}

func (p *agentProgram) writeStderr(line string) {
	p.publish(swarm.Delta{Kind: swarm.DeltaStderr, Text: line + "\n"})
}

// handleNotice takes a notification of the agent.
func (p *agentProgram) handleNotice(method string, params json.RawMessage) {
	var n struct {
		Session string `json:"sessionId"`
		Update  update `json:"update"`
	}
	if method != "session/update" {
		return
	}
	if err := json.Unmarshal(params, &n); err != nil {
		p.writeStderr("cannot decode an update: " + err.Error())
		return
	}
	if t := p.currentTurn(); t != nil {
		t.handleUpdate(n.Session, n.Update)
	}
}

// serveRequest answers a request of the agent.
func (p *agentProgram) serveRequest(method string, params json.RawMessage) (any, *rpcError) {
	t := p.currentTurn()
	if t != nil {
		defer t.serve()()
	}
	switch {
	case t == nil && method == "session/request_permission": // of a turn that was cut
		return outcome("cancelled", ""), nil
	case t == nil:
		return nil, &rpcError{Code: codeFailed, Message: "no turn is under way"}
	case method == "session/request_permission":
		return t.decidePermission(params)
	case method == "fs/read_text_file":
		return t.readFile(params)
	case method == "fs/write_text_file":
		return t.writeFile(params)
	}
	return nil, &rpcError{Code: codeNoMethod, Message: "there is no method " + method}
}

// runTurn does the turn. It skips the greeting and the session where an earlier turn has done them.
func (p *agentProgram) runTurn(ctx context.Context, t *turn) error {
	if err := p.initialize(ctx); err != nil {
		return err
	}
	text, err := p.openSession(ctx, t)
	if err != nil {
		return err
	}
	if err := p.configureSession(ctx, t.r.Model); err != nil {
		return err
	}
	t.publish(swarm.Delta{Kind: swarm.DeltaSession, Session: p.session.ID})
	t.followSession(p.session.ID, p.sessionCost)
	answer := make(chan error, 1)
	var end promptResult
	// The request does not end with the turn's context: cancel needs its answer. It ends with the
	// program.
	go func() {
		prompt := object{"sessionId": p.session.ID, "prompt": []object{{"type": "text", "text": text}}}
		answer <- p.conn.call(context.Background(), "session/prompt", prompt, &end)
	}()
	late := time.NewTimer(p.host.quiet)
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case err = <-answer:
			waiting = false
		case <-ctx.Done():
			// A turn that was cut for good may have left something running, so its program is ended
			// even if it would obey.
			if p.ready = swarm.KindOf(context.Cause(ctx)) == swarm.CutToSpeak; p.ready {
				p.sessionCost = t.spent()
				p.settled = make(chan struct{})
				go p.cancel(answer)
			}
			return ctx.Err()
		case <-late.C:
			left := t.patienceLeft(time.Now(), p.host.quiet)
			if left <= 0 {
				return silentError(p.host.quiet)
			}
			late.Reset(left)
		}
	}
	p.sessionCost = t.finish(end)
	if err != nil {
		return err
	}
	if err := p.failureInWords(t); err != nil {
		return err
	}
	p.ready = true
	return t.checkEnd(end)
}

// cancel asks the agent to end its turn. A program that does not do so in time is ended.
func (p *agentProgram) cancel(answer <-chan error) {
	defer close(p.settled)
	ctx, stop := context.WithTimeout(context.Background(), p.host.settle)
	defer stop()
	if p.conn.notify(ctx, "session/cancel", object{"sessionId": p.session.ID}) == nil {
		select {
		case err := <-answer:
			if err == nil {
				return
			}
		case <-ctx.Done():
		}
	}
	p.end()
}

// awaitSettled waits until the program has ended the turn before, and says whether it can do
// another.
func (p *agentProgram) awaitSettled(ctx context.Context) bool {
	select {
	case <-p.settled:
		return !p.conn.isClosed()
	case <-ctx.Done():
		return false
	}
}

// initialize does the first exchange with a program, once.
func (p *agentProgram) initialize(ctx context.Context) error {
	if p.initialized {
		return nil
	}
	err := p.conn.call(ctx, "initialize", object{
		"protocolVersion": 1,
		"clientInfo":      object{"name": "swarm", "title": "swarm", "version": "1"},
		"clientCapabilities": object{
			"fs":       object{"readTextFile": !p.host.preset.readsFiles, "writeTextFile": true},
			"terminal": false,
		},
	}, &p.hello)
	if err != nil {
		return err
	}
	if p.hello.Version != 1 {
		return swarm.Errorf(swarm.Protocol, "it speaks version %d of the Agent Client Protocol", p.hello.Version).
			WithHint("use a program that speaks version 1")
	}
	p.initialized = true
	return nil
}

// openSession continues the turn's session or begins one, and returns the prompt to send: only what
// is new, or all of it.
func (p *agentProgram) openSession(ctx context.Context, t *turn) (text string, err error) {
	if t.r.Session != "" {
		fresh := cmp.Or(t.r.Fresh, t.r.Prompt)
		if t.r.Session == p.session.ID {
			return fresh, nil
		}
		switch err := p.continueSession(ctx, t); {
		case err == nil:
			return fresh, nil
		case ctx.Err() != nil || errors.Is(err, errGone) || needsLogin(err):
			return "", err
		default:
			t.publish(swarm.Delta{
				Kind: swarm.DeltaStderr,
				Text: "the session " + t.r.Session + " is gone (" + err.Error() + "): a new one begins with the whole prompt\n",
			})
		}
	}
	var s sessionInfo
	if err := p.conn.call(ctx, "session/new", object{"cwd": t.r.Dir, "mcpServers": p.mcpServers(t.r)}, &s); err != nil {
		return "", err
	}
	if s.ID == "" {
		return "", swarm.Errorf(swarm.Protocol, "it began a session without an id")
	}
	p.session, p.sessionCost = s, 0
	return t.r.Prompt, nil
}

// continueSession continues a session of an earlier process. Resuming is preferred to loading,
// which repeats the whole session as updates.
func (p *agentProgram) continueSession(ctx context.Context, t *turn) error {
	method := "session/load"
	switch can := p.hello.Can; {
	case len(can.Session.Resume) > 0 && string(can.Session.Resume) != "null":
		method = "session/resume"
	case !can.Load:
		return errors.New("the program cannot continue one")
	}
	var s sessionInfo
	if err := p.conn.call(ctx, method, object{"sessionId": t.r.Session, "cwd": t.r.Dir, "mcpServers": p.mcpServers(t.r)}, &s); err != nil {
		return err
	}
	s.ID = t.r.Session
	p.session, p.sessionCost = s, -1 // what it has cost so far is unknown
	return nil
}

// mcpServers describes our own server as the agent can reach it: over HTTP, or as a program that it
// starts.
func (p *agentProgram) mcpServers(r provider.Request) []object {
	switch {
	case r.Door.URL == "":
		return []object{}
	case p.leaksArguments():
		return []object{{"name": ourServer, "command": p.host.self, "args": []string{"mcp"}, "env": []object{}}}
	case p.hello.Can.MCP.HTTP:
		return []object{{"type": "http", "name": ourServer, "url": r.Door.URL + "/mcp",
			"headers": []object{{"name": "Authorization", "value": "Bearer " + r.Door.Token}}}}
	}
	return []object{{"name": ourServer, "command": p.host.self, "args": []string{"mcp"},
		"env": []object{
			{"name": "SWARM_URL", "value": r.Door.URL},
			{"name": "SWARM_AGENT_TOKEN", "value": r.Door.Token},
		}}}
}

// leaksArguments says whether the agent passes its servers on as arguments of another program,
// where every user of the machine can read them. Then the token must not be there. Our server finds
// it in its environment instead, which the agent passes on.
func (p *agentProgram) leaksArguments() bool {
	return strings.Contains(strings.ToLower(p.hello.Info.Name), "claude")
}
