// Package desk does turns through desks: the prompt becomes the instructions of a desk, the worker
// reads and writes files there, and what it delivers is the turn's result. The worker is the agent's
// own provider, or an external worker.
package desk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/process"
	"swarm/internal/prompt"
	"swarm/internal/provider"
)

// Variable tells a program where its desk is.
const Variable = "SWARM_DESK"

// Open makes the provider of agents that nobody starts. Their turns are those of a [Turn] without a
// worker.
func Open(spec swarm.ProviderSpec, _ provider.Options) (provider.Provider, error) {
	return nobody{spec.Name}, nil
}

type nobody struct{ name string }

// Check has nothing to look at: who works at a desk is not known before.
func (nobody) Check(context.Context) provider.Health { return provider.Health{Found: true} }

func (n nobody) Turn(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
	return provider.Reply{Free: true}, swarm.Errorf(swarm.BadInput, "the provider %q does turns at desks only", n.name).
		WithHint("choose another provider for this")
}

// A Need is a task that another one depends on.
type Need struct {
	swarm.Dependency
	Dir   string // its desk; "" = it has none
	Again bool   // this run has done it, and not one that it retries
	// Delivered are the files that were collected there; nil = they are not known, and those that are there
	// now are passed on.
	Delivered []desk.Delivery
}

// An Opening is a desk that is ready for its worker.
type Opening struct {
	Manifest desk.Manifest
	Archived string    // the new path of the desk that was there before; "" = there was none
	Until    time.Time // when the attempt ends by itself; zero = it does not
}

// A Turn is a turn that goes through a desk. It is the provider of that one turn.
type Turn struct {
	Watcher *desk.Watcher
	Worker  provider.Provider // nil = an external worker
	Dir     string            // the folder of the desk
	Title   string            // of the task
	Spans   []swarm.Span      // of the prompt: which of its bytes came from where
	Files   []string          // for the inbox of a new desk
	Needs   []Need            // tasks that this one depends on
	// Messages is the folder by whose files the agent writes to others; "" = it has none.
	Messages string
	// Corrected is a desk of the run that this one retries, whose inbox a person has corrected; "" = none.
	Corrected string
	Rewritten bool // the person has also rewritten its instructions
	// Late is a desk of the run that this one retries. An external worker finished there after the
	// attempt had ended; "" = there is no such desk.
	Late string
	// Asked says that a person has asked for this attempt: the inbox counts as they left it.
	Asked bool
	// Archive is the name under which the desk of an earlier iteration is archived.
	Archive string
	// Failures say why the earlier attempts of this iteration failed.
	Failures []prompt.Failure
	// Before is the manifest of the last of them, and Opened that of an earlier start of this attempt;
	// nil = there is none.
	Before, Opened *desk.Manifest
	// Replaced is where the desk is now that had the place before the first attempt of this iteration; "" =
	// there was none, or the log does not have it yet.
	Replaced string
	// Judged says that the work of the attempt of Before was collected without a violation. A later check
	// failed that attempt, such as what its task expects, so the same work would fail again.
	Judged bool

	// Open records that the desk is ready, before the worker is started. It returns when that is on disk.
	Open func(Opening) error
	// Notice tells people something unexpected about the desk.
	Notice func(reason, hint string)
	// Tell is called with each change of the status.
	Tell func(desk.Status)
	// Take stores a file of the outbox, as in [desk.CollectOptions].
	Take func(desk.File, []byte) error

	// Collected is what the worker has delivered; nil = the turn did not come so far.
	Collected *desk.Collection

	archived string // the new path of the desk that was there before
	finished bool   // the worker of an earlier start has completed the attempt
}

// Turn does the turn.
func (t *Turn) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	reply := provider.Reply{Free: true}
	d, manifest, unlock, err := t.prepare(ctx, r)
	if err != nil {
		return reply, err
	}
	defer d.Close()
	defer unlock()
	var mu sync.Mutex // the worker's stream and its status come from two goroutines
	say := func(delta swarm.Delta) {
		mu.Lock()
		defer mu.Unlock()
		if live != nil {
			live(delta)
		}
	}
	a := desk.Attempt{Watcher: t.Watcher, Manifest: manifest, Take: t.Take, Resumed: true}
	a.Tell = func(now desk.Reading) { t.Tell(now.Status) }
	a.Notice = t.Notice
	var failed error // the worker's own failure
	if t.Worker != nil && !t.finished {
		a.Work = func(ctx context.Context) string {
			reply, failed = t.Worker.Turn(ctx, order(r, d, manifest), say)
			if failed != nil {
				return failed.Error()
			}
			return fmt.Sprintf("exit code %d", reply.Exit)
		}
	}
	t.Collected, err = d.Do(ctx, a)
	reply.Session = "" // another turn has another folder
	reply.Output, reply.Bytes = nil, 0
	if err != nil {
		return reply, err
	}
	why := t.Collected.Failure()
	text := t.Collected.Summary
	if why != nil {
		text = cmp.Or(text, t.Collected.ErrorReport, why.String())
	}
	tail := process.Tail{}
	_, _ = tail.Write([]byte(text))
	reply.Output, reply.Bytes = tail.Bytes(), tail.Len()
	if why == nil {
		return reply, nil
	}
	if why.Type == desk.AgentExited && failed != nil {
		return reply, failed
	}
	return reply, t.explain(r, *why)
}

// explain makes an error of a failure. Its kind is the one by which loops decide about another attempt.
func (t *Turn) explain(r provider.Request, why desk.Failure) error {
	e := swarm.Errorf(swarm.BadInput, "%s", why.String())
	switch {
	case why.Type == desk.Violated: // its next attempt is told why
		e.Kind = swarm.Unexpected
	case why.Type == desk.AgentExited:
		e.Kind = swarm.NoResult
	case why.Recoverable:
		e.Kind = swarm.Other
	default:
		return e.WithHint("correct its inputs: swarm desk fix %s; then swarm retry %s --from %s", t.Dir, r.Run, r.Task)
	}
	return e.WithHint("for another attempt: swarm retry %s --from %s", r.Run, r.Task)
}

// order is the request to the worker. The desk is its only folder, and says everything else. Inputs
// that are too large to copy are read where they are.
func order(r provider.Request, d *desk.Desk, m desk.Manifest) provider.Request {
	r.Prompt, r.Session, r.Phase = orders, "", ""
	r.Fresh, r.Dir, r.Root, r.Desk = r.Prompt, d.Path(), d.Path(), true
	r.Read = nil
	for _, f := range m.References {
		r.Read = append(r.Read, f.Path)
	}
	r.Env = maps.Clone(r.Env)
	if r.Env == nil {
		r.Env = map[string]string{}
	}
	r.Env[Variable] = d.Path()
	return r
}

const orders = `Your folder is a desk: you get your task and deliver your work as files in it.
Read SKILL.md and inbox/instructions.md, and do what they say.
Put what you make into outbox/, with a summary in outbox/summary.md.
Keep the state in status.json: "running" when you begin, "completed" or "failed" in the end.
`
