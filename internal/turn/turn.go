// Package turn does one turn: it gathers what the turn reads, makes the prompt, writes down that it starts, has the provider
// do it, holds the result against what was expected, and writes down how it ended. It is the same under every engine: what it
// obeys while the provider works are control records in the run's log, not the engine.
package turn

import (
	"context"
	"errors"
	"sync"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/flow"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// A Runner runs the turns of one run.
type Runner struct {
	Run         swarm.RunID
	Log         swarm.Log
	Dir         string                                                   // where the run was started
	Provider    func(swarm.ProviderSpec) (provider.Provider, error)      // is asked once for each
	Redact      func([]byte) []byte                                      // takes secrets out of what is stored; nil = there are none
	Cut         func(string) string                                      // the same for what was cut already, where a … stands; nil = there are none
	Watch       Watcher                                                  // nil = nobody
	CarriesOver bool                                                     // the run tries another one again and keeps some of its turns
	AgentAPI    *agentapi.Service                                        // what agents do to the run; nil = they do not
	Toolbox     func(a *swarm.Agent, turn swarm.TurnID) (Toolbox, error) // other tools that a model may use; nil = none
	Endpoint    func(agent string) (swarm.ToolEndpoint, error)           // where a program finds what AgentAPI does; nil = nowhere
	Trace       func(turn swarm.TurnID) string                           // what a turn's programs are told they belong to; nil = nothing
	Snapshots   Snapshotter                                              // tells what turns change; nil = nobody does

	mu        sync.Mutex
	plans     map[string]*loadedPlan
	providers map[string]provider.Provider
	templates map[swarm.Hash]prompt.Template
	fold      logFold
	writers   map[bool][]*fileWriter // who may be changing files now: those that are watched, and the others
	blind     bool                   // it was said that changes are not recorded
	overlaps  map[[2]string]bool     // agents of whom it was said that they may have written the same files
	control   controlWatch
}

// A Watcher sees turns while they run, and their outputs when they are on disk. Its methods must not block for long.
type Watcher interface {
	Delta(c flow.Call, start int, d swarm.Delta)
	Silent(c flow.Call) // the provider has nothing more to say
	Output(c flow.Call, text []byte)
}

// work is one turn on its way.
type work struct {
	c          flow.Call
	turn       swarm.TurnID // its id, which is the call's
	plan       *loadedPlan
	task       *swarm.Task
	agent      *swarm.Agent
	spec       swarm.ProviderSpec
	model      string
	start      int                  // how often it was begun, this time included; more than 1 after a crash
	made       prompt.Prompt        // the full effective prompt
	need       swarm.Usage          // what its start reserves of the budget
	inputs     swarm.Inputs         // the mail that is in it, and at the end what else was read
	packs      []string             // refs of the context packs that came with that mail
	topics     int64                // the newest topic entry that the prompt was made with
	session    string               // what it continues, or ""
	done       bool                 // its agent has reported that its work is done
	report     string               // and what came of it
	handle     *agentapi.TurnHandle // where its agent acts while the provider works; nil = it cannot
	repetition callRepetition       // what it repeats

	writer    *fileWriter            // nil = what it changes is not recorded
	snapshots []swarm.FolderSnapshot // what the files were when it was first begun
	violation phaseViolation         // what was changed against the phase
	unseen    error                  // why nobody can tell what was changed

	begun   *swarm.TurnStart // whose prompt is made once more; nil = the turn is to begin
	known   int64            // the newest event by which the prompt tells of the team, and of answers to mail
	outputs int64            // the newest event from which it has outputs, and what the session knows; 0 = it has none
	asked   unanswered
}

// kind is what the turn's agent can do.
func (w *work) kind() *providerkind.Kind { return providerkind.Of(w.spec.Kind) }

// Do does the turn that a loop calls for, or finds that it was done before. An error means that this process has to stop, and
// says nothing about the turn.
func (r *Runner) Do(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	if r.CarriesOver {
		if e, ok, err := r.Log.Find(swarm.CarriedOverKey(swarm.TurnID(c.ID))); err != nil || ok {
			if err != nil {
				return flow.Result{}, err
			}
			return r.carryOver(ctx, loop, c, e)
		}
	}
	w, err := r.gather(c)
	if err != nil {
		return flow.Result{}, err
	}
	begun := false
	if c.Again {
		begun, err = r.again(w)
	}
	if err == nil && !begun {
		err = r.makePrompt(w)
	}
	if err == nil && begun { // it is not begun again only to be cut
		err = r.cancelled(c)
	}
	if err == nil {
		err = r.reserve(w)
	}
	if err != nil {
		return r.refuse(ctx, loop, w, err)
	}
	defer r.enter(w)()
	r.record(ctx, w)
	end, err := r.begin(ctx, w)
	if err != nil {
		return r.refuse(ctx, loop, w, err)
	}
	if end != nil {
		return *end, nil
	}
	reply, verdicts, err := r.perform(ctx, w)
	if stop := stops(ctx, err); stop != nil {
		return flow.Result{}, stop
	}
	changed := r.compare(ctx, w)
	return r.conclude(ctx, loop, w, reply, verdicts, changed, r.checkPhase(w, err))
}

// stops is why this process has to stop, if that is what err comes from: then it tells nothing about the turn, which has no end
// and runs again under its id. What cuts a turn for good ends another context than the process's.
func stops(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, swarm.ErrFenced), errors.Is(err, swarm.ErrStale), swarm.KindOf(err) == swarm.Storage:
		return err
	}
	return nil
}

// gather finds the turn's task, agent and provider.
func (r *Runner) gather(c flow.Call) (*work, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.plan(c.Ref)
	if err != nil {
		return nil, err
	}
	w := &work{c: c, turn: swarm.TurnID(c.ID), plan: p, task: p.tasks[c.Task], agent: p.agents[c.Agent]}
	if p.Team != nil { // what it is to do, its mail says
		w.task = &swarm.Task{Name: c.Task, Agent: c.Agent}
	}
	if w.task == nil || w.agent == nil {
		return nil, swarm.Errorf(swarm.Storage, "the plan has no task %q of agent %q", c.Task, c.Agent)
	}
	w.spec = p.providers[w.agent.Provider]
	r.fold.account.budget = p.Budget
	w.model = w.spec.ModelFor(w.task, w.agent)
	return w, nil
}

// perform has the provider do the turn, and looks at what it made.
func (r *Runner) perform(ctx context.Context, w *work) (provider.Reply, []swarm.Verdict, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	if w.task.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.task.Timeout, swarm.Errorf(swarm.TimedOut, "timed out after %s", w.task.Timeout).WithHint(swarm.TimeoutHint))
		defer stop()
	}
	defer r.watchControl(w.c, cut)()
	if cause := context.Cause(ctx); cause != nil {
		return provider.Reply{}, nil, cause
	}
	if err := r.unverifiable(w); err != nil {
		return provider.Reply{}, nil, err
	}
	p, err := r.provider(w.spec)
	if err != nil {
		return provider.Reply{}, nil, err
	}
	req, leave, err := r.request(ctx, w)
	if err != nil {
		return provider.Reply{Free: true}, nil, err
	}
	recorder := eventRecorder{runner: r, work: w, session: w.session}
	reply, err := p.Turn(ctx, req, recorder.observe)
	leave()
	recorder.end()
	if r.Watch != nil {
		r.Watch.Silent(w.c)
	}
	if err == nil && w.task.Expect != nil {
		verdicts := r.examine(ctx, w, reply.Output)
		if cause := context.Cause(ctx); cause != nil {
			return reply, nil, cause
		}
		return reply, verdicts, judge(verdicts)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = w.asked.blame(cause)
	}
	return reply, nil, err
}

func (r *Runner) workdir(w *work) string {
	if w.task.Workdir != "" {
		return w.task.Workdir
	}
	return r.Dir
}

// Close ends what providers keep between turns.
func (r *Runner) Close() error {
	r.control.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all error
	for _, p := range r.providers {
		if c, ok := p.(provider.Closer); ok {
			all = errors.Join(all, c.Close())
		}
	}
	return all
}
