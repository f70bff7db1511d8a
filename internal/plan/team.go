package plan

import (
	"time"

	"swarm"
)

// A Team is the state of the agents of a team: their mail, turns and waits, and the replies that
// they owe. It is to a team what a [Schedule] is to a pipeline. One goroutine owns it, so it has no
// mutex.
//
// Only a [Fact] of the run's log changes it. The loop that drives a team applies the facts it reads
// and appends, and asks Next what to do. A reader of the log applies the same facts to a Team of
// its own and asks Standing. Both agree once the reader has read the same facts. There is one
// exception: the loop knows of a turn, or of another attempt of an action, when it starts it. The
// reader knows of it when the start of the turn, or the end of the action, is in the log.
type Team struct {
	TeamState
	at    map[string]int // members by name
	owed  int64          // the newest envelope of the run itself that gives a turn
	dealt int            // number of growth requests that the loop has handled

	freed    freed  // of the loop: the newest end of a turn that may have made room in the budget
	assigned string // the entry of the task list for which the loop has added a worker last
	divided  bool   // the loop has begun to add the subtasks that the supervisor has named
}

// TeamState is the part of a Team that a reader may store and restore.
type TeamState struct {
	Rules   swarm.Team `json:"rules"`
	Limit   int        `json:"limit,omitempty"` // concurrent turns; 0 = no limit
	Members []Member   `json:"members,omitempty"`
	Owed    []Owed     `json:"owed,omitempty"` // replies, the oldest question first
	Open    []Request  `json:"open,omitempty"` // growth requests without an answer, the oldest first
	// Answered are growth requests with an answer that the loop has not handled. A reader does not
	// know when the loop handles one.
	Answered []Request `json:"answered,omitempty"`
	PauseAt  time.Time `json:"pause_at,omitzero"` // when the run was paused; zero = it is not
	Closing  Closing   `json:"closing,omitempty"` // why no turn starts any more
	Report   string    `json:"report,omitempty"`  // the lead's report
	Ready    bool      `json:"ready,omitempty"`   // an owner drives the run, and has read the log up to its start
	Seen     int64     `json:"seen"`              // sequence number of the newest fact
	Now      time.Time `json:"now,omitzero"`      // time of the newest fact
	Planned  bool      `json:"planned,omitempty"` // a plan was added
	Limits   Limits    `json:"limits,omitempty"`  // of providers, that are reached
	Check    Check     `json:"check,omitzero"`    // of the goal
	// Swarm is set if the team is a swarm.
	Swarm *SwarmState `json:"swarm,omitempty"`
}

// A Member is one agent of a team.
type Member struct {
	Name  string `json:"name"`
	Ref   string `json:"ref,omitempty"` // key of the plan that it came with
	State State  `json:"state"`

	Turn    swarm.TurnID `json:"turn,omitempty"`    // the current turn, or the last
	Turns   int          `json:"turns,omitempty"`   // turns begun so far, without retries
	Attempt int          `json:"attempt,omitempty"` // of the turn that has not succeeded yet; 0 = the last one has
	Tries   int          `json:"tries,omitempty"`   // failed attempts of that turn
	Trouble string       `json:"trouble,omitempty"` // why the last attempt failed
	Retry   time.Time    `json:"retry,omitzero"`    // when the next attempt is due
	Made    bool         `json:"made,omitempty"`    // a turn has succeeded with an output

	Mail   int64     `json:"mail,omitempty"`  // the newest envelope that gives it a turn
	Read   int64     `json:"read,omitempty"`  // sequence number up to which its mail is consumed
	Queued time.Time `json:"queued,omitzero"` // since when it has mail that gives it a turn
	Began  int64     `json:"began,omitempty"` // the newest fact when its turn began

	Asks    []string  `json:"asks,omitempty"`     // approvals that its turn waits for
	For     []string  `json:"for,omitempty"`      // agents that its turn waits for
	WaitSeq int64     `json:"wait_seq,omitempty"` // sequence number of that wait
	Since   time.Time `json:"since,omitzero"`     // when that wait began
	PauseAt time.Time `json:"pause_at,omitzero"`  // when a person paused it; zero = it is not paused

	Route   Route     `json:"route,omitzero"`
	HeldAt  time.Time `json:"limit_at,omitzero"` // since when a limit, or the lack of room in the budget, keeps it from a turn; zero = none does
	Limited time.Time `json:"limited,omitzero"`  // the first of the attempts of its turn that a limit ended; zero = none
	Using   string    `json:"-"`                 // of the loop: the provider of its turn; "" = its own
	Crowded int64     `json:"crowded,omitempty"` // sequence number of the end of its last attempt, if the budget had no room for that attempt; 0 = it had room
	Called  bool      `json:"called,omitempty"`  // another turn has ended since, so this member tries again before any other

	Leave  Leave           `json:"leave,omitempty"`  // what happens to it when its turn ends
	End    *swarm.AgentEnd `json:"end,omitempty"`    // why it gets no turn any more
	Gone   int64           `json:"gone,omitempty"`   // sequence number up to which its mail was returned when it ended
	Starts int             `json:"starts,omitempty"` // number of restarts
	Over   swarm.Status    `json:"over,omitempty"`   // how its work ended with the run

	Want   Want    `json:"want,omitempty"`   // what its next turn is for
	Effort *Effort `json:"effort,omitempty"` // of a worker of a swarm
}

// A State is the state of a member.
type State string

// The states. A member that is paused during its turn finishes the turn first.
const (
	MemberIdle    State = "idle"    // it has no turn, and no mail that gives one
	MemberDue     State = "due"     // it has mail that gives it a turn
	MemberRunning State = "running" // it has a turn
	MemberWaiting State = "waiting" // its turn waits for other agents, and needs no slot
	MemberCut     State = "cut"     // its turn was cut with the process that ran it, and starts again in a slot
	MemberPaused  State = "paused"  // it gets no turn until a person resumes it
	MemberEnded   State = "ended"   // it gets no turn and no mail any more
)

// A Leave says what happens to a member when its turn has ended.
type Leave string

// The values of Leave.
const (
	Stays    Leave = ""
	Leaves   Leave = "leaves"   // a person has cancelled it
	Restarts Leave = "restarts" // a person has started it again
)

// A Closing is the reason why no turn of a team starts any more.
type Closing string

// The reasons.
const (
	ClosedByLead   Closing = "done"      // the lead has reported that all is done
	ClosedByPerson Closing = "closed"    // a person ends the run
	ClosedByCancel Closing = "cancelled" // a person has cancelled it
	ClosedByBudget Closing = "spent"     // the budget is spent
	ClosedByLoss   Closing = "lost"      // the lead has ended, and a team cannot go on without it
	ClosedByStray  Closing = "astray"    // a turn does not match the call, so no further turn can be trusted
	ClosedByCheck  Closing = "unmet"     // the goal was checked too often without success
	ClosedByStall  Closing = "stalled"   // it made no progress, and no person is there to decide
)

// An Owed is a reply that was asked for and has not come.
type Owed struct {
	Mail
	Seq      int64     `json:"seq"`
	Since    time.Time `json:"since"`
	Reminded bool      `json:"reminded,omitempty"`
}

// A Request is an agent's growth request.
type Request struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
}

// NewTeam makes an empty team.
func NewTeam() *Team { return &Team{at: map[string]int{}} }

// RestoreTeam restores a reader's team from its stored state. The loop's team has unexported state,
// so it cannot be restored.
func RestoreTeam(s TeamState) *Team {
	t := &Team{TeamState: s, at: make(map[string]int, len(s.Members))}
	for i, m := range s.Members {
		t.at[m.Name] = i
	}
	return t
}

// Find returns the index of the member with this name.
func (t *Team) Find(name string) (int, bool) {
	i, ok := t.at[name]
	return i, ok
}

// Member returns the member with this name, or nil. The caller must not change it.
func (t *Team) Member(name string) *Member {
	if i, ok := t.at[name]; ok {
		return &t.Members[i]
	}
	return nil
}

// add adds the agents of a plan.
func (t *Team) add(p *swarm.Plan, ref string) {
	if !t.Planned {
		t.Planned, t.Limit = true, p.MaxParallel
	}
	if p.Team != nil {
		t.Rules = *p.Team
	}
	for _, a := range p.Agents {
		if _, known := t.at[a.Name]; !known {
			t.at[a.Name] = len(t.Members)
			t.Members = append(t.Members, Member{Name: a.Name, Ref: ref, State: MemberIdle, Route: RouteOf(&a)})
		}
	}
	t.addSubtasks(p)
	t.summon()
	if len(t.Limits) > 0 {
		t.holdBack()
	}
}

// wants says whether a member has mail that gives it a turn, or is wanted for something else.
func (m *Member) wants() bool {
	return m.Want == WantReview || (m.Mail > m.Read || m.Want != WantMail) && m.End == nil
}

// InTurn says whether a member has a turn, even if the turn waits for other agents or for a slot.
func (m *Member) InTurn() bool {
	return m.State == MemberRunning || m.State == MemberWaiting || m.State == MemberCut
}

// Quiet says whether a member has neither a turn nor mail for one.
func (m *Member) Quiet() bool { return !m.InTurn() && !m.wants() }

// rest sets the state of a member that has no turn, from its other fields.
func (m *Member) rest() {
	switch {
	case m.End != nil && m.Want != WantReview:
		m.State = MemberEnded
	case !m.PauseAt.IsZero():
		m.State = MemberPaused
	case m.wants():
		m.State = MemberDue
	default:
		m.State = MemberIdle
	}
}

// settle calls rest for a member without a turn.
func (m *Member) settle() {
	if !m.InTurn() {
		m.rest()
	}
}

// consume records that the mail up to a sequence number is read.
func (m *Member) consume(upto int64) {
	if m.Read = max(m.Read, upto); m.Mail <= m.Read {
		m.Queued = time.Time{}
	}
	m.settle()
}

// begin records that a member's turn has begun.
func (m *Member) begin(turn swarm.TurnID, seq int64) {
	m.State, m.Turn, m.Began, m.Retry = MemberRunning, turn, seq, time.Time{}
	m.Crowded = 0
	m.Asks, m.For, m.Since = nil, nil, time.Time{}
	_, m.Turns, m.Attempt = SplitTurn(turn)
}

// nextTurn is the id of the turn that would begin now.
func (m *Member) nextTurn() swarm.TurnID {
	if m.Attempt == 0 {
		return swarm.NewTurnID(m.Name, m.Turns+1, 1)
	}
	return swarm.NewTurnID(m.Name, m.Turns, m.Attempt+1)
}

// Running is the number of turns that need a slot, and of checks. A turn that waits for other agents
// needs none.
func (t *Team) Running() (n int) {
	for i := range t.Members {
		if s := t.Members[i].State; s == MemberRunning || s == MemberCut {
			n++
		}
	}
	if t.Check.Running {
		n++
	}
	return n
}

// inTurn says whether any member has a turn.
func (t *Team) inTurn() bool { return t.anyMember((*Member).InTurn) }

// anyMember says whether something is true of any member. It copies none: a team may have thousands.
func (t *Team) anyMember(is func(*Member) bool) bool {
	for i := range t.Members {
		if is(&t.Members[i]) {
			return true
		}
	}
	return false
}

// Paused says whether an agent is paused, and whether it is a member.
func (t *Team) Paused(agent string) (paused, known bool) {
	m := t.Member(agent)
	return m != nil && !m.PauseAt.IsZero(), m != nil
}

// Wrote records the sequence number of an envelope that the run itself wrote. Until the team has
// seen it, an idle agent may still have mail on its way.
func (t *Team) Wrote(seq int64) { t.owed = max(t.owed, seq) }

// heard says whether the team has seen all envelopes that the run itself wrote.
func (t *Team) heard() bool { return t.Seen >= t.owed }

// Returned records that the mail of an agent up to a sequence number was returned. A restart does
// not read that mail.
func (t *Team) Returned(agent string, upto int64) {
	if m := t.Member(agent); m != nil {
		m.Gone = max(m.Gone, upto)
	}
}

// Dealt is the number of growth requests that were handled. A turn's prompt describes the team
// after that many.
func (t *Team) Dealt() int { return t.dealt }
