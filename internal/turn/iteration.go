package turn

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/action"
	"swarm/internal/agentapi"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/subtask"
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
}

// addStep records the end of an iteration's turn. The result of an action that is still to be taken
// comes with its end. An answer that could not be read is a step until a later attempt is better.
func (l *logFold) addStep(e *swarm.Event, end swarm.CallEnd) {
	if end.Action == nil && end.Kind != swarm.Unexpected {
		return
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

// addResult records what the action of an iteration gave.
func (l *logFold) addResult(e *swarm.Event) error {
	end, err := swarm.Body[swarm.CallEnd](e)
	if err != nil {
		return err
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
			text, err := r.Log.Body(s.stored)
			if err != nil {
				return nil, err
			}
			s.result = prompt.HeadChars(string(text), prompt.RecentChars)
		}
		s.stored = ""
		steps[i] = prompt.Step{Iteration: s.number, Action: s.action, Words: s.words, Result: s.result, File: s.file, Turn: s.turn}
	}
	return steps, nil
}

// makeIteration makes the prompt of a swarm's turn. The caller holds the runner's mutex.
func (r *Runner) makeIteration(w *work) error {
	if r.AgentAPI == nil {
		return swarm.Errorf(swarm.Storage, "the agents of a swarm need our tools")
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
	query, err := r.Log.Body(state.Query)
	if err != nil {
		return err
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
		for _, t := range state.Tasks { // what nobody has done is told as such
			if t.Open {
				s.Results = append(s.Results, prompt.Result{Agent: t.ID, Task: t.Task, Outcome: "open", Reason: "nobody has done it", Text: "no result"})
			}
		}
		w.made = prompt.BuildSynthesis(&s)
	default:
		it := prompt.Iteration{Agent: w.c.Agent, Program: !w.asksPlainly(), Task: state.Task(w.c.Agent), Team: r.teammates(state, w.c.Agent), More: state.More, Findings: findings, Inbox: inbox,
			Number: w.c.Iteration, Of: state.Iterations, Failures: failures}
		if it.History, err = r.history(w.c.Agent); err != nil {
			return err
		}
		it.Tasks = taskList(state)
		w.made = prompt.BuildIteration(&it)
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
func (r *Runner) teammates(state *agentapi.SwarmState, agent string) (all []prompt.Teammate) {
	needs := state.Needs(agent)
	for _, a := range state.Agents {
		t := prompt.Teammate{Name: a.Name, Task: a.Task}
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
		case len(a.Waits) > 0:
			t.State = "waits for " + strings.Join(a.Waits, ", ")
		}
		all = append(all, t)
	}
	return all
}

// taskList returns the task list of a swarm. If it has nothing but the subtasks of the agents, which
// the list of the team shows, it is left out.
func taskList(state *agentapi.SwarmState) (all []prompt.Task) {
	if len(state.Tasks) == 0 && !slices.ContainsFunc(state.Agents, func(a agentapi.SwarmAgent) bool { return len(a.Needs) > 0 }) {
		return nil
	}
	for _, a := range state.Agents {
		all = append(all, prompt.Task{ID: a.ID, Task: a.Task, State: a.State()})
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
		all = append(all, prompt.Task{ID: t.ID, Task: prompt.HeadChars(t.Task, longText), State: t.State})
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
		all = append(all, prompt.Task{ID: a.ID, Task: a.Task, State: a.State(), Text: results[i].Text, Turn: a.Turn})
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
		res := prompt.Result{Agent: a.Name, Task: a.Task, Outcome: a.Outcome, Reason: a.Reason, Turn: a.Turn, Steps: steps}
		if res.Text, err = r.reportText(r.fold.reports[a.Name]); err != nil {
			return nil, err
		}
		if res.Text == "" {
			var last []string
			for _, s := range steps[max(0, len(steps)-prompt.RecentSteps):] {
				last = append(last, s.Outcome())
			}
			res.Text = strings.Join(last, "\n")
		}
		all = append(all, res)
	}
	return all, nil
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
	if why == "" && len(all) > 0 {
		why = all[0].Agent + " did not say that it was done"
	}
	return prompt.ListResults(why, all), nil
}

// reportText returns what an agent said when it was done, with what it has written to its report.
func (r *Runner) reportText(report doneReport) (string, error) {
	said := prompt.HeadChars(report.said, prompt.RecentChars)
	if report.file != "" {
		said += "\n(report: " + report.file + ")"
	}
	if report.text == "" {
		return strings.TrimSpace(said), nil
	}
	text, err := r.Log.Body(report.text)
	return said + "\n" + prompt.HeadChars(string(text), prompt.RecentChars), err
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

// limitTime limits the turn to the time that its agent has left in the swarm.
func (w *work) limitTime() {
	if w.c.Timeout > 0 {
		limited := *w.task
		limited.Timeout = w.c.Timeout
		w.task = &limited
	}
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
		p.System, p.Prefill = p.System+prompt.ToolList(specs), prompt.Prefill
	case plan.WantSubtasks, plan.WantReplan:
		p.Prefill = prompt.Prefill
	}
	req.Plain, req.Prompt, req.Fresh = p, rest, rest
	return nil
}

// swarmTools returns the tools that an agent of a swarm may call: those that it lists.
func (r *Runner) swarmTools(ctx context.Context, w *work) ([]swarm.ToolSpec, error) {
	ours := slices.DeleteFunc(r.AgentAPI.Tools(w.c.Agent), func(s swarm.ToolSpec) bool { return !strings.HasPrefix(s.Name, "task_") }) // the others are actions
	if r.Toolbox == nil || len(w.agent.Tools) == 0 {
		return ours, nil
	}
	box, err := r.Toolbox(w.agent, w.turn)
	if err != nil {
		return nil, err
	}
	specs, err := box.Specs(ctx)
	return append(specs, ours...), err
}

// checkAnswer reads the answer of a swarm's turn. One that cannot be read is an error, which the
// next attempt's prompt tells the model.
func (r *Runner) checkAnswer(w *work, reply provider.Reply) error {
	if w.asksPlainly() && reply.IsCut() { // what is missing may change its meaning
		return explained(swarm.Errorf(swarm.Unexpected, "the answer has %d bytes, of which only %d are kept", reply.Bytes, len(reply.Output)).
			WithHint("return a shorter one, and write long texts to a file in parts"))
	}
	switch w.c.Want {
	case plan.WantSubtasks:
		_, err := subtask.ReadAnswer(string(reply.Output))
		return explained(err)
	case plan.WantReplan:
		ids, weighed, err := r.AgentAPI.Weighed(w.known)
		if err != nil {
			return err
		}
		subtasks, messages, err := subtask.ReadReplan(string(reply.Output), ids)
		w.action = &swarm.Action{Kind: swarm.ActReplan, Taken: len(subtasks)+len(messages) == 0, Weighed: weighed}
		return explained(err)
	case plan.WantAction:
		a, says, err := w.readAction(string(reply.Output))
		if !says {
			return explained(err)
		}
		if w.action = (&swarm.Action{Kind: a.Kind, Tool: a.Tool, Ours: agentapi.Knows(a.Tool), Words: a.Words()}); a.Kind == swarm.ActDone {
			w.done, w.report = true, a.Response
		}
	}
	return nil
}

// readAction reads the action that an answer says. What a program did is its action; if it did
// nothing, it may say one as a model does.
func (w *work) readAction(answer string) (a action.Action, says bool, err error) {
	a, err = action.Read(answer)
	if w.kind().Tools == providerkind.InProcess {
		return a, err == nil, err
	}
	w.action = w.taken()
	return a, err == nil && w.action.Kind == "", nil
}

// markShort marks an answer of a swarm that the limit of tokens has ended. Nobody must take it for whole.
func (w *work) markShort(reply provider.Reply) provider.Reply {
	if w.c.Want == plan.WantAnswer && reply.Short {
		const mark = "…\n\n(The answer breaks off here: the model has reached its limit of tokens.)\n"
		reply.Output, reply.Bytes = append(reply.Output, mark...), reply.Bytes+int64(len(mark))
	}
	return reply
}

// explained adds the hint to an error, because only its text goes into the next prompt.
func explained(err error) error {
	hint := swarm.HintOf(err)
	if err == nil || hint == "" {
		return err
	}
	return swarm.Errorf(swarm.KindOf(err), "%w. Instead, %s", err, hint)
}

// taken is what a program did in its turn, by its own tools and by ours.
func (w *work) taken() *swarm.Action {
	switch {
	case w.done:
		return &swarm.Action{Kind: swarm.ActDone, Taken: true}
	case w.ownTools:
		return &swarm.Action{Kind: swarm.ActToolCall, Taken: true}
	case w.repetition.longest > 0:
		return &swarm.Action{Kind: swarm.ActSendMessage, Taken: true}
	}
	return &swarm.Action{Taken: true, Words: "says something"}
}

// Act takes the action that a turn asks for, and appends what it gave.
func (r *Runner) Act(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	if e, ok, err := r.Log.Find(swarm.EndKey(c.ID)); err != nil || ok {
		if err != nil {
			return flow.Result{}, err
		}
		return Answer(e)
	}
	c.Task = c.Agent
	turnCall := c
	turnCall.ID = c.Ref
	w, err := r.gatherAction(turnCall)
	if err != nil {
		return flow.Result{}, err
	}
	asked, err := r.actionOf(c.Ref)
	if err != nil {
		return flow.Result{}, err
	}
	if c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.Timeout, swarm.Errorf(swarm.TimedOut, "timed out after %s", c.Timeout))
		defer stop()
	}
	ended := r.watchObeyed(w)
	text, err := r.take(ctx, w, asked)
	ended()
	if stop := stopCause(ctx, err); stop != nil && swarm.KindOf(stop) != swarm.TimedOut {
		return flow.Result{}, stop
	}
	return r.endAction(ctx, loop, c, asked.Tool, text, err)
}

// endAction appends the end of an action.
func (r *Runner) endAction(ctx context.Context, loop string, c flow.Call, tool, text string, failed error) (flow.Result, error) {
	end := swarm.CallEnd{ID: c.ID, Call: c.Print(), Status: swarm.CallOK, Output: swarm.NoText}
	b := swarm.Batch{Fence: c.Fence}
	if failed != nil {
		end = failure(failed)
		end.ID, end.Call, end.Reason = c.ID, c.Print(), r.clean(explained(failed).Error())
	} else if out := r.redact([]byte(text)); len(out) > 0 {
		end.File = r.saveResult(c.Agent, c.Iteration, tool, out)
		out = out[:min(len(out), swarm.MaxOutput)]
		end.Output, end.Bytes, b.Bodies = swarm.HashOf(out), int64(len(text)), [][]byte{out}
	}
	b.Events = []swarm.Event{{Kind: swarm.ActionEnded, Key: swarm.EndKey(c.ID), To: swarm.ToLoop(loop), Task: c.Agent, Agent: c.Agent, Turn: swarm.TurnID(c.Ref), Data: swarm.Encode(end)}}
	seqs, err := r.Log.Append(context.WithoutCancel(ctx), b)
	if err != nil {
		return flow.Result{}, err
	}
	return flow.Result{CallEnd: end, Seq: seqs[0]}, nil
}

// gatherAction finds the agent of an action. Its plan is that of its turn.
func (r *Runner) gatherAction(c flow.Call) (*work, error) {
	c.Ref = c.Plan
	return r.gather(c)
}

// actionOf reads the action that a turn asks for.
func (r *Runner) actionOf(turn string) (action.Action, error) {
	e, ok, err := r.Log.Find(swarm.EndKey(turn))
	if err != nil || !ok {
		return action.Action{}, errors.Join(err, swarm.Errorf(swarm.Storage, "the log has no end of the turn %s", turn))
	}
	end, err := Answer(e)
	if err != nil {
		return action.Action{}, err
	}
	text, err := r.Log.Body(end.Output)
	if err != nil {
		return action.Action{}, err
	}
	a, err := action.Read(string(text))
	if err != nil {
		return a, swarm.Errorf(swarm.Storage, "the action of the turn %s cannot be read: %w", turn, err)
	}
	return a, nil
}

// take takes one action in the agent's name.
func (r *Runner) take(ctx context.Context, w *work, a action.Action) (string, error) {
	start, err := r.lastStart(w.turn)
	if err != nil {
		return "", err
	}
	handle := r.AgentAPI.BeginTurn(w.c.Agent, w.c.Task, w.turn, start, swarm.Inputs{})
	defer handle.End()
	call := func(tool string, args any) (string, error) {
		answer, err := handle.Call(ctx, tool, swarm.Encode(args))
		return string(answer), err
	}
	switch a.Kind {
	case swarm.ActPublishData:
		return call("publish_data", map[string]any{"topic": a.Topic, "data": a.Data})
	case swarm.ActRequestHelp:
		return call("request_help", map[string]any{"help_description": a.Help, "help_skills": a.Skills})
	case swarm.ActSendMessage:
		return call("send_handoff", messageArgs(a))
	}
	if agentapi.Knows(a.Tool) {
		return call(a.Tool, a.Params)
	}
	if r.Toolbox == nil || len(w.agent.Tools) == 0 {
		return "", swarm.Errorf(swarm.Denied, "there is no tool %s", swarm.Quote(a.Tool)).WithHint("work without tools, or ask a teammate")
	}
	box, err := r.Toolbox(w.agent, w.turn)
	if err != nil {
		return "", err
	}
	return box.Call(ctx, a.Tool, a.Params)
}

// lastStart returns the number of a turn's last start. A crash may have cut earlier ones.
func (r *Runner) lastStart(turn swarm.TurnID) (n int, err error) {
	for ok := true; ok; n++ {
		if _, ok, err = r.Log.Find(swarm.StartKey(turn, n+1)); err != nil {
			return 0, err
		}
	}
	return n - 1, nil
}

// messageArgs makes the arguments of send_handoff of a message.
func messageArgs(a action.Action) map[string]any {
	args := map[string]any{"to": a.To, "type": a.MessageType, "structured": a.Payload, "message": ""}
	if text, ok := a.Message(); ok {
		args["message"] = text
	} else {
		args["message"] = string(a.Payload)
	}
	return args
}
