// Package acp reaches agents that speak the Agent Client Protocol: programs that are given prompts over their standard input and
// tell over their standard output what they do. The program of an agent stays between its turns, and so does its session: a later
// turn says only what is new. What the agent asks while it works, a permission or a file, is answered here.
package acp

import (
	"context"
	"os"
	"slices"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// A host has the programs of one provider's agents.
type host struct {
	name   string
	kind   *providerkind.Kind
	preset preset // none for the kind acp
	argv   []string
	dir    string
	env    *process.Environment
	grace  time.Duration
	self   string // our own program

	provider.Idle[*guest]
}

// Open makes the provider that spec describes. It starts nothing.
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
	env, err := process.NewEnvironment(opt.Environ, spec.Env)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return &host{name: spec.Name, kind: kind, preset: presets[spec.Kind], argv: spec.Command, dir: opt.Dir, env: env, grace: opt.Grace, self: self, Idle: provider.Idle[*guest]{End: (*guest).end}}, nil
}

// Turn does one turn of an agent, with the program that did the one before if it is still there.
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
	if h.preset.edits && r.Docs() != "" {
		r.Tools = append(slices.Clone(r.Tools), "edit")
	}
	t := newTurn(ctx, r, live)
	defer t.close()
	g, err := h.receive(r, t)
	if err != nil {
		return provider.Reply{}, err
	}
	err = g.converse(ctx, t)
	if ready := g.dismiss(); ready {
		h.Keep(r, g)
	} else {
		g.end()
	}
	reply := t.reply(g)
	switch {
	case ctx.Err() != nil && err != nil:
		return reply, swarm.CutError(ctx)
	case err != nil:
		return reply, g.explain(err, reply.Stderr)
	}
	return reply, nil
}

// arguments are what the program is started with.
func (h *host) arguments(r provider.Request) []string {
	if h.preset.args == nil {
		return h.argv
	}
	return slices.Concat(h.argv, h.preset.args(r.Model, r.Phase))
}

// receive finds the program that waits for the agent, or starts one.
func (h *host) receive(r provider.Request, t *turn) (*guest, error) {
	env, err := h.env.Of(r.Mark(), r.Env, r.Dir)
	if err != nil {
		return nil, err
	}
	if h.Closed() {
		return nil, swarm.Errorf(swarm.Stopped, "the provider %q is closed", h.name)
	}
	like := h.likeness(r)
	g, ok := h.Take(r)
	if ok {
		if g.like == like && !g.wire.isOver() {
			g.begin(t)
			return g, nil
		}
		g.end()
	}
	path, missing := h.program().Find(r.Dir)
	if missing != nil {
		return nil, missing
	}
	g = newGuest(h, like, env)
	g.begin(t)
	job := process.Job{Path: path, Argv: h.arguments(r), Dir: r.Dir, Env: env, Talk: true, Grace: h.grace, Run: r.Run, Turn: r.Turn}
	if err := g.start(job); err != nil {
		return nil, h.program().StartError(r.Dir, err)
	}
	return g, nil
}

// program is what the agent is.
func (h *host) program() process.Program {
	p := process.Program{Name: h.argv[0], Provider: h.name}
	if h.kind.Program.Name != "" {
		p.Install = h.kind.Program.Install()
	}
	return p
}
