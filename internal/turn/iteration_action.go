package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"swarm"
	"swarm/internal/action"
	"swarm/internal/agentapi"
	"swarm/internal/flow"
	"swarm/internal/modeljson"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/review"
	"swarm/internal/subtask"
	"swarm/internal/toolrule"
)

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
		words := "leaves the plan as it is"
		if len(subtasks)+len(messages) > 0 {
			words = fmt.Sprintf("plans anew: new subtasks: %d, messages: %d", len(subtasks), len(messages))
		}
		w.action = &swarm.Action{Kind: swarm.ActReplan, Words: words, Taken: len(subtasks)+len(messages) == 0, Weighed: weighed}
		return explained(err)
	case plan.WantAnswer:
		if !strings.ContainsFunc(string(reply.Output), func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
			return swarm.Errorf(swarm.Unexpected, "the answer is empty")
		}
	case plan.WantReview:
		said, err := review.Read(string(reply.Output), len(w.judged))
		w.action = &swarm.Action{Kind: swarm.ActReview, Taken: true, Judged: w.judged}
		for _, n := range said.Ranking {
			w.action.Ranking = append(w.action.Ranking, w.judged[n])
		}
		w.action.Words = "has judged the others: " + strings.Join(w.action.Ranking, ", ")
		return explained(err)
	case plan.WantAction:
		a, says, err := w.readAction(string(reply.Output))
		if !says {
			return explained(err)
		}
		w.asks = a
		if w.action = (&swarm.Action{Kind: a.Kind, Tool: a.Tool, Ours: agentapi.Coordinates(a.Tool), Words: a.Words()}); a.Kind == swarm.ActDone {
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
	w.action = w.taken(answer)
	return a, err == nil && w.action.Kind == "", nil
}

// finishAnswer takes out what a model thought before the answer of a swarm, and marks an answer that the
// limit of tokens has ended. Nobody must take it for whole.
func (w *work) finishAnswer(reply provider.Reply) provider.Reply {
	if w.c.Want != plan.WantAnswer {
		return reply
	}
	if w.asksPlainly() && !reply.IsCut() {
		said := modeljson.DropThoughts(string(reply.Output))
		reply.Output, reply.Bytes = []byte(said), int64(len(said))
	}
	if reply.Short && len(reply.Output) > 0 {
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
	return swarm.Errorf(swarm.KindOf(err), "%s. Instead, %s", strings.TrimRight(err.Error(), "."), hint)
}

// taken is what a program did in its turn, by its own tools and by ours.
func (w *work) taken(answer string) *swarm.Action {
	switch {
	case w.done:
		return &swarm.Action{Kind: swarm.ActDone, Taken: true}
	case w.ownTools:
		return &swarm.Action{Kind: swarm.ActToolCall, Taken: true}
	case w.repetition.longest > 0:
		return &swarm.Action{Kind: swarm.ActSendMessage, Taken: true}
	}
	if strings.TrimSpace(answer) == "" {
		return &swarm.Action{Taken: true, Words: "says nothing"}
	}
	return &swarm.Action{Taken: true, Words: "says something"}
}

// Act takes the action that a turn asks for, and appends what it gave.
func (r *Runner) Act(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	if c.Again { // otherwise no other worker can have ended it
		if e, ok, err := r.Log.Find(swarm.EndKey(c.ID)); err != nil || ok {
			if err != nil {
				return flow.Result{}, err
			}
			return Answer(e)
		}
	}
	kept, err := r.carriedOver(c)
	if err != nil {
		return flow.Result{}, err
	}
	if kept != nil {
		return r.appendAction(ctx, loop, c, *kept, swarm.Batch{})
	}
	c.Task = c.Agent
	turnCall := c
	turnCall.ID = c.Ref
	w, err := r.gatherAction(turnCall)
	if err != nil {
		return flow.Result{}, err
	}
	asked, err := r.actionOf(w)
	if err != nil {
		return flow.Result{}, err
	}
	alone := func() bool { return true }
	if r.reachesOut(w, asked) {
		if writesAnyFile(asked.Tool) {
			alone = r.beginUnseen(w)
			defer alone()
		}
		start, err := r.beginAction(ctx, c, asked.Tool)
		if err != nil {
			return flow.Result{}, err
		}
		if start == 1 { // what a start that a crash cut has written is the agent's
			w.before = r.reportText(w)
		}
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
	var report []byte
	if r.reachesOut(w, asked) {
		if report = r.writtenByAction(w, asked); !alone() && report != nil {
			report = nil
			text = fmt.Sprintf("(%s was written while a teammate's command ran, so it is not taken for yours: write it again.)\n%s", ReportName(w.c.Agent), text)
		}
	}
	return r.endAction(ctx, loop, c, asked.Tool, text, report, err)
}

// reachesOut says whether an action has an effect that the log does not have. Findings, messages and
// requests have keys in the log, so one that is taken again has no second effect.
func (r *Runner) reachesOut(w *work, a action.Action) bool {
	return a.Kind == swarm.ActToolCall && !agentapi.Knows(a.Tool) && r.Toolbox != nil && len(w.agent.Tools) > 0
}

// beginAction appends the start of an action and waits until it is on disk, together with the end of
// its turn. If a start is there already, a crash has cut the action. A tool that only reads files can
// run again unnoticed, so nobody waits for the disk.
func (r *Runner) beginAction(ctx context.Context, c flow.Call, tool string) (start int, err error) {
	id := swarm.TurnID(c.ID)
	if c.Again { // otherwise no other owner can have started it
		if start, err = r.lastStart(id); err != nil {
			return 0, err
		}
	}
	start++
	e := swarm.NewEvent(swarm.ActionStarted, swarm.ActionStart{Start: start})
	e.Key, e.Task, e.Agent, e.Turn = swarm.StartKey(id, start), c.Agent, c.Agent, swarm.TurnID(c.Ref)
	_, err = r.Log.Append(ctx, swarm.Batch{Fence: c.Fence, Lazy: onlyReads(tool), Events: []swarm.Event{e}})
	return start, err
}

// onlyReads says whether a tool changes nothing, wherever it is called.
func onlyReads(tool string) bool { return tool == toolrule.FileRead || tool == toolrule.FileList }

// endAction appends the end of an action, with the report that it has written, or nil. The agent's next turn takes it to disk before its provider
// is called.
func (r *Runner) endAction(ctx context.Context, loop string, c flow.Call, tool, text string, report []byte, failed error) (flow.Result, error) {
	end := swarm.CallEnd{Status: swarm.CallOK, Output: swarm.NoText}
	b := swarm.Batch{}
	if failed != nil {
		end = failure(failed)
		end.Reason = r.clean(explained(failed).Error())
	} else if out := r.redact([]byte(text)); len(out) > 0 {
		end.File = r.saveResult(c.Agent, c.Iteration, tool, out)
		out = out[:min(len(out), swarm.MaxOutput)]
		end.Output, end.Bytes, b.Bodies = swarm.HashOf(out), int64(len(text)), [][]byte{out}
		r.handResult(c.Agent, end.Output, out)
	}
	if report != nil {
		end.FileText, b.Bodies = swarm.HashOf(report), append(b.Bodies, report)
	}
	return r.appendAction(ctx, loop, c, end, b)
}

// appendAction appends the end of an action with a batch.
func (r *Runner) appendAction(ctx context.Context, loop string, c flow.Call, end swarm.CallEnd, b swarm.Batch) (flow.Result, error) {
	end.ID, end.Call, b.Fence, b.Early = c.ID, c.Print(), c.Fence, true
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

// actionOf returns the action that a turn asks for, and finds the number of the turn's last start. If
// this process ran the turn, it has both in memory.
func (r *Runner) actionOf(w *work) (action.Action, error) {
	if h := r.takeOver(w); h.turn == w.turn {
		w.start, w.box = h.start, h.box
		return h.asked, nil
	}
	turn := string(w.turn)
	e, ok, err := r.Log.Find(swarm.EndKey(turn))
	if err != nil || !ok {
		return action.Action{}, errors.Join(err, swarm.Errorf(swarm.Storage, "the log has no end of the turn %s", turn))
	}
	if w.start, err = r.lastStart(w.turn); err != nil {
		return action.Action{}, err
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
	handle := r.AgentAPI.BeginTurn(w.c.Agent, w.c.Task, w.turn, w.start, swarm.Inputs{})
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
	switch a.Tool { // it would answer, and have no effect: an action is no turn
	case "report_done", string(swarm.ActDone), string(swarm.ActSendMessage):
		kind := swarm.ActDone
		if a.Tool == string(swarm.ActSendMessage) {
			kind = swarm.ActSendMessage
		}
		return "", swarm.Errorf(swarm.Denied, "%s is no tool, but an action", swarm.Quote(a.Tool)).WithHint(`return {"action": %q, …}`, kind)
	}
	if agentapi.Knows(a.Tool) {
		return call(a.Tool, a.Params)
	}
	if !r.reachesOut(w, a) {
		return "", swarm.Errorf(swarm.Denied, "there is no tool %s", swarm.Quote(a.Tool)).WithHint("work without tools, or ask a teammate")
	}
	if err := r.refuseWrite(w, a); err != nil {
		return "", err
	}
	box, err := r.toolbox(w)
	if err != nil {
		return "", err
	}
	return box.Call(ctx, a.Tool, a.Params)
}

// A handover is what a turn of a swarm's agent leaves for its action, and the action for the next turn.
// A crash loses it. Then the log has it.
type handover struct {
	turn  swarm.TurnID // that asks for the action; "" = the action is taken
	start int          // of that turn
	asked action.Action
	box   Toolbox // nil = none is open

	result swarm.Hash // of the last action; "" = it was shown in a prompt
	text   string     // as far as prompts show it
}

// handOver keeps the action that a turn asks for.
func (r *Runner) handOver(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	put(&r.handed, w.c.Agent, handover{turn: w.turn, start: w.start, asked: w.asks, box: w.box})
}

// takeOver returns what was kept for the action of a turn.
func (r *Runner) takeOver(w *work) handover {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.handed[w.c.Agent]
	delete(r.handed, w.c.Agent)
	return h
}

// handResult keeps what an action gave, for the next prompt.
func (r *Runner) handResult(agent string, result swarm.Hash, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	put(&r.handed, agent, handover{result: result, text: prompt.HeadChars(string(text), prompt.RecentChars)})
}

// lastStart returns the number of the last start of a turn, or of an action by its id; 0 = there is
// none. A crash may have cut earlier ones.
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
