package turn

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
)

// A loadedPlan is a plan with its parts indexed by name.
type loadedPlan struct {
	*swarm.Plan
	tasks     map[string]*swarm.Task
	agents    map[string]*swarm.Agent
	providers map[string]swarm.ProviderSpec
	counts    map[string]int // by agent: its tasks; nil = not counted yet
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
	shared, err := swarm.FindPlan(r.Log, ref)
	if err != nil {
		return nil, err
	}
	p := &loadedPlan{Plan: shared, tasks: map[string]*swarm.Task{}, agents: map[string]*swarm.Agent{}, providers: map[string]swarm.ProviderSpec{}}
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

// providerOf returns what does the turn: its agent's provider, at a desk or not, or a swarm.
func (r *Runner) providerOf(w *work) (provider.Provider, error) {
	if w.task.Swarm != nil && r.Swarm != nil {
		return r.Swarm(w.plan.Plan, w.task, w.agent), nil
	}
	if w.worker() != "" {
		return r.atDesk(w)
	}
	return r.provider(w.spec)
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

// Prompt makes the prompt of an earlier turn again, with the mail, findings and session that its
// start names. All other inputs come from the logs of the runner and its AgentAPI. If those logs
// end where [swarm.TurnStart] says, the prompt is the same.
func (r *Runner) Prompt(c flow.Call, start swarm.TurnStart) (string, error) {
	w, err := r.gather(c)
	if err != nil {
		return "", err
	}
	w.begun = &start
	err = r.makePrompt(w)
	return w.made.Text, err
}

// makePrompt makes the full prompt of a turn, with the mail that it consumes, and finds the session
// that it continues.
func (r *Runner) makePrompt(w *work) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.c.Want != plan.WantMail {
		return r.makeIteration(w)
	}
	p := w.plan
	t := prompt.Turn{Task: w.c.Task, Agent: w.c.Agent, Iteration: w.c.Iteration, Of: w.c.Of}
	if p.Team != nil { // a team's work is its mail
		t.Task, t.Iteration = "", 0
	}
	if w.kind().Person || w.task.Swarm != nil { // a person sees the text alone, without tasks and iterations, and so does a swarm
		t.Task, t.Agent, t.Iteration = "", "", 0
	}
	if err := r.readInto(&t, w); err != nil {
		return err
	}
	broken, followed := error(nil), false
	follow := func() bool { // once per prompt, so two references to one output give the same text
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
		out, err := readOutput(r.Log, end)
		if err != nil {
			broken = err
		}
		return out, err == nil
	}
	if w.continues() {
		if !follow() {
			return broken
		}
		if w.session = r.fold.sessions[w.sessionKey()]; w.begun != nil {
			w.session, w.recalled = w.begun.Session, w.begun.History
		} else if _, err := r.cutSession(w); err != nil { // what is left out is not known any more
			return err
		}
	}
	items, err := r.unread(w)
	if err != nil {
		return err
	}
	items = mail.UrgentFirst(items)
	goal, err := r.goalAgain(w)
	if err != nil {
		return err
	}
	items = append(goal, items...)
	w.packs = mail.Packs(items)
	if t.Packs, err = r.packs(w); err != nil {
		return err
	}
	if t.Findings, err = r.published(w); err != nil {
		return err
	}
	if err := r.present(&t, w, items); err != nil { // last, so that it covers everything read above
		return err
	}
	if len(goal) > 0 {
		t.Inbox = goalNote + t.Inbox
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
	if r.isEdited(w) {
		if made, err = r.editedPrompt(w, made, items, t.Failures, t.Sent); err != nil {
			return err
		}
	}
	w.made = r.cleanPrompt(made)
	return nil
}

// An Edit is the prompt of a turn that a person has written.
type Edit struct {
	Turn swarm.TurnID
	Text string
	Want string
	Upto int64 // as [swarm.EditedPrompt.Upto]
}

// isOf reports whether a person has written the prompt of a turn with this number. Another attempt of the
// turn has the same prompt.
func (e *Edit) isOf(turn swarm.TurnID) bool {
	return e != nil && swarm.FirstAttempt(e.Turn) == swarm.FirstAttempt(turn)
}

// isEdited reports whether a person has written the prompt of a turn. In a swarm, a turn with its number may
// be for something else than the person has seen.
func (r *Runner) isEdited(w *work) bool {
	return r.Edited.isOf(w.turn) && (r.Edited.Want == "" || r.Edited.Want == string(w.c.Want))
}

// editedPrompt returns the prompt that a person has written, and after it what they did not know: the mail
// that the turn consumes beside theirs, and why later attempts failed. The caller holds the runner's mutex.
func (r *Runner) editedPrompt(w *work, made prompt.Prompt, items []mail.Item, failures []prompt.Failure, sent []string) (prompt.Prompt, error) {
	e, later := r.Edited, prompt.Turn{}
	items = slices.DeleteFunc(slices.Clone(items), func(i mail.Item) bool { return e.Upto == 0 || i.Seq <= e.Upto })
	w.packs = mail.Packs(items)
	var err error
	if later.Packs, err = r.packs(w); err != nil {
		return prompt.Prompt{}, err
	}
	if len(items) > 0 {
		if _, later.Inbox, w.known, err = r.AgentAPI.Present(w.c.Agent, nil, w.c.Answered, items); err != nil {
			return prompt.Prompt{}, err
		}
	}
	_, _, first := plan.SplitTurn(e.Turn)
	later.Failures = slices.DeleteFunc(slices.Clone(failures), func(f prompt.Failure) bool { return f.Attempt < first })
	if e.Turn != w.turn {
		later.Sent = sent
	}
	return made.Edited(e.Text, later)
}

// readInto reads the parts of the prompt that are stored as they are: the role, the task's text,
// its inputs, earlier failures and messages sent.
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

// cleanPrompt removes secrets. If it finds any, the origin of each byte is lost, so one span covers
// the whole text.
func (r *Runner) cleanPrompt(made prompt.Prompt) prompt.Prompt {
	if r.Redact == nil {
		return made
	}
	if clean := r.Redact([]byte(made.Text)); string(clean) != made.Text {
		return prompt.Prompt{Text: string(clean), Spans: []swarm.Span{{From: "redacted", End: len(clean)}}}
	}
	return made
}

// earlier returns the turn ids of the earlier attempts in this iteration.
func earlier(c flow.Call) (turns []swarm.TurnID) {
	for n := 1; n < c.Attempt; n++ {
		turns = append(turns, swarm.NewTurnID(c.Task, c.Iteration, n))
	}
	return turns
}

// failures says why the earlier attempts in this iteration failed.
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
		if result.Status != swarm.CallFailed || result.Limit != nil || result.Crowded { // the failure is not the fault of its work
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

// retryEdit returns a person's changes to the attempt after a failed turn, if the task asked for
// them.
func (r *Runner) retryEdit(turn swarm.TurnID) (*swarm.RetryRequest, error) {
	a, _, err := swarm.FindBody[swarm.ApprovalAnswer](r.Log, swarm.AnsweredKey(swarm.RetryQuestion(string(turn))))
	return a.Retry, err
}

// inputs returns the inputs of a task with a person's latest changes.
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

// A logFold is the runner's fold of the log: outputs by task, the state of sessions, and the
// budget. The runner's mutex guards it.
type logFold struct {
	read    int64                    // sequence number of the last event read
	outputs map[string]swarm.CallEnd // by task
	goods   map[string]swarm.CallEnd // by agent, and by agent and task: outputs of successful turns

	sessions map[string]string           // by sessionKey: the session that its agent's next turn can continue
	begun    map[string]begunTurn        // by agent: what the prompt of its last turn contains
	given    map[string]sessionKnowledge // by sessionKey: what the session has been told
	began    map[string]int64            // by agent: sequence number of its last start
	reset    map[string]int64            // by agent: sequence number of its last reset by a person
	totals   map[string]swarm.Usage      // by session: what it has cost in all, as its program reported it last
	// conversations are the sessions that the log keeps, by sessionKey.
	conversations map[string]*conversation

	steps   map[string][]iterationStep // by agent of a swarm: its iterations
	reports map[string]doneReport      // by agent of a swarm that is done
	written map[string]swarm.Hash      // by agent of a swarm: its report, as it has written it
	ended   map[string]bool            // by agent of a swarm: its work has ended

	account account
}

// follow applies the events that were appended since the last call.
func (l *logFold) follow(log swarm.Log) error {
	for e, err := range swarm.Events(log, l.read) {
		if err != nil {
			return err
		}
		l.read = e.Seq
		switch e.Kind {
		case swarm.TurnStarted:
			put(&l.began, e.Agent, e.Seq)
			err = errors.Join(l.begin(e), l.noteHistory(e), l.account.begin(e))
		case swarm.PlanAdded:
			err = l.learnBudgets(e)
		case swarm.TurnReserved:
			err = l.account.raise(e)
		case swarm.Control:
			l.forget(e)
		case swarm.TurnEnded:
			err = l.applyEnd(e)
		case swarm.ActionStarted:
			err = l.addStart(e)
		case swarm.ActionEnded:
			err = l.addResult(e)
		case swarm.AgentEnded, swarm.AgentRestarted:
			put(&l.ended, e.Agent, e.Kind == swarm.AgentEnded)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *logFold) applyEnd(e *swarm.Event) error {
	r, err := Answer(*e)
	if err != nil {
		return err
	}
	l.account.end(e, r.CallEnd)
	l.addStep(e, r.CallEnd)
	l.recordKnowledge(e, r.CallEnd)
	l.recordTotal(e, r.CallEnd)
	switch {
	case r.Forgotten:
		delete(l.sessions, sessionOf(e, &r.CallEnd))
	case r.Session != "" && l.reset[e.Agent] <= l.began[e.Agent]: // otherwise the turn began before the reset
		if l.addExchange(e, r.CallEnd) {
			put(&l.sessions, sessionOf(e, &r.CallEnd), r.Session)
		} else {
			delete(l.sessions, sessionOf(e, &r.CallEnd))
		}
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

// learnBudgets takes the budgets of agents and tasks from a plan. Most plans have none.
func (l *logFold) learnBudgets(e *swarm.Event) error {
	if !bytes.Contains(e.Data, []byte(`"budget":`)) {
		return nil
	}
	p, err := swarm.PlanOf(e)
	if err == nil {
		l.account.learn(p)
	}
	return err
}

// forget drops an agent's session if the command is a reset. The agent's next turn starts a new
// session.
func (l *logFold) forget(e *swarm.Event) {
	if k, err := swarm.Body[swarm.ControlCommand](e); err == nil && k.Command == swarm.CommandReset { // the loop reports a command that cannot be read
		maps.DeleteFunc(l.sessions, ofAgent[string](k.Target))
		maps.DeleteFunc(l.conversations, ofAgent[*conversation](k.Target))
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

// readOutput reads the output of a turn.
func readOutput(log swarm.Log, end swarm.CallEnd) (prompt.Output, error) {
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
