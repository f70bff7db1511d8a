package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/provider"
	"swarm/internal/registry"
	"swarm/internal/tool"
)

// preflight checks before a run starts whether the agents of a plan can be reached and can work as
// the plan asks. known are the versions of programs that were started before. waiting reports the
// checks that take long.
func preflight(b *compose.Bundle, dir string, known provider.Versions, waiting ProgressReport) error {
	for _, a := range b.Plan.AllAgents() {
		if a.Root == "" {
			continue
		}
		name := a.Name
		if a.Base != "" {
			name = a.Base
		}
		if err := tool.CheckRoot(a.Root, name); err != nil {
			return blamed(b.Places.Roots[name], err)
		}
	}
	if folder := workspaceOf(&b.Plan); folder != "" {
		if err := tool.CheckRoot(folder, swarm.Supervisor); err != nil {
			return blamed(b.Places.Workspace, err)
		}
	}
	for _, s := range b.Plan.Servers {
		if err := tool.Ready(s, tool.ServerOptions{Dir: dir}); err != nil {
			return blamed(b.Places.Servers[s.Name], err)
		}
	}
	return checkProviders(b, dir, known, waiting)
}

// workspaceOf returns the folder that a file names for the agents of swarms; "" = none.
func workspaceOf(p *swarm.Plan) string {
	if p.Swarm != nil {
		return p.Swarm.Workspace
	}
	for i := range p.Tasks {
		if s := p.Tasks[i].Swarm; s != nil {
			return s.Workspace
		}
	}
	return ""
}

func blamed(at compose.Place, err error) error {
	if e, ok := errors.AsType[*swarm.Error](err); ok {
		_ = at.Blame(e) // adds the position to the same error
	}
	return err
}

// checkProviders checks all providers in parallel, because some are programs that take a second to
// answer.
func checkProviders(b *compose.Bundle, dir string, known provider.Versions, waiting ProgressReport) error {
	specs := b.Plan.Providers
	found := make([]error, len(specs))
	var looking sync.WaitGroup
	open := newPendingChecks(specs)
	for i, spec := range specs {
		looking.Go(func() {
			found[i] = checkProvider(b, spec, dir, known)
			open.done(spec.Name)
		})
	}
	if waiting.Say != nil {
		t := time.AfterFunc(waiting.After, func() { waiting.Say(open.names()) })
		defer t.Stop()
	}
	looking.Wait()
	for _, err := range found {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkProvider(b *compose.Bundle, spec swarm.ProviderSpec, dir string, known provider.Versions) error {
	at := b.Places.Providers[spec.Name]
	opt := ProviderOptions(spec, b.Bodies, dir)
	opt.Versions = known
	if err := provider.NewSandbox(spec, opt).Check(); err != nil {
		return blamed(at, err)
	}
	reached, err := registry.Open(spec, opt)
	if err != nil {
		return blamed(at, err)
	}
	c, ok := reached.(provider.Checker)
	if !ok {
		return nil
	}
	health := c.Check(context.Background())
	if health.Problem == "" {
		return nil
	}
	e := &swarm.Error{Kind: swarm.NotFound, Msg: health.Problem, Hint: health.Hint}
	if health.Signed == "no" {
		e.Kind = swarm.NotSignedIn
	}
	if who := fmt.Sprintf("the provider %q", spec.Name); !strings.Contains(e.Msg, who) {
		e.Msg = who + whoWorksWith(&b.Plan, spec.Name) + ": " + e.Msg
	}
	return at.Blame(e)
}

// whoWorksWith names the agents that use a provider.
func whoWorksWith(p *swarm.Plan, provider string) string {
	const most = 3
	var names []string
	for _, a := range p.Agents {
		if a.Provider == provider {
			names = append(names, "@"+a.Name)
		}
	}
	switch more := len(names) - most; {
	case len(names) == 0:
		return ""
	case more > 0:
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return " of " + strings.Join(names, ", ")
}

// pendingChecks are the providers that have not answered yet, in the order of the plan.
type pendingChecks struct {
	mu    sync.Mutex
	order []swarm.ProviderSpec
	gone  map[string]bool
}

func newPendingChecks(specs []swarm.ProviderSpec) *pendingChecks {
	return &pendingChecks{order: specs, gone: map[string]bool{}}
}

func (o *pendingChecks) done(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[name] = true
}

func (o *pendingChecks) names() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, spec := range o.order {
		if !o.gone[spec.Name] {
			names = append(names, spec.Name)
		}
	}
	return names
}

// A ProgressReport reports the providers that a run still waits for before it begins.
type ProgressReport struct {
	After time.Duration
	Say   func(names []string) // nil = no report
}

// ProviderOptions returns the options of a provider before the run has a log.
func ProviderOptions(spec swarm.ProviderSpec, bodies [][]byte, dir string) provider.Options {
	opt := provider.Options{Dir: dir}
	for _, b := range bodies {
		if spec.Script != "" && swarm.HashOf(b) == spec.Script {
			opt.Script = b
		}
	}
	return opt
}
