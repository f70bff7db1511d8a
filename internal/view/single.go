package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A single is what keeps one agent from going on.
type single struct {
	For   []string        `json:"for,omitempty"`   // whom it waits for in its turn,
	Since time.Time       `json:"since,omitzero"`  // and since when
	Held  time.Time       `json:"held,omitzero"`   // since when a person has it paused; zero = it is not
	Ended *swarm.AgentEnd `json:"ended,omitempty"` // it has no turn any more
	Began int64           `json:"began,omitempty"` // the event with which its last turn began
}

// An ask is an envelope that wants a reply and has none.
type ask struct {
	Ref   string    `json:"ref"`
	ID    string    `json:"id"`
	By    string    `json:"by"` // who gets the reply
	To    string    `json:"to"` // who owes it
	Seq   int64     `json:"seq"`
	Since time.Time `json:"since"`
	Late  bool      `json:"late,omitempty"` // it was reminded of
}

// single changes what keeps an agent.
func (r *Run) single(agent string, change func(*single)) {
	if _, ok := r.agentAt[agent]; !ok {
		return
	}
	if r.singles == nil {
		r.singles = map[string]single{}
	}
	s := r.singles[agent]
	change(&s)
	r.singles[agent] = s
}

// foldSingle folds in what keeps one agent from going on, or lets it.
func (r *Run) foldSingle(e *swarm.Event) error {
	switch e.Kind {
	case swarm.TurnStarted:
		r.single(e.Agent, func(s *single) { s.For, s.Since, s.Began = nil, time.Time{}, e.Seq })
	case swarm.TurnEnded, swarm.WaitEnded:
		r.single(e.Agent, func(s *single) { s.For, s.Since = nil, time.Time{} })
	case swarm.RunOwned: // turns that were cut begin again
		for name := range r.singles {
			r.single(name, func(s *single) { s.For, s.Since = nil, time.Time{} })
		}
	case swarm.WaitBegan:
		w, err := swarm.Body[swarm.AgentWait](e)
		if err != nil {
			return err
		}
		r.single(e.Agent, func(s *single) { s.For, s.Since = w.For, e.Time })
	case swarm.AgentPaused:
		r.sched.PauseAgent(e.Agent, true)
		r.single(e.Agent, func(s *single) { s.Held = e.Time })
	case swarm.AgentResumed:
		r.sched.PauseAgent(e.Agent, false)
		r.single(e.Agent, func(s *single) { s.Held = time.Time{} })
		r.Notices = slices.DeleteFunc(r.Notices, func(n Notice) bool { return n.Reason == plan.WaitsForPaused(e.Agent) })
	case swarm.AgentEnded:
		end, err := swarm.Body[swarm.AgentEnd](e)
		if err != nil {
			return err
		}
		r.single(e.Agent, func(s *single) { s.Ended = &end })
		r.asks = slices.DeleteFunc(r.asks, func(a ask) bool { return a.To == e.Agent })
	case swarm.AgentStarted:
		r.sched.PauseAgent(e.Agent, false)
		r.single(e.Agent, func(s *single) { s.Ended, s.Held = nil, time.Time{} })
	case swarm.TurnSession:
		in, err := swarm.Body[swarm.TurnInSession](e)
		if err != nil {
			return err
		}
		if a, ok := r.agentAt[e.Agent]; ok {
			r.agents[a].Session, r.agents[a].Active = in.Session, e.Time
		}
	case swarm.ReplyOverdue:
		return r.overdue(e)
	case swarm.RunEnded:
		r.asks = nil
	}
	return nil
}

// overdue folds in that a reply was reminded of, or is not waited for any more.
func (r *Run) overdue(e *swarm.Event) error {
	o, err := swarm.Body[swarm.Overdue](e)
	if err != nil {
		return err
	}
	if o.Over {
		r.asks = slices.DeleteFunc(r.asks, func(a ask) bool { return a.Ref == o.ID })
		return nil
	}
	for i := range r.asks {
		r.asks[i].Late = r.asks[i].Late || r.asks[i].Ref == o.ID
	}
	return nil
}

// foldReplies notes the reply that an envelope wants, and those that it is. Who writes back answers what it had read when its turn
// began, and what it says it answers.
func (r *Run) foldReplies(e *swarm.Event, env *swarm.Envelope) {
	var meta struct {
		InReplyTo string `json:"inReplyTo"`
	}
	_ = json.Unmarshal(env.Meta, &meta) // what is no reply of ours has none
	began := r.singles[env.FromNodeID].Began
	r.asks = slices.DeleteFunc(r.asks, func(a ask) bool {
		return meta.InReplyTo != "" && (a.Ref == meta.InReplyTo || a.ID == meta.InReplyTo) || a.To == env.FromNodeID && a.By == env.ToNodeID && a.Seq <= began
	})
	if p := env.Payload.Response; p != nil && p.Expectation == "required" {
		r.asks = append(r.asks, ask{Ref: env.Ref(), ID: env.ID, By: (&Envelope{Envelope: *env}).replyTo(), To: env.ToNodeID, Seq: e.Seq, Since: e.Time})
	}
}

// standingInTeam is where an agent of a team stands: its turn runs, perhaps to wait for others; it has mail and something keeps it; or
// it has nothing to do but to wait for replies, or for mail.
func (r *Run) standingInTeam(i int) (swarm.Status, []Wait) {
	st, name := r.sched.Status(i), r.tasks[i].Agent
	s, box := r.singles[name], r.boxes[name]
	switch {
	case st.Ended():
		return st, nil
	case s.Ended != nil && s.Ended.Kind == swarm.CutByCancel:
		return swarm.Cancelled, nil
	case s.Ended != nil:
		return swarm.Failed, nil
	case st == swarm.Running:
		return st, r.waitsInTurn(s)
	}
	var waits []Wait
	add := func(w Wait) { waits = append(waits, w) }
	if !s.Held.IsZero() {
		add(Wait{For: plan.ForPause, Agent: name, Since: s.Held})
	}
	if r.pause != "" && box.wants() {
		add(Wait{For: plan.ForPause, Since: r.pausedAt})
	}
	if w, held := r.retry(i); held {
		add(Wait(w))
	}
	if waits == nil && box.wants() && r.parallel > 0 && r.slots() >= r.parallel {
		add(Wait{For: plan.ForSlot, Since: box.Queued})
	}
	for _, a := range r.asks {
		if a.By == name {
			add(Wait{For: plan.ForReply, Agent: a.To, Since: a.Since, Reason: a.ID})
		}
	}
	switch {
	case waits != nil:
	case box.wants():
		return swarm.Pending, nil
	default:
		add(Wait{For: plan.ForMail})
	}
	return swarm.Waiting, waits
}

// slots is how many turns run that need one: who waits for others in its turn needs none.
func (r *Run) slots() int {
	n := r.sched.Running()
	for _, s := range r.singles {
		if s.For != nil {
			n--
		}
	}
	return n
}

// waitsInTurn is for whom of those that it named an agent still waits in its turn, and why they are not through.
func (r *Run) waitsInTurn(s single) (waits []Wait) {
	for _, name := range s.For {
		if why := r.busyWith(name); why != "" {
			waits = append(waits, Wait{For: plan.ForAgents, Agent: name, Since: s.Since, Reason: why})
		}
	}
	return waits
}

// busyWith says why an agent of a team is not through, or "" when it is.
func (r *Run) busyWith(name string) string {
	i, ok := r.sched.Find(name) // an agent of a team is a task
	if !ok {
		return ""
	}
	s, t := r.singles[name], &r.tasks[i]
	held := ""
	if !s.Held.IsZero() {
		held = "it is paused, and "
	}
	switch {
	case s.Ended != nil:
		return ""
	case r.sched.Status(i) == swarm.Running && slices.ContainsFunc(r.Approvals, func(a Approval) bool { return a.Turn == t.Turn && a.Wish == nil }):
		return "in its turn " + t.Turn + " it waits for a person"
	case r.sched.Status(i) == swarm.Running && s.For != nil:
		return "in its turn " + t.Turn + " it waits for others"
	case r.sched.Status(i) == swarm.Running:
		return "its turn " + t.Turn + " runs"
	case r.boxes[name].wants():
		return held + "it has mail to read"
	case t.Good.Hash == "":
		return held + "it has no output yet"
	}
	return ""
}

// PausedFor says why the run has paused by itself, or "".
func (p *Picture) PausedFor() string {
	for _, n := range slices.Backward(p.Notices) {
		if plan.IsPausedFor(n.Reason) {
			return n.Reason
		}
	}
	return ""
}

// held says that nothing goes on because agents are paused which have something to do, or want what a person has to allow; or "".
func (p *Picture) held() string {
	var reason, wish string
	for i := range p.Tasks {
		t := &p.Tasks[i]
		wants := p.Kind != swarm.TeamRun || p.Mail[t.Agent].wants()
		switch {
		case t.Status == swarm.Running && len(t.Waits) == 0, t.Status == swarm.Pending:
			return ""
		case t.Status != swarm.Waiting:
		case t.Waits[0].For == plan.ForPause && t.Waits[0].Agent != "" && wants:
			if reason == "" {
				reason = plan.WaitsForPaused(t.Agent)
			}
		case t.wishes:
			wish = cmp.Or(wish, fmt.Sprintf("the run waits for a person: @%s asks, %s", t.Agent, t.Waits[0].Reason))
		case t.Waits[0].For == plan.ForRetry, t.Waits[0].For == plan.ForSlot:
			return ""
		}
	}
	return cmp.Or(reason, wish)
}
