package plan

import (
	"slices"
	"time"

	"swarm"
)

// Supervisor is the member of a swarm that divides the query and writes the answer.
const Supervisor = swarm.Supervisor

// A Want is what a member's next turn is for, if not for its mail.
type Want string

// The wants. Only a swarm has them.
const (
	WantMail     Want = ""         // a member of a team has a turn when it has mail
	WantSubtasks Want = "subtasks" // the supervisor divides the query
	WantAction   Want = "action"   // a worker takes its next action
	WantReview   Want = "review"   // a member of a council judges the answers of the others
	WantReplan   Want = "replan"   // the supervisor looks at what came of the subtasks, and may add others
	WantAnswer   Want = "answer"   // the supervisor makes one answer of all results
	WantResults  Want = "results"  // the results are the answer as they are; no model is asked
)

// MaxTokens is the most tokens that a model may answer with; 0 = any number, or no model is asked.
// The seed of swarm mode has the first figure.
func (w Want) MaxTokens() int64 {
	switch w {
	case WantAction, WantReview:
		return 2048
	case WantSubtasks, WantReplan, WantAnswer:
		return 4096
	}
	return 0
}

// A SwarmState is what a team knows beside its members if it is a swarm.
type SwarmState struct {
	Rules    swarm.Swarm  `json:"rules"`
	Budget   swarm.Budget `json:"budget,omitzero"`
	Divided  bool         `json:"divided,omitempty"`  // the query has subtasks
	Draining bool         `json:"draining,omitempty"` // the budget is spent: workers end, and the answer is made of what is there
	Closed   bool         `json:"closed,omitempty"`   // a person ends the work, and the answer is made of what is there
	Answer   swarm.TurnID `json:"answer,omitempty"`   // the turn that holds the answer
	Dividing bool         `json:"dividing,omitempty"` // the supervisor has named subtasks, and the plan with them is not there yet
	By       swarm.TurnID `json:"by,omitempty"`       // the turn that says how; "" = it could not, and one worker gets the whole query
	Growing  []string     `json:"growing,omitempty"`  // growth requests, until the mail that answers them: a new worker may come of each
	Denial   string       `json:"denial,omitempty"`   // why a person has denied the plan, so that the run ends without work; "" = it is not denied
	Asked    int          `json:"asked,omitempty"`    // questions to a person whether agents work on a plan
	Asking   int          `json:"asking,omitempty"`   // workers with those that the open question is about; 0 = none is open
	Approved int          `json:"approved,omitempty"` // workers that a person has decided about
	Dropped  bool         `json:"dropped,omitempty"`  // a person has taken a subtask out of a plan
	Without  string       `json:"without,omitempty"`  // why no model makes one answer of the results; "" = one does
	Lost     []string     `json:"lost,omitempty"`     // workers that ended other than done, until the supervisor knows of it
	Weighed  []string     `json:"weighed,omitempty"`  // of a fork: workers of whose end the supervisor knows, though they have not ended yet
	Mail     int64        `json:"mail,omitempty"`     // the newest envelope for the supervisor from an agent or a person
	Tasks    []Task       `json:"tasks,omitempty"`    // the entries of the task list that agents have added
	Fixed    bool         `json:"fixed,omitempty"`    // the supervisor could not plan anew, and is asked no more
	Since    time.Time    `json:"since,omitzero"`     // when the supervisor's turn began, with all its attempts; zero = it has none
	Delays   int          `json:"delays,omitempty"`   // failures in a row of that turn that cost nothing and may pass by themselves
}

// An Effort is the part of a member's state that only a worker of a swarm has.
type Effort struct {
	Subtask string        `json:"subtask"`
	Needs   []string      `json:"needs,omitempty"`   // agents that must have ended before it begins
	Began   time.Time     `json:"began,omitzero"`    // its first turn; once it has ended, the turn in which it judges others
	Idle    int           `json:"idle,omitempty"`    // actions in a row that used no tool
	Errors  int           `json:"errors,omitempty"`  // tool calls in a row that failed for good
	Delays  int           `json:"delays,omitempty"`  // failures in a row that may pass by themselves
	Unrun   int           `json:"unrun,omitempty"`   // iterations that were refused before they began
	Outcome swarm.Outcome `json:"outcome,omitempty"` // how it ends; the loop ends it then
	Why     string        `json:"why,omitempty"`     // in words
	Last    swarm.TurnID  `json:"last,omitempty"`    // the last turn of its work, once it has ended
	Ballot  *Ballot       `json:"ballot,omitempty"`  // of a council: how it has judged the others

	Next  *swarm.Action `json:"next,omitempty"`  // the action that its last turn asks for, until it is taken
	Tries int           `json:"tries,omitempty"` // attempts of that action so far

	Denied  bool `json:"denied,omitempty"`  // a person does not want it to work; Why has the reason
	Dropped bool `json:"dropped,omitempty"` // a person has taken its subtask out of the plan

	begun bool // the loop has begun that action
}

// addSubtasks makes the members of a plan's subtasks workers.
func (t *Team) addSubtasks(p *swarm.Plan) {
	if p.Swarm == nil {
		return
	}
	if t.Swarm == nil {
		t.Swarm = &SwarmState{Rules: *p.Swarm, Budget: p.Budget}
		t.Swarm.Rules.Subtasks = nil
	}
	if p.Swarm.By == t.Swarm.By {
		t.Swarm.Dividing = false
	}
	t.addTasks(p)
	if len(p.Swarm.Subtasks) == 0 {
		return
	}
	t.Swarm.Divided = true
	by := map[string]string{}
	for i := range t.Members {
		if e := t.Members[i].Effort; e != nil {
			by[e.Subtask] = t.Members[i].Name
		}
	}
	for _, e := range t.Swarm.Tasks {
		by[e.ID] = e.Agent
	}
	for _, s := range p.Swarm.Subtasks {
		by[s.ID] = s.Agent
	}
	for _, s := range p.Swarm.Subtasks {
		m := t.Member(s.Agent)
		if m == nil {
			continue
		}
		m.Effort = &Effort{Subtask: s.ID}
		for _, need := range s.DependsOn {
			if agent := by[need]; agent != "" {
				m.Effort.Needs = append(m.Effort.Needs, agent)
			}
		}
	}
}

// summon says what each member of a swarm is wanted for. Anything that adds a member, or ends one,
// may change it.
func (t *Team) summon() {
	if t.Swarm == nil {
		return
	}
	workers, working, results := 0, 0, 0
	var last *Member
	for i := range t.Members {
		switch m := &t.Members[i]; {
		case m.Effort == nil:
			continue
		case m.End == nil:
			working++
		case m.answered():
			results, last = results+1, m
		}
		workers++
	}
	nth, reviewing := 0, 0
	for i := range t.Members {
		m := &t.Members[i]
		if m.Effort != nil {
			nth++
		}
		switch {
		case m.Effort == nil || m.InTurn() && m.End != nil: // a turn has one purpose
		case m.End == nil && t.mayWork(nth) && !slices.ContainsFunc(m.Effort.Needs, t.works):
			m.Want = WantAction
		case working == 0 && results > 1 && t.reviews(m):
			m.Want = WantReview
		default:
			m.Want = WantMail
		}
		if m.Reviewing() {
			reviewing++
		}
		if m.Effort != nil {
			m.settle()
		}
	}
	m := t.Member(Supervisor)
	if m != nil && !m.InTurn() && m.Want == WantReplan && t.Swarm.Draining {
		t.giveUp() // what is left of the budget is for the answer
	}
	listed := m != nil && m.Want == WantAnswer && t.Swarm.Without != ""
	if m == nil || m.InTurn() || m.Attempt > 0 && !listed { // a turn, and each attempt of it, has one purpose
		return
	}
	m.Want = WantMail
	switch s := t.Swarm; {
	case !s.Divided && !s.Dividing:
		m.Want = WantSubtasks
	case s.Dividing || s.Answer != "":
	case t.replans(m, workers):
		m.Want = WantReplan
	case working > 0 || reviewing > 0 || len(s.Growing) > 0 && !s.Draining || t.assignable() != nil:
	case results == 0:
		t.close(ClosedByLoss)
	case t.alone(workers, results) && last.End.Outcome == swarm.OutcomeDone: // its result is the answer
		s.Answer = last.Effort.Last
	case t.alone(workers, results) || s.Without != "":
		m.Want = WantResults
	default:
		m.Want = WantAnswer
	}
	m.settle()
}

// alone says whether the result of one worker is all that there is to answer from: no other worked on
// the query, or in a council no other has a result.
func (t *Team) alone(workers, results int) bool {
	return workers == 1 || results == 1 && t.Swarm.Rules.IsCouncil()
}

// replans says whether the supervisor has a reason to plan anew: a worker has failed while another may
// be added, or somebody has written to it.
func (t *Team) replans(m *Member, workers int) bool {
	s := t.Swarm
	room := t.Rules.MaxAgents <= 0 || workers < t.Rules.MaxAgents
	return s.Rules.Replan && !s.Draining && !s.Fixed && !t.unapproved() && s.Without == "" && (len(s.Lost) > 0 && room || s.Mail > m.Read)
}

// lose records how a worker ended, for the supervisor.
func (t *Team) lose(m *Member) {
	if t.Swarm == nil || m.Effort == nil || m.End.Outcome == swarm.OutcomeDone || m.Effort.Unwanted() {
		return
	}
	if i := slices.Index(t.Swarm.Weighed, m.Name); i >= 0 {
		t.Swarm.Weighed = slices.Delete(t.Swarm.Weighed, i, i+1)
		return
	}
	t.Swarm.Lost = append(t.Swarm.Lost, m.Name)
}

// regain records that a worker is started again.
func (t *Team) regain(name string) {
	if t.Swarm != nil {
		t.Swarm.Lost = slices.DeleteFunc(t.Swarm.Lost, func(lost string) bool { return lost == name })
	}
}

// replanned records what the supervisor has said when it planned anew. A fork has all mail at once, so a turn
// that is kept may come before the ends of workers that it has weighed.
func (t *Team) replanned(turn swarm.TurnID, a *swarm.Action, kept bool) {
	for _, name := range a.Weighed {
		if m := t.Member(name); kept && m != nil && m.End == nil && !slices.Contains(t.Swarm.Weighed, name) {
			t.Swarm.Weighed = append(t.Swarm.Weighed, name)
		}
	}
	t.Swarm.Lost = slices.DeleteFunc(t.Swarm.Lost, func(name string) bool { return slices.Contains(a.Weighed, name) })
	if a.Taken { // it changes nothing
		t.summon()
		return
	}
	t.divide(turn)
}

// giveUp records that a turn of the supervisor has failed for good, and the swarm goes on without.
func (t *Team) giveUp() {
	if m := t.Member(Supervisor); m != nil {
		m.Attempt, m.Tries, m.Retry = 0, 0, time.Time{}
	}
	t.Swarm.Delays, t.Swarm.Since = 0, time.Time{}
}

// grow records a growth request, whose answer may bring a worker.
func (s *SwarmState) grow(request string) {
	if s != nil {
		s.Growing = append(s.Growing, request)
	}
}

// grown records the mail of the supervisor that answers a growth request. The plan with the new worker
// comes before it.
func (t *Team) grown(m *Mail) {
	if t.Swarm == nil || m.From != Supervisor || m.Turn != "" {
		return
	}
	before := len(t.Swarm.Growing)
	t.Swarm.Growing = slices.DeleteFunc(t.Swarm.Growing, func(id string) bool { return id == m.Answers })
	if len(t.Swarm.Growing) < before {
		t.summon()
	}
}

// works says whether an agent has not ended.
func (t *Team) works(agent string) bool {
	m := t.Member(agent)
	return m != nil && m.End == nil
}

// hasRoom says whether a worker may begin: so many have begun and not ended. Others go on.
func (t *Team) hasRoom(m *Member) bool {
	if m.Effort == nil || !m.Effort.Began.IsZero() || t.Swarm.Rules.Workers <= 0 {
		return true
	}
	busy := 0
	for i := range t.Members {
		if o := &t.Members[i]; o.Effort != nil && o.End == nil && !o.Effort.Began.IsZero() {
			busy++
		}
	}
	return busy < t.Swarm.Rules.Workers
}

// divide records that the supervisor has named subtasks, or could not.
func (t *Team) divide(by swarm.TurnID) {
	t.Swarm.Dividing, t.Swarm.By, t.divided = true, by, false
	t.summon()
}

// division returns the step that adds the subtasks, once.
func (t *Team) division() []TeamStep {
	if t.Swarm == nil || t.Closing != "" || !t.Swarm.Dividing || t.divided {
		return nil
	}
	t.divided = true
	return []TeamStep{{Kind: Divide, Agent: Supervisor, Turn: t.Swarm.By}}
}

// actions returns the steps that take the actions of turns that have ended.
func (t *Team) actions() (steps []TeamStep) {
	for i := range t.Members {
		if m := &t.Members[i]; m.acting() && !m.Effort.begun {
			steps = append(steps, m.takeAction())
		}
	}
	return steps
}

// acting says whether a member's action is being taken.
func (m *Member) acting() bool {
	return m.State == MemberRunning && m.Effort != nil && m.Effort.Next != nil
}

// takeAction returns the step that takes the action of a worker's last turn.
func (m *Member) takeAction() TeamStep {
	m.Effort.begun = true
	m.State, m.Retry = MemberRunning, time.Time{}
	return TeamStep{Kind: TakeAction, Agent: m.Name, Turn: m.Turn, Try: m.Effort.Tries + 1}
}

// startClock records when a worker's first turn began, or the first attempt of the supervisor's turn.
func (t *Team) startClock(m *Member) {
	switch {
	case t.Swarm == nil:
	case m.Effort != nil && m.Effort.Began.IsZero():
		m.Effort.Began = t.Now
	case m.Effort == nil && t.Swarm.Since.IsZero():
		t.Swarm.Since = t.Now
	}
}

// restart makes a worker begin again that a person has started again.
func (e *Effort) restart() {
	if e != nil {
		*e = Effort{Subtask: e.Subtask, Needs: e.Needs}
	}
}

// hasAnswer says whether the answer is there. A team that is no swarm makes none.
func (t *Team) hasAnswer() bool { return t.Swarm == nil || t.Swarm.Answer != "" }
