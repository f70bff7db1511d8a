package turn

import (
	"errors"
	"fmt"
	"strconv"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/prompt"
	"swarm/internal/provider"
)

// A loadedPlan is a plan with its parts by name.
type loadedPlan struct {
	*swarm.Plan
	tasks     map[string]*swarm.Task
	agents    map[string]*swarm.Agent
	providers map[string]swarm.ProviderSpec
}

// Plan reads the plan stored under a key.
func (r *Runner) Plan(ref string) (*swarm.Plan, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.plan(ref)
	if err != nil {
		return nil, err
	}
	return p.Plan, nil
}

func (r *Runner) plan(ref string) (*loadedPlan, error) {
	if p := r.plans[ref]; p != nil {
		return p, nil
	}
	body, ok, err := swarm.FindBody[swarm.Plan](r.Log, ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, swarm.Errorf(swarm.Storage, "the log has no plan %s", ref)
	}
	p := &loadedPlan{Plan: &body, tasks: map[string]*swarm.Task{}, agents: map[string]*swarm.Agent{}, providers: map[string]swarm.ProviderSpec{}}
	for i := range p.Tasks {
		p.tasks[p.Tasks[i].Name] = &p.Tasks[i]
	}
	for i := range p.Agents {
		p.agents[p.Agents[i].Name] = &p.Agents[i]
	}
	for _, s := range p.Providers {
		p.providers[s.Name] = s
	}
	if r.plans == nil {
		r.plans = map[string]*loadedPlan{}
	}
	r.plans[ref] = p
	return p, nil
}

func (r *Runner) provider(spec swarm.ProviderSpec) (provider.Provider, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.providers[spec.Name]; p != nil {
		return p, nil
	}
	p, err := r.Provider(spec)
	if err != nil {
		return nil, err
	}
	if r.providers == nil {
		r.providers = map[string]provider.Provider{}
	}
	r.providers[spec.Name] = p
	return p, nil
}

func (r *Runner) template(hash swarm.Hash) (prompt.Template, error) {
	if hash == "" {
		return prompt.Template{}, nil
	}
	if t, ok := r.templates[hash]; ok {
		return t, nil
	}
	b, err := r.Log.Body(hash)
	if err != nil {
		return prompt.Template{}, err
	}
	t, err := prompt.Unmarshal(b)
	if err != nil {
		return prompt.Template{}, swarm.Errorf(swarm.Storage, "a stored prompt cannot be read: %w", err)
	}
	if r.templates == nil {
		r.templates = map[swarm.Hash]prompt.Template{}
	}
	r.templates[hash] = t
	return t, nil
}

// Prompt makes the prompt of a turn once more, with the mail, the findings and the session that its start names. All else is as
// the logs of the runner and of its AgentAPI have it: if they end where [swarm.TurnStart] says, it is the same prompt.
func (r *Runner) Prompt(c flow.Call, start swarm.TurnStart) (string, error) {
	w, err := r.gather(c)
	if err != nil {
		return "", err
	}
	w.begun = &start
	err = r.makePrompt(w)
	return w.made.Text, err
}

// makePrompt makes the full effective prompt of a turn, with the mail that it consumes, and finds the session that it continues.
func (r *Runner) makePrompt(w *work) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := w.plan
	t := prompt.Turn{Task: w.c.Task, Agent: w.c.Agent, Iteration: w.c.Iteration, Of: w.c.Of}
	if p.Team != nil { // its work is its mail
		t.Task, t.Iteration = "", 0
	}
	if w.kind().Person { // a person is told what was written, and nothing about tasks
		t.Task, t.Agent, t.Iteration = "", "", 0
	}
	if err := r.readInto(&t, w); err != nil {
		return err
	}
	broken, followed := error(nil), false
	follow := func() bool { // once: what is referred to twice is the same twice
		if !followed {
			followed, broken = true, r.fold.follow(r.Log)
			w.outputs = r.fold.read
		}
		return broken == nil
	}
	find := func(ends map[string]swarm.CallEnd, key string) (prompt.Output, bool) {
		end, ok := ends[key]
		if !ok {
			return prompt.Output{}, false
		}
		out, err := read(r.Log, end)
		if err != nil {
			broken = err
		}
		return out, err == nil
	}
	if w.kind().Sessions {
		if !follow() {
			return broken
		}
		if w.session = r.fold.sessions[w.c.Agent]; w.begun != nil {
			w.session = w.begun.Session
		}
	}
	items, err := r.unread(w)
	if err != nil {
		return err
	}
	items = mail.UrgentFirst(items)
	w.packs = mail.Packs(items)
	if t.Packs, err = r.packs(w); err != nil {
		return err
	}
	if t.Findings, err = r.published(w); err != nil {
		return err
	}
	if err := r.present(&t, w, items); err != nil { // after what was read before, so that it knows of all that
		return err
	}
	t.Output = func(task string) (prompt.Output, bool) {
		if own := task + "." + strconv.Itoa(w.task.Copy); w.task.Copy > 0 && p.tasks[own] != nil {
			task = own
		}
		if !follow() {
			return prompt.Output{}, false
		}
		return find(r.fold.outputs, task)
	}
	t.Good = func(agent, task string) (prompt.Output, bool) {
		if !follow() {
			return prompt.Output{}, false
		}
		return find(r.fold.goods, goodKey(agent, task))
	}
	made, err := prompt.Build(t)
	if broken != nil {
		return broken
	}
	if err != nil {
		return err
	}
	w.made = r.cleanPrompt(made)
	return nil
}

// readInto reads what stands in a prompt as it is: the agent's role and its task, and what failed and was sent before.
func (r *Runner) readInto(t *prompt.Turn, w *work) (err error) {
	if t.Role, err = r.template(w.agent.Role); err != nil {
		return err
	}
	if t.Text, err = r.template(w.task.Prompt); err != nil {
		return err
	}
	if w.plan.Stdin != "" {
		if t.Stdin, err = r.Log.Body(w.plan.Stdin); err != nil {
			return err
		}
	}
	if t.Failures, err = r.failures(w.c); err != nil {
		return err
	}
	if t.Inputs, err = r.inputs(w); err != nil {
		return err
	}
	t.Sent, err = r.sent(earlier(w.c)...)
	return err
}

// cleanPrompt takes secrets out. When there were any, it is no longer known which byte came from where.
func (r *Runner) cleanPrompt(made prompt.Prompt) prompt.Prompt {
	if r.Redact == nil {
		return made
	}
	if clean := string(r.Redact([]byte(made.Text))); clean != made.Text {
		return prompt.Prompt{Text: clean, Spans: []swarm.Span{{From: "redacted", End: len(clean)}}}
	}
	return made
}

// earlier are the ids of the earlier attempts of this task in this iteration.
func earlier(c flow.Call) (turns []swarm.TurnID) {
	for n := 1; n < c.Attempt; n++ {
		turns = append(turns, swarm.NewTurnID(c.Task, c.Iteration, n))
	}
	return turns
}

// failures says why the earlier attempts of this task in this iteration failed.
func (r *Runner) failures(c flow.Call) ([]prompt.Failure, error) {
	var all []prompt.Failure
	for i, turn := range earlier(c) {
		e, ok, err := r.Log.Find(swarm.EndKey(string(turn)))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		result, err := Answer(e)
		if err != nil {
			return nil, err
		}
		if result.Status != swarm.CallFailed {
			continue
		}
		f := prompt.Failure{Attempt: i + 1, Reason: result.Reason}
		edit, err := r.retryEdit(turn)
		if err != nil {
			return nil, err
		}
		if edit != nil && edit.Note != "" {
			f.Reason += "\nA person says: " + edit.Note
		}
		all = append(all, f)
	}
	return all, nil
}

// retryEdit is what a person has changed about the attempt after a turn that failed, if the task asked for it.
func (r *Runner) retryEdit(turn swarm.TurnID) (*swarm.RetryRequest, error) {
	a, _, err := swarm.FindBody[swarm.ApprovalAnswer](r.Log, swarm.AnsweredKey(swarm.RetryQuestion(string(turn))))
	return a.Retry, err
}

// inputs are the inputs of a task, as a person has changed them last.
func (r *Runner) inputs(w *work) (map[string]string, error) {
	inputs := w.task.Inputs
	for _, turn := range earlier(w.c) {
		edit, err := r.retryEdit(turn)
		if err != nil {
			return nil, err
		}
		if edit != nil && edit.Inputs != nil {
			inputs = edit.Inputs
		}
	}
	return inputs, nil
}

// A logFold is a fold of the log: each task's last output, what sessions know, and the budget.
type logFold struct {
	read    int64                    // up to which event
	outputs map[string]swarm.CallEnd // by task
	goods   map[string]swarm.CallEnd // by agent, and by agent and task: of turns that did what was asked

	sessions map[string]string           // by agent: what its last turn that had one can be continued with
	begun    map[string]sessionKnowledge // by agent: what the prompt of its last turn tells
	given    map[string]sessionKnowledge // by agent: what its session was told
	began    map[string]int64            // by agent: where its last turn begins
	reset    map[string]int64            // by agent: where a person wanted its session forgotten

	account account
}

// follow brings the fold up to date.
func (l *logFold) follow(log swarm.Log) error {
	for e, err := range swarm.Events(log, l.read) {
		if err != nil {
			return err
		}
		l.read = e.Seq
		switch e.Kind {
		case swarm.TurnStarted:
			put(&l.began, e.Agent, e.Seq)
			err = errors.Join(l.begin(e), l.account.begin(e))
		case swarm.TurnReserved:
			err = l.account.raise(e)
		case swarm.Control:
			l.forget(e)
		case swarm.TurnEnded:
			err = l.enter(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *logFold) enter(e *swarm.Event) error {
	r, err := Answer(*e)
	if err != nil {
		return err
	}
	l.account.end(e, r.CallEnd)
	l.give(e, r.CallEnd)
	switch {
	case r.Forgotten:
		delete(l.sessions, e.Agent)
	case r.Session != "" && l.reset[e.Agent] <= l.began[e.Agent]: // else it began before a person wanted it forgotten
		put(&l.sessions, e.Agent, r.Session)
	}
	if r.Output != "" {
		if l.outputs == nil {
			l.outputs, l.goods = map[string]swarm.CallEnd{}, map[string]swarm.CallEnd{}
		}
		l.outputs[e.Task] = r.CallEnd
		if r.Status == swarm.CallOK {
			l.goods[goodKey(e.Agent, "")], l.goods[goodKey(e.Agent, e.Task)] = r.CallEnd, r.CallEnd
		}
	}
	return nil
}

// forget has an agent's next turn begin a session of its own, if that is what a person wants.
func (l *logFold) forget(e *swarm.Event) {
	if k, err := swarm.Body[swarm.ControlCommand](e); err == nil && k.Command == swarm.CommandReset { // who obeys control complains about what cannot be read
		delete(l.sessions, k.Target)
		put(&l.reset, k.Target, e.Seq)
	}
}

func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}

func goodKey(agent, task string) string { return agent + "/" + task }

// read is what a turn said.
func read(log swarm.Log, end swarm.CallEnd) (prompt.Output, error) {
	out := prompt.Output{Turn: end.ID}
	if end.Output != swarm.NoText {
		text, err := log.Body(end.Output)
		if err != nil {
			return out, fmt.Errorf("the output of %s: %w", end.ID, err)
		}
		out.Text = text
	}
	return out, nil
}
