// Package turn runs one turn of an agent. A [Runner] gathers the turn's inputs, makes the prompt,
// appends the start to the log, calls the provider, checks the result against the task's `expect`,
// and appends the end.
//
// The package is the same under every engine. While the provider works, a turn obeys control
// records in the run's log, not calls from the engine. So any process that can append to the log
// can cancel or interrupt a turn.
//
// A crash leaves a start without an end. The next owner runs the turn again under the same id, with
// the prompt of the first start.
package turn

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"swarm"
	"swarm/internal/action"
	"swarm/internal/agentapi"
	"swarm/internal/desk"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	deskwork "swarm/internal/provider/desk"
	"swarm/internal/providerkind"
)

// A Runner runs the turns of one run. Its methods may be called from many goroutines.
type Runner struct {
	Run         swarm.RunID
	Log         swarm.Log
	Dir         string                                                         // the folder in which the run was started
	Options     provider.Options                                               // of programs that are no agents: `expect`
	Provider    func(swarm.ProviderSpec) (provider.Provider, error)            // opens a provider; called once for each
	Redact      func([]byte) []byte                                            // removes secrets from text before it is stored; nil = there are no secrets
	Cut         func(string) string                                            // the same for text that was shortened before, where … marks the cut; nil = there are no secrets
	Watch       Watcher                                                        // nil = no watcher
	CarriesOver bool                                                           // the run retries another run and keeps some of its turns
	Edited      *Edit                                                          // the prompt that a person has written for one turn; nil = none
	AgentAPI    *agentapi.Service                                              // the tools by which agents act on the run; nil = none
	Toolbox     func(a *swarm.Agent, turn swarm.TurnID) (Toolbox, error)       // other tools for models; nil = none
	Endpoint    func(agent string) (swarm.ToolEndpoint, error)                 // where a program reaches the tools of AgentAPI; nil = nowhere
	Trace       func(turn swarm.TurnID) string                                 // the trace parent for a turn's programs; nil = no tracing
	Obeyed      func(turn swarm.TurnID, agent string) (ended func())           // notes changes of files that swarm obeys; nil = not at all
	Swarm       func(*swarm.Plan, *swarm.Task, *swarm.Agent) provider.Provider // does a task by a swarm; nil = no task is done so
	Workspace   string                                                         // the folder of a swarm's agents that name no root; "" = none
	Apart       string                                                         // of a council: the folder in which each agent has one of its own; "" = they share Workspace
	Parent      func(swarm.Usage) error                                        // reserves the total of this run in the budget of its parent run; nil = there is no parent
	ParentRoom  func(context.Context, swarm.Usage) error                       // waits until that budget has room for the total, and reserves it; nil = there is no parent
	Snapshots   Snapshotter                                                    // finds what turns change; nil = changes are not recorded
	Desks       string                                                         // the folder of the desks; "" = there are none

	// mu guards all fields below except control, which has a mutex of its own, and parent.
	mu         sync.Mutex
	plans      map[string]*loadedPlan
	providers  map[string]provider.Provider
	templates  map[swarm.Hash]prompt.Template
	fold       logFold
	handed     map[string]handover        // by agent of a swarm
	mates      map[string]prompt.Teammate // by agent of a swarm: as it stood in the last prompt of another
	listed     listedTools                // of a swarm's agent, the last
	toolSizes  map[string]int64           // by agent: the bytes that describe its tools in each request of its last turn
	reported   map[string]swarm.TurnID    // by agent of a swarm that is not done: the last turn that its report in the workspace has
	writers    map[bool][]*fileWriter     // turns that may be changing files now, by whether their changes are recorded
	unseen     map[*work]bool             // turns and actions of a swarm that may be writing any file now
	blind      bool                       // the notice that changes are not recorded was given
	overlaps   map[[2]string]bool         // pairs of agents for which the notice of a possible overlap was given
	desks      *desk.Watcher              // made by the first turn at a desk
	messages   []*desk.Messages           // the last one counts; workers may have broken those before
	leaveDesks func()                     // frees the folder of the desks; nil = it is the run's own
	control    controlWatch
	crowd      map[swarm.TurnID]bool // turns whose swarms wait for room in the budget
	parent     sync.Mutex            // held while Parent is called; before mu
}

// A Watcher sees turns while they run, and their outputs once they are in the log. Its methods must
// not block for long: the provider's stream waits for them.
type Watcher interface {
	Delta(c flow.Call, start int, d swarm.Delta)
	Silent(c flow.Call) // the provider's stream has ended
	Output(c flow.Call, text []byte)
}

// work is the state of one turn. The goroutine in [Runner.Do] owns it, and the provider while that
// goroutine waits for it. Two fields are shared: asked has a mutex of its own, and writer is also
// read by the turns that run at the same time, under the runner's mutex.
type work struct {
	c          flow.Call
	turn       swarm.TurnID // the call's id
	plan       *loadedPlan
	task       *swarm.Task
	agent      *swarm.Agent
	spec       swarm.ProviderSpec
	model      string
	start      int                  // the number of this start; more than 1 after a crash
	began      int64                // the number of that start's event
	made       prompt.Prompt        // the full prompt
	need       swarm.Usage          // the part of the budget that the start reserves
	waited     time.Duration        // how long it waited for the budget of the parent run
	inputs     swarm.Inputs         // the mail in the prompt; at the end also the mail read by tools
	packs      []string             // refs of the context packs that came with that mail
	topics     int64                // the newest topic entry in the prompt
	session    string               // the session that the turn continues, or ""
	sent       string               // what the provider is sent: the prompt, or the part that is new to the session
	stable     int                  // how many bytes at its beginning are the same in later turns
	later      bool                 // the agent probably has later turns in the session
	history    []swarm.ChatMessage  // what it is sent before that, if the log keeps the session
	recalled   *swarm.History       // how much of the session that is
	done       bool                 // the agent has called report_done
	report     string               // the text of that report
	handle     *agentapi.TurnHandle // how the agent acts on the run while the provider works; nil = it cannot
	repetition callRepetition       // repeated tool calls
	action     *swarm.Action        // of a swarm's iteration: what the agent does
	asks       action.Action        // the same, as it is taken
	box        Toolbox              // of a swarm's iteration: its tools; nil = they are not open
	judged     []string             // of a review: the agents whose answers the agent judges
	ownTools   bool                 // the agent has used a tool that is not ours
	before     []byte               // of a swarm's iteration: the agent's report before it; nil = there was none
	shared     bool                 // something of another agent that may write any file ran at the same time; guarded by Runner.mu

	desk      *deskwork.Turn   // of a turn at a desk
	delivered []swarm.DeskFile // at that desk
	byFiles   bool             // its agent also gets and writes mail by files

	writer    *fileWriter            // nil = changes are not recorded
	snapshots []swarm.FolderSnapshot // the files before the first start
	violation phaseViolation         // changes that the phase forbids
	unseen    error                  // why the changes are not known

	begun   *swarm.TurnStart // the start whose prompt [Runner.Prompt] makes again; nil = a new turn
	known   int64            // the newest event that the prompt's team rules and answers come from
	outputs int64            // the newest event that its outputs and session knowledge come from; 0 = it has none
	asked   unanswered
}

// kind describes the abilities of the agent's provider.
func (w *work) kind() *providerkind.Kind { return providerkind.Of(w.spec.Kind) }

// Do runs the turn that a loop calls for. If the log has the turn's end already, Do returns that
// end. An error means that this process must stop; it says nothing about the turn.
func (r *Runner) Do(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	kept, err := r.carriedOver(c)
	switch {
	case err != nil:
		return flow.Result{}, err
	case kept != nil && kept.Want == string(c.Want): // otherwise the loop of a swarm has come another way
		return r.carryOver(ctx, loop, c, *kept)
	}
	w, err := r.gather(c)
	if err != nil {
		return flow.Result{}, err
	}
	if c.Want == plan.WantResults {
		return r.listResults(ctx, loop, w)
	}
	begun := false
	if c.Again {
		begun, err = r.resumeStart(w)
	}
	if err == nil && !begun {
		err = r.makePrompt(w)
	}
	if err == nil {
		err = r.prepare(w)
	}
	if err == nil && begun { // a cancelled turn is not started again only to be cut
		err = r.cancelled(c)
	}
	if err == nil {
		err = r.reserve(ctx, w)
	}
	if err != nil {
		return r.refuse(ctx, loop, w, err)
	}
	defer r.registerWriter(w)()
	r.record(ctx, w)
	end, err := r.begin(ctx, w)
	if err != nil {
		return r.refuse(ctx, loop, w, err)
	}
	if end != nil {
		return *end, nil
	}
	if r.Edited.isOf(w.turn) && !r.isEdited(w) && w.turn == swarm.FirstAttempt(w.turn) && w.start == 1 {
		r.notice(w, "the edited prompt is not used: in this run, the turn "+string(w.turn)+" is for something else", "")
	}
	if w.worksInTurn() {
		defer r.beginUnseen(w)()
	}
	if w.start == 1 && w.worksInTurn() { // what a start that a crash cut has written is the agent's
		w.before = r.reportText(w)
	}
	ended := r.watchObeyed(w)
	reply, verdicts, err := r.perform(ctx, w)
	ended()
	if stop := stopCause(ctx, err); stop != nil {
		return flow.Result{}, stop
	}
	changed := r.compare(ctx, w)
	return r.conclude(ctx, loop, w, reply, verdicts, changed, r.checkPhase(w, err))
}

// watchObeyed watches the files that swarm obeys while a turn runs that may change files.
func (r *Runner) watchObeyed(w *work) (ended func()) {
	if r.Obeyed == nil || w.asksPlainly() || w.changesFiles() == writesNothing {
		return func() {}
	}
	return r.Obeyed(w.turn, w.c.Agent)
}

// stopCause returns why this process must stop, if err has such a cause. Then err says nothing
// about the turn: the turn gets no end in the log, and the next owner runs it again under its id. A
// control record that cuts the turn for good ends the turn's context, not ctx.
func stopCause(ctx context.Context, err error) error {
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
	if p.Team != nil { // a team's task is in its mail
		w.task = &swarm.Task{Name: c.Task, Agent: c.Agent}
	}
	if w.task == nil || w.agent == nil {
		return nil, swarm.Errorf(swarm.Storage, "the plan has no task %q of agent %q", c.Task, c.Agent)
	}
	w.spec = p.providers[cmp.Or(c.Provider, w.agent.Provider)]
	r.fold.account.run.budget = p.Budget
	w.model = w.modelName()
	return w, nil
}

// substitute returns the provider that does the turn in the place of its agent's; "" = none does.
func (w *work) substitute() string {
	if w.spec.Name == w.agent.Provider {
		return ""
	}
	return w.spec.Name
}

// modelName returns the model of the turn. Another provider than its agent's knows no model by that
// name, but its tiers.
func (w *work) modelName() string {
	if w.substitute() == "" {
		return w.spec.ModelFor(w.task, w.agent)
	}
	task, agent := *w.task, *w.agent
	task.Model, agent.Model = "", ""
	return cmp.Or(w.spec.ModelFor(&task, &agent), w.spec.Model)
}

// perform calls the provider and checks the result.
func (r *Runner) perform(ctx context.Context, w *work) (provider.Reply, []swarm.Verdict, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	if most := cmp.Or(w.c.Timeout, w.task.Timeout); most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, most, w.timeoutError(most))
		defer stop()
	}
	defer r.watchControl(w.c, cut)()
	if cause := context.Cause(ctx); cause != nil {
		return provider.Reply{}, nil, cause
	}
	if err := r.unverifiable(w); err != nil {
		return provider.Reply{}, nil, err
	}
	if err := r.overtaken(w); err != nil {
		return provider.Reply{Free: true}, nil, err
	}
	p, err := r.providerOf(w)
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
	if w.c.Want == plan.WantAction && errors.Is(err, provider.ErrSaidNothing) {
		err = nil // it has used its turn, and counts as an action without a tool
	}
	if err == nil {
		reply = w.finishAnswer(reply)
		err = r.checkAnswer(w, reply)
	}
	if err == nil && w.task.Expect != nil {
		verdicts := r.examine(ctx, w, reply.Output)
		if cause := context.Cause(ctx); cause != nil {
			return reply, nil, cause
		}
		return reply, verdicts, judge(verdicts)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = w.asked.explainCut(cause, reply.Trouble)
	}
	return reply, nil, err
}

func (r *Runner) workdir(w *work) string {
	if w.worker() != "" {
		return r.deskPath(w)
	}
	if w.task.Workdir != "" {
		return w.task.Workdir
	}
	return r.Dir
}

// Close closes the providers that keep programs or connections between turns.
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
	if r.desks != nil {
		r.desks.Close()
	}
	for _, folder := range r.messages {
		all = errors.Join(all, folder.Close())
	}
	if r.leaveDesks != nil {
		r.leaveDesks()
	}
	return all
}
