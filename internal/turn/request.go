package turn

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// A Toolbox holds the tools that one agent's model may use.
type Toolbox interface {
	Specs(ctx context.Context) ([]swarm.ToolSpec, error)
	Call(ctx context.Context, tool string, args json.RawMessage) (string, error)
}

// present adds the team's rules and the turn's mail to the prompt.
func (r *Runner) present(t *prompt.Turn, w *work, items []mail.Item) (err error) {
	if r.AgentAPI == nil || w.plan.Team == nil && len(items) == 0 {
		return nil
	}
	t.Mode, t.Inbox, w.known, err = r.AgentAPI.Present(w.c.Agent, w.plan.Team, w.c.Answered, items)
	if w.plan.Team != nil && w.kind().Tools == providerkind.NoTools {
		t.Mode = "You are asked by a team of agents. You have none of their tools and can write to nobody; what you say in the end is your answer.\n"
	}
	return err
}

// unread returns the mail that the turn consumes, and sets w.inputs.
func (r *Runner) unread(w *work) ([]mail.Item, error) {
	if r.AgentAPI == nil || w.kind().Person {
		return nil, nil
	}
	if w.begun != nil {
		w.inputs = w.begun.Inputs
		return r.AgentAPI.Mail(w.c.Agent, w.inputs)
	}
	// Most tasks of a pipeline never get mail. This check saves folding the log for each of their
	// turns.
	if first, err := r.Log.Read(0, 1, swarm.ToAgent(w.c.Agent)); err != nil || len(first) == 0 {
		return nil, err
	}
	from, err := r.AgentAPI.Cursor(w.c.Agent)
	if err != nil {
		return nil, err
	}
	w.inputs = swarm.Inputs{From: from, Upto: from}
	items, err := r.AgentAPI.Unread(w.c.Agent, from, maxInbox)
	if err == nil && len(items) > 0 {
		w.inputs.Upto = items[len(items)-1].Seq
	}
	return items, err
}

// overtaken returns an error if mail came between the making of the prompt for a swarm's answer and
// the turn's start. The run ends with that turn, so no later prompt would have the mail. Another attempt
// has it. Mail that comes after the start is refused.
func (r *Runner) overtaken(w *work) error {
	if w.c.Want != plan.WantAnswer || r.AgentAPI == nil {
		return nil
	}
	items, err := r.AgentAPI.Unread(w.c.Agent, w.inputs.From, maxInbox)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(items, func(i mail.Item) bool { return i.Seq > w.inputs.Upto && i.Seq < w.began }) {
		return swarm.Errorf(swarm.CutToSpeak, "a message came before the answer was begun")
	}
	return nil
}

// goalAgain returns the goal of a team if the agent has consumed it in an earlier turn, and the turn
// begins a session: after a reset, or at another provider. Such a session knows nothing of the goal.
func (r *Runner) goalAgain(w *work) ([]mail.Item, error) {
	if r.AgentAPI == nil || w.plan.Team == nil || w.session != "" || w.kind().Sessions == providerkind.NoSessions || w.inputs.From == 0 {
		return nil, nil
	}
	goal := swarm.Envelope{ID: swarm.GoalID, FromNodeID: swarm.User}
	e, ok, err := r.Log.Find(swarm.MailKey(goal.Ref()))
	if err != nil || !ok || e.To != swarm.ToAgent(w.c.Agent) || e.Seq > w.inputs.From {
		return nil, err
	}
	goal, err = swarm.Body[swarm.Envelope](&e)
	return []mail.Item{{Seq: e.Seq, Envelope: goal}}, err
}

// goalNote stands before the mail of a turn that is given its goal again.
const goalNote = "Your session is new, and your run is not. Message 1 is the goal, which you were given in an earlier turn.\n\n"

// maxInbox limits the envelopes in one turn. The next turn gets the rest.
const maxInbox = 100

// request makes the provider's request. From then on the agent may act on the run. Calling leave
// ends that and collects the mail that the agent has read.
func (r *Runner) request(ctx context.Context, w *work) (req provider.Request, leave func(), err error) {
	req = r.plainRequest(w)
	req.Ask, req.Reserve = r.asker(w), r.reserver(ctx, w)
	req.AwaitRoom = r.roomAwaiter(w, req.Reserve)
	req.AskDenied = w.plan.Approvals.Tools == "deny"
	if req.Session = w.session; w.session != "" {
		req.Fresh = w.sent
		if req.SessionTotal, err = r.sessionTotal(w.session); err != nil {
			return req, nil, err
		}
	} else {
		req.Prompt, req.Fresh, req.Stable = w.sent, w.sent, w.stable
	}
	req.History, req.Later = w.history, w.later
	if w.kind().Sessions == providerkind.LogSessions {
		req.Context = 2 * w.contextLimits().Tokens // the session has half of it
	}
	if r.Endpoint != nil && w.kind().Tools == providerkind.ByDoor {
		if req.Door, err = r.Endpoint(w.c.Agent); err != nil {
			return req, nil, err
		}
	}
	leave = func() {}
	var handle *agentapi.TurnHandle
	if r.AgentAPI != nil {
		handle = r.AgentAPI.BeginTurn(w.c.Agent, w.c.Task, w.turn, w.start, w.inputs)
		w.handle, req.Aside = handle, handle.Aside
		leave = func() {
			w.inputs = handle.End()
			w.report, w.done = handle.Done()
		}
	}
	if r.writesFiles(w) {
		end, err := r.exchangeFiles(ctx, w)
		if err != nil {
			leave()
			return req, nil, err
		}
		req.Env[messagesVariable] = r.messagesPath()
		before := leave
		leave = func() { end(); before() }
	}
	if w.asksPlainly() {
		err = r.askPlainly(ctx, w, &req)
	} else {
		req.ToolSpecs, req.Call, err = r.tools(ctx, w, handle)
	}
	r.noteToolSize(w, &req)
	if err != nil {
		leave()
	}
	return req, leave, err
}

// plainRequest is the part of the request that every program of the turn gets.
func (r *Runner) plainRequest(w *work) provider.Request {
	env := maps.Clone(w.agent.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, w.task.Env)
	if dir := r.Files(w.c.Agent); dir != "" {
		env[workspaceVariable] = dir
	}
	req := provider.Request{Run: r.Run, Turn: w.turn, Task: w.c.Task, Agent: w.c.Agent, Iteration: w.c.Iteration, Attempt: w.c.Attempt,
		Prompt: w.made.Text, Fresh: w.made.Text, Model: w.model, Dir: r.workdir(w), Root: w.agent.Root, Env: env, Tools: w.agent.Tools}
	if w.plan.Team != nil {
		req.Phase = w.plan.Team.Phase
	}
	if s := w.subtask(); s != "" {
		req.Task = s
	}
	if r.Trace != nil {
		req.Trace = r.Trace(w.turn)
	}
	return req
}

// tools returns the tools of a model and the function that calls them: our own tools if its agent
// has edges, and the tools that its agent lists.
func (r *Runner) tools(ctx context.Context, w *work, handle *agentapi.TurnHandle) (specs []swarm.ToolSpec, call func(context.Context, string, json.RawMessage) (string, error), err error) {
	switch how := w.kind().Tools; {
	case how == providerkind.NoTools:
		return nil, helpOnly(w, handle), nil
	case how == providerkind.ByDoor && handle != nil: // the program reaches our tools through its endpoint
		return nil, func(ctx context.Context, tool string, args json.RawMessage) (string, error) {
			answer, err := handle.Call(ctx, tool, args)
			return string(answer), err
		}, nil
	}
	if r.AgentAPI != nil {
		// In a pipeline most agents are offered none, and to say whom an agent may write to takes
		// time for each agent of the run.
		joined := r.AgentAPI.Joined(w.c.Agent)
		if joined || len(w.agent.Tools) > 0 {
			for _, spec := range r.AgentAPI.Tools(w.c.Agent) {
				if joined || lists(w.agent, spec.Name) {
					specs = append(specs, spec)
				}
			}
		}
	}
	var box Toolbox
	if r.Toolbox != nil && len(w.agent.Tools) > 0 {
		if box, err = r.Toolbox(w.agent, w.turn); err != nil {
			return nil, nil, err
		}
		more, err := box.Specs(ctx)
		if err != nil {
			return nil, nil, err
		}
		specs = append(specs, more...)
	}
	return specs, func(ctx context.Context, tool string, args json.RawMessage) (string, error) {
		switch {
		case handle != nil && agentapi.Knows(tool): // also tools that were not offered: the refusal says what would allow them
			answer, err := handle.Call(ctx, tool, args)
			return string(answer), err
		case box != nil:
			return box.Call(ctx, tool, args)
		}
		return "", swarm.Errorf(swarm.Denied, "there is no tool %s", swarm.Quote(tool))
	}, nil
}

// noteToolSize records how many bytes of each request of the turn describe tools.
func (r *Runner) noteToolSize(w *work, req *provider.Request) {
	n := int64(0)
	for i := range req.ToolSpecs {
		n += req.ToolSpecs[i].Size()
	}
	if req.Plain != nil { // the prompt describes the tools
		n = int64(len(req.Plain.System) + len(req.Prompt) - len(w.made.Text))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	put(&r.toolSizes, w.c.Agent, max(0, n))
}

// toolSize returns how many bytes of each request described tools in the agent's last turn. The
// tools of servers are known only after the start of a turn, so it is 0 before the first turn. The
// provider reserves the difference before it asks its model.
func (r *Runner) toolSize(w *work) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.toolSizes[w.c.Agent]
}

// helpOnly lets a remote agent in a team ask a person for help, and nothing else. Outside of a team
// the answer could not reach the agent.
func helpOnly(w *work, handle *agentapi.TurnHandle) func(context.Context, string, json.RawMessage) (string, error) {
	if w.plan.Team == nil || handle == nil {
		return nil
	}
	return func(ctx context.Context, tool string, args json.RawMessage) (string, error) {
		if tool != "request_help" {
			return "", swarm.Errorf(swarm.Denied, "there is no tool %s for a remote agent", swarm.Quote(tool))
		}
		answer, err := handle.Call(ctx, tool, args)
		return string(answer), err
	}
}

// OurTools is the name of AgentAPI's tools in an agent's `tools`: `swarm` for all, `swarm.NAME` for
// one.
const OurTools = "swarm"

func lists(a *swarm.Agent, tool string) bool {
	return slices.ContainsFunc(a.Tools, func(entry string) bool {
		return entry == OurTools || entry == OurTools+"."+tool || entry == OurTools+"__"+tool
	})
}
