package turn

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// iterationTemperature is the temperature at which models answer in a swarm.
const iterationTemperature = 0.3

// An iterationStep is an earlier iteration of an agent of a swarm. Its result is kept as far as the
// agent's next prompts show it.
type iterationStep struct {
	turn   swarm.TurnID
	number int
	action string
	words  string // the action with its parameters, for the evidence of the answer
	result string
	stored swarm.Hash // the result, until a prompt needs it
	file   string     // that has the whole result
	again  bool       // a crash cut its action, which was then taken again
}

// addStep records the end of an iteration's turn. The result of an action that is still to be taken
// comes with its end. An answer that could not be read is a step until a later attempt is better.
func (l *logFold) addStep(e *swarm.Event, end swarm.CallEnd) {
	if end.Action == nil && end.Kind != swarm.Unexpected || l.ended[e.Agent] { // a review is no work
		return
	}
	if end.FileText != "" {
		put(&l.written, e.Agent, end.FileText)
	}
	_, number, _ := plan.SplitTurn(e.Turn)
	s := iterationStep{turn: e.Turn, number: number, action: "no action", result: end.Reason}
	if a := end.Action; a != nil {
		s.action, s.result, s.words = actionName(a), "", cmp.Or(a.Words, actionName(a))
		if a.Taken {
			s.stored, s.file = end.Output, end.File
		}
		if a.Kind == swarm.ActDone {
			put(&l.reports, e.Agent, doneReport{end.Report, end.File, end.FileText})
		}
	}
	all := l.steps[e.Agent]
	if n := len(all); n > 0 && all[n-1].number == number {
		all = all[:n-1]
	}
	put(&l.steps, e.Agent, append(all, s))
}

// A doneReport is what an agent said when it was done, and the file that has more.
type doneReport struct {
	said string
	file string
	text swarm.Hash // what the agent has written to the file; "" = nothing
}

// addStart records that the action of an iteration was started, perhaps not for the first time.
func (l *logFold) addStart(e *swarm.Event) error {
	start, err := swarm.Body[swarm.ActionStart](e)
	if all := l.steps[e.Agent]; len(all) > 0 && start.Start > 1 {
		all[len(all)-1].again = true
	}
	return err
}

// addResult records what the action of an iteration gave.
func (l *logFold) addResult(e *swarm.Event) error {
	end, err := swarm.Body[swarm.CallEnd](e)
	if err != nil {
		return err
	}
	if end.FileText != "" {
		put(&l.written, e.Agent, end.FileText)
	}
	all := l.steps[e.Agent]
	if len(all) == 0 {
		return nil
	}
	s := &all[len(all)-1]
	if s.stored, s.file = end.Output, end.File; end.Status != swarm.CallOK {
		s.result, s.stored, s.file = "error: "+end.Reason, "", ""
	}
	return nil
}

func actionName(a *swarm.Action) string {
	if a.Kind == "" {
		return prompt.StepOfWords
	}
	if a.Kind == swarm.ActToolCall && a.Tool != "" {
		return string(a.Kind) + ":" + a.Tool
	}
	return string(a.Kind)
}

// history returns an agent's earlier iterations. Of older ones less is kept.
func (r *Runner) history(agent string) ([]prompt.Step, error) {
	all := r.fold.steps[agent]
	steps := make([]prompt.Step, len(all))
	for i := range all {
		s := &all[i]
		if s.stored != "" && s.stored != swarm.NoText {
			var err error
			if s.result, err = r.resultText(agent, s.stored); err != nil {
				return nil, err
			}
		}
		if s.action == prompt.StepOfWords && strings.TrimSpace(s.result) == "" {
			s.result = "(it said nothing)"
		}
		s.stored = ""
		steps[i] = prompt.Step{Iteration: s.number, Action: s.action, Words: s.words, Result: s.result, File: s.file, Again: s.again, Turn: s.turn}
	}
	return steps, nil
}

// resultText returns the result of an agent's action, as far as prompts show it.
func (r *Runner) resultText(agent string, stored swarm.Hash) (string, error) {
	if h := r.handed[agent]; h.result == stored {
		delete(r.handed, agent)
		return h.text, nil
	}
	text, err := r.Log.Body(stored)
	return prompt.HeadChars(string(text), prompt.RecentChars), err
}

// makeIteration makes the prompt of a swarm's turn. The caller holds the runner's mutex.
func (r *Runner) makeIteration(w *work) error {
	if r.AgentAPI == nil {
		return swarm.Errorf(swarm.Storage, "the agents of a swarm need our tools")
	}
	if w.c.Want != plan.WantAction { // the loop has just told how the last agents ended, and did not wait for it
		r.Log.Flush()
	}
	items, err := r.unread(w)
	if err != nil {
		return err
	}
	findings, err := r.published(w)
	if err != nil {
		return err
	}
	failures, err := r.failures(w.c)
	if err != nil {
		return err
	}
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	w.outputs = r.fold.read
	inbox := messages(items)
	state, known, err := r.AgentAPI.SwarmState(w.c.Agent) // last, so that it covers everything read above
	if err != nil {
		return err
	}
	w.known = known
	var query []byte
	if w.c.Want != plan.WantAction { // an agent sees its subtask
		if query, err = r.Log.Body(state.Query); err != nil {
			return err
		}
	}
	switch w.c.Want {
	case plan.WantSubtasks:
		w.made = prompt.BuildDivision(&prompt.Division{Query: string(query), Most: state.MaxAgents, AtOnce: state.Workers, Roles: state.Roles, Failures: failures})
	case plan.WantReplan:
		p := prompt.Replan{Query: string(query), Room: state.Room, Roles: state.Roles, Inbox: inbox, Failures: failures}
		if p.Tasks, err = r.tasks(state); err != nil {
			return err
		}
		w.made = prompt.BuildReplan(&p)
	case plan.WantAnswer:
		wishes, err := r.wishes(w)
		if err != nil {
			return err
		}
		s := prompt.Synthesis{Query: string(query), Inbox: append(messages(wishes), inbox...), Failures: failures}
		if s.Results, err = r.results(state); err != nil {
			return err
		}
		if s.Vote, err = r.vote(state, s.Results); err != nil {
			return err
		}
		for _, t := range state.Tasks { // what nobody has done is told as such
			if t.Open {
				s.Results = append(s.Results, prompt.Result{Agent: t.ID, Task: t.Task, Outcome: "open", Reason: "nobody has done it", Text: "no result"})
			}
		}
		w.made = prompt.BuildSynthesis(&s)
	case plan.WantReview:
		p := prompt.Review{Query: string(query), Failures: failures}
		if p.Answers, err = r.answers(w, state); err != nil {
			return err
		}
		w.made = prompt.BuildReview(&p)
	default:
		it := prompt.Iteration{Agent: w.c.Agent, Program: !w.asksPlainly(), Alone: state.Council != nil, Task: state.Task(w.c.Agent), More: state.More, Findings: findings, Inbox: inbox,
			Number: w.c.Iteration, Of: state.Iterations, Failures: failures}
		if it.Team, err = r.teammates(state, w.c.Agent); err != nil {
			return err
		}
		if it.History, err = r.history(w.c.Agent); err != nil {
			return err
		}
		it.Tasks = taskList(state)
		w.made = prompt.BuildIteration(&it)
	}
	if r.isEdited(w) {
		if w.made, err = r.editedPrompt(w, w.made, items, failures, nil); err != nil {
			return err
		}
	}
	w.made = r.cleanPrompt(w.made)
	return nil
}

// wishes returns what people wrote to the supervisor before this turn. It was read when the supervisor
// planned anew, and may be about the answer.
func (r *Runner) wishes(w *work) ([]mail.Item, error) {
	items, err := r.AgentAPI.Mail(w.c.Agent, swarm.Inputs{Upto: w.inputs.From})
	return slices.DeleteFunc(items, func(i mail.Item) bool { return i.FromNodeID != swarm.User }), err
}

// teammates lists the agents of a swarm for the prompt of one of them. It shows what those have said
// whose results its subtask needs. Of the others it names the reports, so that it stays short.
func (r *Runner) teammates(state *agentapi.SwarmState, agent string) (all []prompt.Teammate, err error) {
	needs := state.Needs(agent)
	all = make([]prompt.Teammate, 0, len(state.Agents))
	for _, a := range state.Agents {
		t := prompt.Teammate{Name: a.Name, Task: prompt.HeadChars(a.Task, state.Chars)}
		switch {
		case a.Outcome == swarm.OutcomeDone:
			t.State = "done"
			report := r.fold.reports[a.Name]
			if slices.Contains(needs, a.Name) {
				t.State += ": " + strconv.Quote(prompt.HeadChars(report.said, longText))
			}
			if report.file != "" {
				t.State += "; report: " + report.file
			}
		case a.Outcome != "":
			t.State = "ended: " + a.Reason
			report, err := r.unfinished(a)
			if err != nil {
				return nil, err
			}
			if report != "" {
				t.State += "; report: " + report
			}
		case len(a.Waits) > 0:
			t.State = "waits for " + strings.Join(a.Waits, ", ")
		}
		all = append(all, r.prepared(t))
	}
	return all, nil
}

// prepared returns a teammate with its line, which is the same in the prompts of all others until its
// state changes.
func (r *Runner) prepared(t prompt.Teammate) prompt.Teammate {
	kept := r.mates[t.Name]
	if kept.Name != t.Name || kept.Task != t.Task || kept.State != t.State {
		t.Prepare()
		put(&r.mates, t.Name, t)
		return t
	}
	return kept
}

// taskList returns the task list of a swarm. If it has nothing but the subtasks of the agents, which
// the list of the team shows, it is left out.
func taskList(state *agentapi.SwarmState) (all []prompt.Task) {
	if len(state.Tasks) == 0 && !slices.ContainsFunc(state.Agents, func(a agentapi.SwarmAgent) bool { return len(a.Needs) > 0 }) {
		return nil
	}
	for _, a := range state.Agents {
		all = append(all, prompt.Task{ID: a.ID, Task: prompt.HeadChars(a.Task, state.Chars), State: a.State()})
	}
	return append(all, added(state)...)
}

// added returns the entries of the task list that agents have added, but for those that have become
// the subtask of an agent.
func added(state *agentapi.SwarmState) (all []prompt.Task) {
	for _, t := range state.Tasks {
		if slices.ContainsFunc(state.Agents, func(a agentapi.SwarmAgent) bool { return a.ID == t.ID }) {
			continue
		}
		all = append(all, prompt.Task{ID: t.ID, Task: prompt.HeadChars(t.Task, state.Chars), State: t.State})
	}
	return all
}

// tasks returns the task list of a swarm with the results so far, for the supervisor.
func (r *Runner) tasks(state *agentapi.SwarmState) (all []prompt.Task, err error) {
	results, err := r.results(state)
	if err != nil {
		return nil, err
	}
	for i, a := range state.Agents {
		how := a.State()
		if file := results[i].File; file != "" {
			how += "; report: " + file
		}
		all = append(all, prompt.Task{ID: a.ID, Task: prompt.HeadChars(a.Task, state.Chars), State: how, Text: results[i].Text, Turn: a.Turn})
	}
	return append(all, added(state)...), nil
}

// results returns what the agents of a swarm have found, and the steps that it comes from. The
// response of one that said done is its result. Of the others the last iterations are.
func (r *Runner) results(state *agentapi.SwarmState) (all []prompt.Result, err error) {
	for _, a := range state.Agents {
		steps, err := r.history(a.Name)
		if err != nil {
			return nil, err
		}
		res := prompt.Result{Agent: a.Name, Task: a.Task, Outcome: a.Outcome, Reason: a.Reason, Turn: lastResult(steps), Steps: steps}
		if err := r.addReport(&res); err != nil {
			return nil, err
		}
		if res.Text == "" {
			var last []string
			for _, s := range steps[max(0, len(steps)-prompt.RecentSteps):] {
				last = append(last, s.Outcome())
			}
			res.Text = strings.Join(last, "\n")
			if res.File, err = r.unfinished(a); err != nil {
				return nil, err
			}
		}
		all = append(all, res)
	}
	return all, nil
}

// lastResult returns the last turn that has a result, which the answer may refer to. An iteration
// that could not be read, or never ran, has none.
func lastResult(steps []prompt.Step) swarm.TurnID {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Words != "" {
			return steps[i].Turn
		}
	}
	return ""
}

// listResults ends a turn with the results as they are, in the place of an answer that no model makes.
func (r *Runner) listResults(ctx context.Context, loop string, w *work) (flow.Result, error) {
	text, err := r.resultsText(strings.Join(w.c.Note.Args, " "))
	if err != nil {
		return flow.Result{}, err
	}
	out := r.redact([]byte(text))
	end := swarm.CallEnd{Status: swarm.CallOK, Unbegun: true, Output: swarm.HashOf(out), Bytes: int64(len(out))}
	done, err := r.end(ctx, loop, w.c, end, swarm.Batch{Bodies: [][]byte{out}})
	if err == nil && r.Watch != nil {
		r.Watch.Output(w.c, out)
	}
	return done, err
}

// resultsText lists the results after the reason why they are no answer. Without a reason, only one
// agent has worked.
func (r *Runner) resultsText(why string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return "", err
	}
	state, _, err := r.AgentAPI.SwarmState(swarm.Supervisor)
	if err != nil {
		return "", err
	}
	all, err := r.results(state)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(all, func(res prompt.Result) bool { return res.Outcome.Good() }); why == "" && len(all) > 0 {
		why = all[max(i, 0)].Agent + " did not say that it was done"
	}
	return prompt.ListResults(why, all), nil
}

// addReport adds what an agent said when it was done, and what it has written to its report.
func (r *Runner) addReport(res *prompt.Result) error {
	report := r.fold.reports[res.Agent]
	res.Text, res.File = strings.TrimSpace(prompt.HeadChars(report.said, prompt.RecentChars)), report.file
	if report.text == "" {
		return nil
	}
	text, err := r.Log.Body(report.text)
	res.Report = prompt.HeadChars(string(text), prompt.RecentChars)
	return err
}

// messages returns mail as the prompts of a swarm show it.
func messages(items []mail.Item) (all []prompt.Message) {
	for _, it := range items {
		m := prompt.Message{From: it.FromNodeID, Type: typeOf(it.Envelope), Payload: string(swarm.Encode(map[string]string{"message": it.Payload.Message}))}
		if len(it.Payload.Structured) > 0 {
			m.Payload = string(it.Payload.Structured)
		}
		all = append(all, m)
	}
	return all
}

func typeOf(e swarm.Envelope) string { return cmp.Or(mail.MetaOf(e).Type, string(e.Kind)) }

// timeoutError is the error of a turn that takes longer than most. An agent of a swarm has one time
// for several turns or attempts, so the rest that was left for this one says little.
func (w *work) timeoutError(most time.Duration) error {
	limit := cmp.Or(w.task.Timeout, most)
	if w.agentTimeout() {
		limit = w.plan.Swarm.Timeout
	}
	if limit > time.Second {
		limit = limit.Round(time.Second)
	}
	return swarm.Errorf(swarm.TimedOut, "timed out after %s", limit).WithHint("%s", w.timeoutHint())
}

// agentTimeout says whether the time of one agent of a swarm limits the turn, and not that of the run.
func (w *work) agentTimeout() bool {
	return w.plan.Swarm != nil && w.plan.Swarm.Timeout > 0 &&
		(w.c.Want == plan.WantAction || w.c.Want == plan.WantReview || w.plan.Budget.Wall == 0)
}

// timeoutHint names the key that limits the turn's time.
func (w *work) timeoutHint() string {
	more := "budget: {wall: 1h}"
	switch {
	case w.plan.Swarm == nil:
		return swarm.TimeoutHint
	case w.agentTimeout():
		return "give each agent more with swarm: {agent_timeout_seconds: N}, or see in `swarm logs` what it was busy with"
	case w.plan.Swarm.Timeout > 0:
		more += " and swarm: {agent_timeout_seconds: N}"
	}
	return "give the run more with " + more + ", or see in `swarm logs` what it was busy with"
}

// subtask is the id of the agent's subtask in a swarm, or "".
func (w *work) subtask() string {
	if w.plan.Swarm == nil {
		return ""
	}
	for _, s := range w.plan.Swarm.Subtasks {
		if s.Agent == w.c.Agent {
			return s.ID
		}
	}
	return ""
}

// asksPlainly says whether the turn is one question of a swarm to a model. A program gets the whole
// prompt and our tools, as everywhere.
func (w *work) asksPlainly() bool {
	return w.c.Want != plan.WantMail && w.kind().Tools == providerkind.InProcess
}

// askPlainly makes a request one question without tools.
func (r *Runner) askPlainly(ctx context.Context, w *work, req *provider.Request) error {
	system, rest := w.made.SplitSystem()
	p := &provider.Plain{System: system, Temperature: iterationTemperature, MaxTokens: w.c.Want.MaxTokens()}
	switch w.c.Want {
	case plan.WantAction:
		specs, err := r.swarmTools(ctx, w)
		if err != nil {
			return err
		}
		p.System, p.Prefill = p.System+r.toolList(specs), prompt.Prefill
	case plan.WantSubtasks, plan.WantReplan, plan.WantReview:
		p.Prefill = prompt.Prefill
	}
	req.Plain, req.Prompt, req.Fresh = p, rest, rest
	return nil
}

// listedTools are tools and their description.
type listedTools struct {
	specs []swarm.ToolSpec
	text  string
}

// toolList describes tools. Most agents of a swarm have the same ones, so the last list is kept.
func (r *Runner) toolList(specs []swarm.ToolSpec) string {
	same := func(a, b swarm.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listed.text == "" || !slices.EqualFunc(specs, r.listed.specs, same) {
		r.listed = listedTools{specs, prompt.ToolList(specs)}
	}
	return r.listed.text
}

// swarmTools returns the tools that an agent of a swarm may call: those that it lists.
func (r *Runner) swarmTools(ctx context.Context, w *work) ([]swarm.ToolSpec, error) {
	ours := r.AgentAPI.TaskTools() // the others are actions
	if r.Toolbox == nil || len(w.agent.Tools) == 0 {
		return ours, nil
	}
	box, err := r.toolbox(w)
	if err != nil {
		return nil, err
	}
	specs, err := box.Specs(ctx)
	return append(specs, ours...), err
}

// toolbox opens the tools of a turn of a swarm, once for its prompt and its action.
func (r *Runner) toolbox(w *work) (Toolbox, error) {
	if w.box != nil {
		return w.box, nil
	}
	box, err := r.Toolbox(w.agent, w.turn)
	if err == nil {
		w.box = box
	}
	return box, err
}
