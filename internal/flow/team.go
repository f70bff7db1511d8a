package flow

import (
	"strconv"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// A team is the state of one Team loop. The [plan.Team] that it drives has the state of the agents.
type team struct {
	runState
	*plan.Team
	histories map[string]*agentHistory // by agent: to detect repetitions
	between   repetition               // the two agents of the last messages
	purpose   plan.Want                // of a swarm: what the supervisor's last turn is for
}

// Team drives agents that send each other work, until no work is left or the run is closed.
func Team(fx Fx, c Call) (Result, error) { return newTeam(fx).run(c) }

func newTeam(fx Fx) *team {
	t := &team{runState: runState{fx: fx, agents: true}, Team: plan.NewTeam(), histories: map[string]*agentHistory{}}
	t.machine = t.Team
	return t
}

func (t *team) run(c Call) (Result, error) {
	first, refused, err := t.add("plan", c.Ref)
	switch {
	case err != nil:
		return Result{}, err
	case refused != nil:
		return t.refuse(refused)
	}
	t.begin(first)
	return t.drive(t)
}

// add adds the agents of a stored plan.
func (t *team) add(id, ref string) (p *swarm.Plan, refused, err error) {
	if p, refused, err = t.plan(id, ref); refused == nil && err == nil {
		t.Apply(Fact{Kind: swarm.PlanAdded, Key: ref, Body: p, Time: t.fx.Now()}) // the first turns of a swarm may follow from it
	}
	return p, refused, err
}

// advance takes steps until the team has none.
func (t *team) advance() error {
	for {
		steps := t.Next()
		if len(steps) == 0 {
			return nil
		}
		for _, step := range steps {
			if err := t.do(step); err != nil {
				return err
			}
		}
	}
}

// do takes one step.
func (t *team) do(s plan.TeamStep) error {
	switch s.Kind {
	case plan.GiveTurn:
		m := t.Member(s.Agent)
		if m.Effort == nil {
			t.purpose = m.Want
		}
		c := Call{ID: string(s.Turn), Kind: KindTurn, Task: m.Name, Agent: m.Name, Iteration: m.Turns, Attempt: m.Attempt, Ref: m.Ref,
			Answered: t.Dealt(), Since: t.seen, Want: m.Want, Provider: m.Using, Timeout: t.timeLeft(t.TimeLeft(m), m.Want == plan.WantAnswer), Reissued: true}
		if m.Want == plan.WantAnswer { // the work is done in time, and the rest of the time is for this
			t.holdNoTime()
		}
		if m.Want == plan.WantResults { // the notice that says why may not be in the log yet
			c.Note = swarm.NewMessage(swarm.Unanswered, t.Swarm.Without)
		}
		return t.fx.Go(c)
	case plan.TakeAction:
		return t.takeAction(s)
	case plan.CheckGoal:
		return t.checkGoal()
	case plan.AskPlan:
		return t.askPlan()
	case plan.Assign:
		_, err := t.write(Call{ID: "assign/" + s.Task, Kind: KindAssign, Agent: swarm.Supervisor, Ref: s.Task})
		return err
	case plan.Divide:
		return t.divide(string(s.Turn))
	case plan.EndAgent:
		if s.End != nil {
			return t.endAgent(s.Agent, *s.End, swarm.NewMessage(swarm.BackEnded))
		}
		return t.endAgent(s.Agent, swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"}, swarm.NewMessage(swarm.BackCancelled))
	case plan.Restart:
		delete(t.histories, s.Agent)
		return t.tell(Fact{Kind: swarm.AgentRestarted, Key: swarm.RestartedKey(s.Agent + ":" + strconv.Itoa(t.Member(s.Agent).Starts+1)), Agent: s.Agent, Task: s.Agent})
	case plan.RemindOf:
		return t.remind(s.Owed)
	case plan.GiveUpOn:
		return t.giveUp(s.Owed)
	}
	return t.dealWith(s.Request)
}

func (t *team) over() bool { return t.Over() }

func (t *team) due() time.Time { return t.Due() }

// handle acts on one record.
func (t *team) handle(s Signal) error {
	var err error
	switch s.Kind {
	case swarm.HandoffStored:
		err = t.weighMail(s.Body.(plan.Mail))
	case swarm.TurnEnded, swarm.LoopEnded:
		err = t.turnEnded(s.Agent, s.Result)
	case swarm.ActionEnded:
		err = t.actionEnded(s.Agent, s.Result)
	case swarm.CheckEnded:
		err = t.checkEnded(s.Result)
	case swarm.ApprovalAnswered:
		t.planAnswered(s.Body.(swarm.ApprovalAnswer).ID)
	case swarm.PlanAdded:
		_, _, err = t.add("plan/"+strconv.FormatInt(s.Seq, 10), s.Key)
	case swarm.Control:
		_, err = t.obey(s.Body.(swarm.ControlCommand))
	}
	if err != nil {
		return err
	}
	if err := t.checkLimits(); err != nil {
		return err
	}
	return t.checkWall()
}

// turnEnded decides what the end of a turn means for its agent.
func (t *team) turnEnded(agent string, r Result) error {
	m := t.Member(agent)
	if m == nil {
		return nil
	}
	if t.Outlasts(m, &r.CallEnd) {
		return t.reachLimit(m.Name, m.Name, m.Route, r)
	}
	if t.MayFit(m, &r.CallEnd) {
		return t.tellRoom(m.Name, m.Name, m.Turns, m.Attempt, r)
	}
	if t.Swarm != nil {
		return t.iterationEnded(m, r)
	}
	v, after, err := t.judge(r, m.Tries, plan.Retries(&t.Rules))
	switch {
	case err != nil:
	case v == didWell:
		err = t.weighTurn(m.Name, r)
	case v == triesAgain:
		err = t.tellRetry(m.Name, m.Name, m.Turns, m.Attempt, r, after)
	case v == hasFailed:
		err = t.endAgent(m.Name, swarm.AgentEnd{Kind: r.Kind, Reason: "it failed: " + r.Reason}, swarm.NewMessage(swarm.BackFailed, r.Reason))
	}
	if err != nil {
		return err
	}
	return t.weighShared(m.Name, r)
}

// write makes a call that writes to an agent. The team must see that envelope before it counts as
// idle.
func (t *team) write(c Call) (Result, error) {
	r, err := t.fx.Do(c)
	t.Wrote(r.Wrote)
	return r, err
}

// endAgent ends an agent and returns its unread mail. If the agent is the lead, the run ends.
func (t *team) endAgent(agent string, end swarm.AgentEnd, why swarm.Message) error {
	m := t.Member(agent)
	id := "return/" + agent
	if m.Starts > 0 {
		id += "/" + strconv.Itoa(m.Starts)
	}
	if err := t.tell(Fact{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey(agent, m.Starts), Agent: agent, Task: agent, Body: end}); err != nil {
		return err
	}
	if agent == t.Rules.Lead {
		if t.stopFor(swarm.Other); end.Kind == swarm.CutByCancel && t.stop == swarm.Other {
			t.stop = swarm.CutByCancel
		}
	}
	return t.sendBack(id, agent, why)
}

// sendBack returns the unread mail of an agent that has ended.
func (t *team) sendBack(id, agent string, why swarm.Message) error {
	r, err := t.write(Call{ID: id, Kind: KindReturn, Agent: agent, Note: why})
	t.Returned(agent, r.Seq)
	return err
}

// remind reminds the receiver of its reply, once. A person gets no message: clients show what they
// owe.
func (t *team) remind(o plan.Owed) error {
	err := t.tell(Fact{Kind: swarm.ReplyOverdue, Key: "overdue:" + o.Ref, Agent: o.To, Body: swarm.Overdue{ID: o.Ref}})
	if err != nil || t.Member(o.To) == nil {
		return err
	}
	_, err = t.write(Call{ID: "remind/" + o.Ref, Kind: KindRemind, Agent: o.To, Ref: o.Ref})
	return err
}

// giveUp gives up on a reply and tells the agent that asked for it.
func (t *team) giveUp(o plan.Owed) error {
	err := t.tell(Fact{Kind: swarm.ReplyOverdue, Key: "overdue:" + o.Ref + "/over", Agent: o.To, Body: swarm.Overdue{ID: o.Ref, Over: true}})
	if m := t.Member(o.From); err != nil || m == nil || m.End != nil {
		return err
	}
	_, err = t.write(Call{ID: "giveup/" + o.Ref, Kind: KindGiveUp, Agent: o.From, Ref: o.Ref})
	return err
}

// dealWith carries out the answer to a growth request. The run does not end before the mail about
// it has arrived. An agent that has ended cannot read the answer, so its mail is returned.
func (t *team) dealWith(r plan.Request) error {
	if _, err := t.write(Call{ID: "grant/" + r.ID, Kind: KindGrant, Agent: r.Agent, Ref: r.ID}); err != nil {
		return err
	}
	if m := t.Member(r.Agent); m != nil && m.End != nil {
		return t.sendBack("return/"+r.ID, r.Agent, swarm.NewMessage(swarm.BackEnded))
	}
	return nil
}

var endKinds = map[swarm.Status]swarm.EventKind{
	swarm.Completed: swarm.TaskCompleted, swarm.Failed: swarm.TaskFailed, swarm.Skipped: swarm.TaskSkipped, swarm.Cancelled: swarm.TaskCancelled,
}

// finish tells how the work of each agent ended, and the run. A swarm that has an answer is
// completed, also if an agent failed: the answer is made without it, and says so.
func (t *team) finish() (Result, error) {
	if t.Closing == plan.ClosedByCancel {
		t.stopFor(swarm.CutByCancel)
	}
	if t.stop == swarm.OverBudget && t.Finished() && !t.Curtailed() {
		t.stop = "" // no work was left when the budget ran out
	}
	var failed, cancelled []string
	turns := 0
	for i := range t.Members {
		name, e := t.Members[i].Name, t.Ending(i, t.stop)
		if turns += t.Members[i].Turns; e.Status == swarm.Failed {
			failed = append(failed, "@"+name)
		}
		if w := t.Members[i].Effort; w != nil && !w.Unwanted() && e.Status == swarm.Cancelled && e.Why.Kind == swarm.CutByCancel {
			cancelled = append(cancelled, "@"+name)
		}
		e.Why.Iteration = 1
		if err := t.tell(Fact{Kind: endKinds[e.Status], Key: "task_ended:" + name + "/1", Task: name, Agent: name, Body: e.Why}); err != nil {
			return Result{}, err
		}
	}
	end := swarm.RunEnd{Report: t.Report}
	if t.Swarm != nil {
		end.Answer = t.Swarm.Answer
		if end.Answer != "" && t.Swarm.Without == "" {
			end.Reason, failed = answeredWithout(failed, cancelled), nil
		}
		t.denial = t.Swarm.Denial
	}
	if t.Closing == "" && turns == 0 {
		end.Reason = "nobody had anything to do"
	}
	if t.Swarm == nil || end.Answer != "" || len(failed) > 0 {
		cancelled = nil // a swarm without an answer has not completed
	}
	if len(failed) == 0 && t.Unmet() && (t.stop == "" || t.stop == swarm.Mismatch) {
		return t.endUnmet(end)
	}
	return t.conclude(end, failed, cancelled)
}

// answeredWithout says which agents have given nothing to an answer, and why; "" = all have.
func answeredWithout(failed, cancelled []string) (text string) {
	if len(failed) > 0 {
		text = "answered without " + excerpt.List(failed, 5) + ", which failed"
	}
	if len(cancelled) == 0 {
		return text
	}
	was := ", which was cancelled"
	if len(cancelled) > 1 {
		was = ", which were cancelled"
	}
	if text == "" {
		return "answered without " + excerpt.List(cancelled, 5) + was
	}
	return text + ", and without " + excerpt.List(cancelled, 5) + was
}
