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

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A guest is a program that runs for one agent, and the session that it is in.
type guest struct {
	host  *host
	like  string
	wire  *wire
	proc  *process.Process
	leave context.CancelFunc
	ended chan struct{}      // closed when nothing of it is left
	how   syscall.WaitStatus // then

	hello   greeting
	greeted bool
	session conversation
	hide    *secret.Redactor // the secrets in its environment
	spent   float64          // US dollars that the session has cost, by what it has told
	ready   bool             // it has ended its turn by itself, and can do another

	mu   sync.Mutex
	turn *turn // the one that it works on; nil = none
}

// likeness is what a program was started with that cannot change while it runs.
func (h *host) likeness(r provider.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q", h.arguments(r), r.Dir, r.Root, r.Door)
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		fmt.Fprintf(&b, " %q=%q", name, r.Env[name])
	}
	return b.String()
}

func newGuest(h *host, like string, env []string) *guest {
	g := &guest{host: h, like: like, hide: secret.New(env, nil), wire: newWire(), ended: make(chan struct{})}
	g.wire.hear, g.wire.serve, g.wire.noise = g.hear, g.serve, g.noise
	return g
}

// start makes the process, and sees to its end.
func (g *guest) start(job process.Job) (err error) {
	job.Stdout = g.wire.take
	job.Stderr = func(piece string) { g.tell(swarm.Delta{Kind: swarm.DeltaStderr, Text: piece}) }
	if g.proc, err = job.Start(); err != nil {
		return err
	}
	life, leave := context.WithCancel(context.Background())
	g.leave = leave
	go g.wire.write(g.proc)
	go func() {
		defer leave()
		g.how, _, _ = g.proc.Wait(life)
		if rest := g.wire.lines.Rest; len(rest) > 0 {
			g.noise(string(rest))
		}
		g.wire.end(errGone)
		close(g.ended)
	}()
	return nil
}

// end ends the program, with all that it has started.
func (g *guest) end() {
	g.leave()
	<-g.ended
}

// begin says which turn it works on.
func (g *guest) begin(t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn, g.ready = t, false
	t.hides(g.hide)
}

// dismiss says that it works on none any more, so that what it says while it dies, for one, belongs to no turn. It is ready for
// another if it has ended this one by itself.
func (g *guest) dismiss() (ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn = nil
	return g.ready && !g.wire.isOver()
}

func (g *guest) at() *turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turn
}

func (g *guest) tell(d swarm.Delta) {
	if t := g.at(); t != nil {
		t.tell(d)
	}
}

func (g *guest) noise(line string) {
	g.tell(swarm.Delta{Kind: swarm.DeltaStderr, Text: line + "\n"})
}

// hear takes what the agent tells.
func (g *guest) hear(method string, params json.RawMessage) {
	var n struct {
		Session string `json:"sessionId"`
		Update  update `json:"update"`
	}
	if method != "session/update" {
		return
	}
	if err := json.Unmarshal(params, &n); err != nil {
		g.noise("an update that nobody can read: " + err.Error())
		return
	}
	if t := g.at(); t != nil {
		t.hear(n.Session, n.Update)
	}
}

// serve answers what the agent asks.
func (g *guest) serve(method string, params json.RawMessage) (any, *complaint) {
	t := g.at()
	switch {
	case t == nil:
		return nil, &complaint{Code: codeFailed, Message: "no turn is under way"}
	case method == "session/request_permission":
		return t.permit(params)
	case method == "fs/read_text_file":
		return t.readFile(params)
	case method == "fs/write_text_file":
		return t.writeFile(params)
	}
	return nil, &complaint{Code: codeNoMethod, Message: "there is no method " + method}
}

// converse does the turn. Of the greeting, the session and the prompt it does what is not done yet.
func (g *guest) converse(ctx context.Context, t *turn) error {
	if err := g.greet(ctx); err != nil {
		return err
	}
	text, err := g.meet(ctx, t)
	if err != nil {
		return err
	}
	if err := g.choose(ctx, t.r.Model); err != nil {
		return err
	}
	t.tell(swarm.Delta{Kind: swarm.DeltaSession, Session: g.session.ID})
	t.listen(g.session.ID, g.spent)
	answer := make(chan error, 1)
	var end ending
	asking, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		prompt := object{"sessionId": g.session.ID, "prompt": []object{{"type": "text", "text": text}}}
		answer <- g.wire.ask(asking, "session/prompt", prompt, &end)
	}()
	select {
	case err = <-answer:
	case <-ctx.Done():
		// One that was cut for good may have left something running, and is ended all the same.
		g.ready = g.cancel(answer) && swarm.KindOf(context.Cause(ctx)) == swarm.CutToSpeak
		return ctx.Err()
	}
	g.spent = t.ended(end)
	if err != nil {
		return err
	}
	g.ready = true
	return t.judge(end)
}

// cancel asks the agent to come to an end, and says whether it did.
func (g *guest) cancel(answer <-chan error) bool {
	ctx, stop := context.WithTimeout(context.Background(), provider.CancelTime)
	defer stop()
	if g.wire.tell(ctx, "session/cancel", object{"sessionId": g.session.ID}) != nil {
		return false
	}
	select {
	case err := <-answer:
		return err == nil
	case <-ctx.Done():
		return false
	}
}

// greet is the first exchange with a program.
func (g *guest) greet(ctx context.Context) error {
	if g.greeted {
		return nil
	}
	err := g.wire.ask(ctx, "initialize", object{
		"protocolVersion":    1,
		"clientInfo":         object{"name": "swarm", "title": "swarm", "version": "1"},
		"clientCapabilities": object{"fs": object{"readTextFile": !g.host.preset.reads, "writeTextFile": true}, "terminal": false},
	}, &g.hello)
	if err != nil {
		return err
	}
	if g.hello.Version != 1 {
		return swarm.Errorf(swarm.Protocol, "it speaks version %d of the Agent Client Protocol", g.hello.Version).WithHint("use a program that speaks version 1")
	}
	g.greeted = true
	return nil
}

// meet finds the session that the turn continues, or begins one, and returns what has to be said there.
func (g *guest) meet(ctx context.Context, t *turn) (text string, err error) {
	if t.r.Session != "" {
		fresh := cmp.Or(t.r.Fresh, t.r.Prompt)
		if t.r.Session == g.session.ID {
			return fresh, nil
		}
		switch err := g.continueSession(ctx, t); {
		case err == nil:
			return fresh, nil
		case ctx.Err() != nil || errors.Is(err, errGone) || needsLogin(err):
			return "", err
		default:
			t.tell(swarm.Delta{Kind: swarm.DeltaStderr, Text: "the session " + t.r.Session + " is gone (" + err.Error() + "): a new one begins with the whole prompt\n"})
		}
	}
	var s conversation
	if err := g.wire.ask(ctx, "session/new", object{"cwd": t.r.Dir, "mcpServers": g.servers(t.r)}, &s); err != nil {
		return "", err
	}
	if s.ID == "" {
		return "", swarm.Errorf(swarm.Protocol, "it began a session without an id")
	}
	g.session, g.spent = s, 0
	return t.r.Prompt, nil
}

// continueSession makes a session of an earlier process this one's. Resuming is better than loading, which tells all of it again.
func (g *guest) continueSession(ctx context.Context, t *turn) error {
	method := "session/load"
	switch can := g.hello.Can; {
	case len(can.Session.Resume) > 0 && string(can.Session.Resume) != "null":
		method = "session/resume"
	case !can.Load:
		return errors.New("the program cannot continue one")
	}
	var s conversation
	if err := g.wire.ask(ctx, method, object{"sessionId": t.r.Session, "cwd": t.r.Dir, "mcpServers": g.servers(t.r)}, &s); err != nil {
		return err
	}
	s.ID = t.r.Session
	g.session, g.spent = s, -1 // what it has cost so far is not known
	return nil
}

// servers is our own server, as the agent can reach it: over HTTP, or by a program that it starts.
func (g *guest) servers(r provider.Request) []object {
	switch {
	case r.Door.URL == "":
		return []object{}
	case g.tellsArguments():
		return []object{{"name": ourServer, "command": g.host.self, "args": []string{"mcp"}, "env": []object{}}}
	case g.hello.Can.MCP.HTTP:
		return []object{{"type": "http", "name": ourServer, "url": r.Door.URL + "/mcp",
			"headers": []object{{"name": "Authorization", "value": "Bearer " + r.Door.Token}}}}
	}
	return []object{{"name": ourServer, "command": g.host.self, "args": []string{"mcp"},
		"env": []object{{"name": "SWARM_URL", "value": r.Door.URL}, {"name": "SWARM_AGENT_TOKEN", "value": r.Door.Token}}}}
}

// tellsArguments says that the agent starts another program with its servers in the arguments, where everybody on this machine can
// read them. The token must not be there then; the program that is our server finds it in its environment, which this one passes on.
func (g *guest) tellsArguments() bool {
	return strings.Contains(strings.ToLower(g.hello.Info.Name), "claude")
}

// choose has the session work with the model that the turn asks for.
func (g *guest) choose(ctx context.Context, model string) error {
	s := &g.session
	if model == "" || g.host.preset.args != nil { // it was started with it
		return nil
	}
	var all []string
	for i, o := range s.Options {
		if o.Category != "model" && o.ID != "model" {
			continue
		}
		if o.Current == model {
			return nil
		}
		if all = o.values(); slices.Contains(all, model) {
			var now conversation
			err := g.wire.ask(ctx, "session/set_config_option", object{"sessionId": s.ID, "configId": o.ID, "value": model}, &now)
			s.Options[i].Current = model
			return err
		}
	}
	if m := s.Models; m != nil {
		if m.Current == model {
			return nil
		}
		for _, one := range m.All {
			all = append(all, one.ID)
		}
		if slices.Contains(all, model) {
			err := g.wire.ask(ctx, "session/set_model", object{"sessionId": s.ID, "modelId": model}, &struct{}{})
			m.Current = model
			return err
		}
	}
	if len(all) == 0 {
		return swarm.Errorf(swarm.BadInput, "the agent of the provider %q does not let its model be chosen", g.host.name).
			WithHint("choose it by the program's own arguments or settings, and take `model` away")
	}
	return swarm.Errorf(swarm.BadInput, "the agent of the provider %q has no model %s", g.host.name, swarm.Quote(model)).WithHint("%s", swarm.DidYouMean(model, all))
}
