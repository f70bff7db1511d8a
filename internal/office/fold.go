package office

import (
	"bytes"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/wish"
)

// A standing is where an agent stands, as far as others have to know it.
type standing struct {
	cursor  int64            // up to where its mail is consumed
	wanted  int64            // the newest envelope in its inbox that gives it a turn
	urgent  int64            // the newest that is not to wait
	turn    string           // the one that runs, or ""
	output  output           // of its last good turn
	trouble string           // why its last turn failed, when it did
	from    map[string]place // by sender: the newest envelope that gives it a turn
	starts  int              // how often it was started again after it had ended
	began   int64            // when that was last
	held    bool             // a person has paused it
	asks    map[string]bool  // what it waits for a person to allow
}

// An output is what came of a turn.
type output struct {
	turn, task string
	hash       swarm.Hash
	seq        int64 // of the turn's end
}

// A place is where an envelope stands, and the turn that sent it.
type place struct {
	seq  int64
	turn string
}

// agent is where somebody stands. The office is locked.
func (o *Office) agent(name string) *standing {
	s := o.agents[name]
	if s == nil {
		s = &standing{from: map[string]place{}, asks: map[string]bool{}}
		o.agents[name] = s
	}
	return s
}

// quiet says whether an agent has nothing to do.
func (s *standing) quiet() bool { return s.turn == "" && s.wanted <= s.cursor }

// forget makes the office one that has read nothing. It is locked.
func (o *Office) forget() {
	o.rules, o.wishes, o.agents, o.waits = mail.NewRules(), wish.NewTeam(), map[string]*standing{}, map[string][]string{}
	o.team = swarm.Team{Mode: swarm.AutoMode, Phase: swarm.ImplementationPhase}
	o.read, o.plans, o.grown, o.over, o.paused, o.digest = 0, nil, nil, false, false, nil
	if o.Shelf != nil {
		o.digest = &digest{kept: map[string]int64{}}
	}
}

// follow folds what the log has gained. The office is locked.
func (o *Office) follow() error {
	if o.rules == nil {
		if o.forget(); o.open() != nil {
			o.forget() // what cannot be used is not there: the log has it all
		}
	}
	for {
		events, err := o.Log.Read(o.read, page)
		if err != nil || len(events) == 0 {
			return err
		}
		for i := range events {
			if err := o.take(&events[i]); err != nil {
				return err
			}
			o.digest.note(o, &events[i])
			o.read = events[i].Seq
		}
	}
}

func (o *Office) take(e *swarm.Event) error {
	switch e.Kind {
	case swarm.RunStarted:
		if s, err := swarm.Body[swarm.RunStart](e); err == nil { // who shows runs complains about what cannot be read
			o.wishes.Work(s.Dir)
		}
	case swarm.PlanAdded:
		p, err := swarm.Body[swarm.Plan](e)
		if err != nil {
			return err
		}
		if o.rules.Add(&p); p.Team != nil {
			o.team = *p.Team
		}
		o.wishes.Add(&p)
		o.plans = append(o.plans, &p)
	case swarm.HandoffStored:
		return o.takeMail(e)
	case swarm.HandoffConsumed:
		in, err := swarm.Body[swarm.Inputs](e)
		if err != nil {
			return err
		}
		a := o.agent(e.Agent)
		a.cursor = max(a.cursor, in.Upto)
	case swarm.TurnStarted:
		o.agent(e.Agent).turn = e.Turn
	case swarm.TurnEnded:
		return o.takeEnd(e)
	case swarm.AgentEnded:
		end, err := swarm.Body[swarm.AgentEnd](e)
		if err != nil {
			return err
		}
		o.rules.End(e.Agent, end.Reason)
		o.wishes.End(e.Agent)
	case swarm.ApprovalAsked:
		a, err := swarm.Body[swarm.Approval](e)
		if err != nil {
			return err
		}
		if a.Wish != nil {
			o.wishes.Ask(a.ID, e.Agent, *a.Wish)
		}
	case swarm.RunEnded:
		o.over = true
	}
	return o.takeHold(e)
}

// takeHold folds what keeps agents from going on, or lets them.
func (o *Office) takeHold(e *swarm.Event) error {
	switch e.Kind {
	case swarm.AgentStarted: // what came before has gone back
		o.rules.Start(e.Agent)
		o.wishes.Start(e.Agent)
		a := o.agent(e.Agent)
		a.starts, a.began, a.cursor, a.trouble = a.starts+1, e.Seq, max(a.cursor, e.Seq), ""
	case swarm.AgentPaused, swarm.AgentResumed:
		o.agent(e.Agent).held = e.Kind == swarm.AgentPaused
	case swarm.BudgetSpent:
		o.last = "the budget is spent"
	case swarm.Control:
		if k, err := swarm.Body[swarm.ControlWord](e); err == nil && k.Word == swarm.WordClose { // who obeys control complains about what cannot be read
			o.last = "the run is being ended"
		}
	case swarm.RunPausing:
		o.paused = true
	case swarm.RunUnpaused:
		o.paused = false
	case swarm.ApprovalAsked, swarm.ApprovalAnswered:
		a, err := swarm.Body[swarm.Approval](e)
		if err != nil {
			return err
		}
		if e.Kind == swarm.ApprovalAsked && a.Wish == nil { // who has a wish goes on without it
			o.agent(e.Agent).asks[a.ID] = true
		} else {
			delete(o.agent(e.Agent).asks, a.ID)
		}
	}
	return nil
}

// starts is how often an agent was started again.
func (o *Office) starts(agent string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.agent(agent).starts
}

// How the bodies of envelopes begin.
var handoffs, signals = []byte(`{"kind":"handoff",`), []byte(`{"kind":"signal",`)

// priority stands in those that are urgent, and in few others.
var priority = []byte(`"` + mail.High + `"`)

func (o *Office) takeMail(e *swarm.Event) error {
	receiver := strings.TrimPrefix(e.To, swarm.ToAgent(""))
	a := o.agent(receiver)
	wakes := bytes.HasPrefix(e.Data, handoffs) // as we write it: a long log is not read word by word
	if !wakes && !bytes.HasPrefix(e.Data, signals) {
		env, err := swarm.Body[struct {
			Kind swarm.EnvelopeKind `json:"kind"`
		}](e)
		if err != nil {
			return err
		}
		wakes = env.Kind == swarm.Handoff
	}
	if wakes {
		a.wanted, a.from[e.Agent] = e.Seq, place{e.Seq, e.Turn}
	}
	if o.Shelf == nil { // a person's office has one, and asks nobody for leave to answer
		if err := o.takeQuestion(e, receiver); err != nil {
			return err
		}
	}
	switch e.Agent {
	case swarm.User:
		o.rules.Hear(receiver)
	case swarm.Orchestrator:
		id, ok, err := AnswerTo(e)
		if ok {
			o.wishes.Answer(id)
			o.grown = append(o.grown, len(o.plans))
		}
		if err != nil {
			return err
		}
	}
	if e.Agent != swarm.User && !bytes.Contains(e.Data, priority) {
		return nil
	}
	whole, err := swarm.Body[swarm.Envelope](e)
	if err != nil {
		return err
	}
	if mail.Urgent(whole) {
		a.urgent = e.Seq
	}
	return nil
}

func (o *Office) takeEnd(e *swarm.Event) error {
	end, err := swarm.Body[swarm.CallEnd](e)
	if err != nil {
		return err
	}
	a := o.agent(e.Agent)
	if a.turn == e.Turn {
		a.turn = ""
		clear(a.asks)
	}
	switch end.Status {
	case swarm.CallOK:
		a.output, a.trouble = output{e.Turn, e.Task, end.Output, e.Seq}, ""
		if end.Done && e.Agent == o.team.Lead {
			o.last = e.Agent + " has reported that all is done"
		}
	case swarm.CallFailed:
		a.trouble = end.Reason
	}
	return nil
}
