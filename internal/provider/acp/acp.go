// Package acp reaches agents that speak the Agent Client Protocol, which is JSON-RPC over a
// program's standard input and output.
//
// An agent's program stays between its turns, and so does its session: a later turn sends only what
// is new. While the agent works it may ask for a permission or a file, and this package answers.
//
// How a turn goes:
//
//   - [host.Turn] takes the agent's idle program, or starts one.
//   - runTurn does what is still to do of initialize, session/new and session/prompt.
//   - A program that ended its turn by itself is kept for the next one, and so is one whose turn was
//     cut to say something to its agent: it gets some time to stop, and the next turn waits for that.
//     Any other is ended.
package acp

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/sandbox"
)

// A host is a provider. It has the programs of its agents.
type host struct {
	name   string
	kind   *providerkind.Kind
	preset preset // empty for the kind acp
	argv   []string
	mode   string // of its sessions; "" = what is usual
	dir    string
	env    *process.Environment
	grace  time.Duration
	quiet  time.Duration    // how long the model of an agent may say nothing
	settle time.Duration    // how long a program may take to obey a cancel
	hidden []string         // folders that are not there for an agent
	guard  permission.Guard // files that an agent writes only if its tools name them
	self   string           // our own program, which agents without HTTP start as their MCP server
	box    *sandbox.Box
	args   []string // after the user's own, beside those of the preset
	known  provider.Versions

	provider.Idle[*agentProgram]
}

// Open makes the provider that spec describes. It starts no process.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	kind := providerkind.Of(spec.Kind)
	spec = complete(spec, kind)
	if len(spec.Command) == 0 || spec.Command[0] == "" {
		return nil, swarm.Errorf(swarm.BadInput, "the provider %q has no command", spec.Name).
			WithHint("write the program that speaks the Agent Client Protocol, and its arguments: command: [gemini, --acp]")
	}
	if err := provider.CheckCommand(spec); err != nil {
		return nil, err
	}
	args, shown := provider.ShowAllTools(spec.Command...)
	added := provider.Unset(opt.Environ, shown)
	maps.Copy(added, spec.Env)
	env, err := process.NewEnvironment(opt.Environ, added)
	if err != nil {
		return nil, err
	}
	hidden := slices.Clone(opt.Hidden)
	for i, folder := range hidden {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			hidden[i] = real
		}
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return &host{
		name:   spec.Name,
		kind:   kind,
		preset: presets[spec.Kind],
		argv:   spec.Command,
		args:   args,
		known:  opt.Versions,
		mode:   spec.Mode,
		dir:    opt.Dir,
		env:    env,
		grace:  opt.Grace,
		quiet:  provider.Silence,
		settle: provider.SettleTime,
		box:    provider.NewSandbox(spec, opt),
		hidden: hidden,
		guard:  opt.Guard,
		self:   self,
		Idle:   provider.Idle[*agentProgram]{End: (*agentProgram).end},
	}, nil
}

// Turn does one turn of an agent, with the program of the turn before if it is still there.
func (h *host) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if ctx.Err() != nil {
		return provider.Reply{}, swarm.CutError(ctx)
	}
	if r.Dir == "" {
		r.Dir = h.dir
	}
	if r.Dir == "" {
		r.Dir, _ = os.Getwd()
	}
	if h.preset.editsUnasked && r.Docs() != "" {
		r.Tools = append(slices.Clone(r.Tools), "edit")
	}
	t := newTurn(ctx, r, live)
	t.hidden, t.guard = h.hidden, h.guard
	defer t.close()
	p, err := h.acquireProgram(r, t)
	if err != nil {
		return provider.Reply{}, err
	}
	err = p.runTurn(ctx, t)
	if ready := p.detach(); ready {
		h.Keep(r, p)
	} else {
		p.end()
	}
	reply := t.reply(p)
	switch {
	case ctx.Err() != nil && err != nil:
		return reply, swarm.CutError(ctx)
	case err != nil:
		return reply, p.explain(err, reply.Stderr)
	}
	return reply, nil
}

// arguments makes the command line of the program.
func (h *host) arguments(r provider.Request) []string {
	args := slices.Concat(h.argv, h.args)
	if h.preset.args != nil {
		args = append(args, h.preset.args(r.Model, r.Phase)...)
	}
	return args
}

// acquireProgram takes the program that waits for the agent, or starts one. The program leaves the
// map of idle ones, so no other turn can take it too.
func (h *host) acquireProgram(r provider.Request, t *turn) (*agentProgram, error) {
	env, err := h.env.Of(r.Mark(), r.Env, r.Dir)
	if err != nil {
		return nil, err
	}
	if h.Closed() {
		return nil, swarm.Errorf(swarm.Stopped, "the provider %q is closed", h.name)
	}
	key := h.launchKey(r)
	p, ok := h.Take(r)
	if ok {
		if p.launchKey == key && p.awaitSettled(t.ctx) {
			p.attach(t)
			return p, nil
		}
		p.end()
	}
	if t.isCut() {
		return nil, swarm.CutError(t.ctx)
	}
	path, missing := h.programSpec().Find(r.Dir)
	if missing != nil {
		return nil, missing
	}
	p = newAgentProgram(h, key, env)
	p.attach(t)
	job := process.Job{
		Path:  path,
		Argv:  h.arguments(r),
		Dir:   r.Dir,
		Env:   env,
		Talk:  true,
		Grace: h.grace,
		Run:   r.Run,
		Turn:  string(r.Turn),
	}
	if err := p.start(job, r); err != nil {
		return nil, h.programSpec().StartError(r.Dir, err)
	}
	return p, nil
}

// programSpec describes the program for error messages.
func (h *host) programSpec() process.Program {
	p := process.Program{Name: h.argv[0], Provider: h.name}
	if h.kind.Program.Name != "" {
		p.Install = h.kind.Program.Install()
	}
	return p
}
