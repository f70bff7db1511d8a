package plan

import (
	"slices"
	"time"

	"swarm"
)

// A Team is where agents stand that live on and hand work to each other: who has mail, who has a turn,
// who waits for whom, and who owes whom a reply. It is to a team what a [Schedule] is to a pipeline, and
// belongs to one goroutine like it.
//
// Everything that changes it is a [Fact] of the run's log. The loop that drives a team applies what it
// reads and what it tells, and asks Next what to do. A reader of the log applies the same facts, decoded,
// to a Team of its own and asks Standing. The two agree whenever the reader has read what the loop told,
// except that the loop knows of a turn from the moment it gave it, and the reader from its start on.
type Team struct {
	TeamState
	at    map[string]int // members by name
	owed  int64          // the newest envelope by which the run itself gave somebody a turn
	dealt int            // requests that the loop has dealt with
}

// TeamState is the part of a Team that a reader may store and restore.
type TeamState struct {
	Rules   swarm.Team `json:"rules"`
	Limit   int        `json:"limit,omitempty"` // turns at once; 0 = no limit
	Members []Member   `json:"members,omitempty"`
	Owed    []Owed     `json:"owed,omitempty"` // replies, the oldest question first
	Open    []Request  `json:"open,omitempty"` // requests of agents that nobody has answered, the oldest first
	// Answered are requests that were answered, and that the loop has not dealt with; a reader does not know when it has.
	Answered []Request `json:"answered,omitempty"`
	PauseAt  time.Time `json:"pause_at,omitzero"` // since when the run is paused; zero = it is not
	Closing  Closing   `json:"closing,omitempty"` // why no turn starts any more
	Report   string    `json:"report,omitempty"`  // what the lead reported as done
	Ready    bool      `json:"ready,omitempty"`   // an owner has taken the run up: what the log held before is known
	Seen     int64     `json:"seen"`              // the newest record applied,
	Now      time.Time `json:"now,omitzero"`      // and its time
	Planned  bool      `json:"planned,omitempty"` // a plan was added
}

// A Member is one agent of a team.
type Member struct {
	Name  string `json:"name"`
	Ref   string `json:"ref,omitempty"` // the key of the plan that it came with
	State State  `json:"state"`

	Turn    swarm.TurnID `json:"turn,omitempty"`    // the one that it has, or had last
	Turns   int          `json:"turns,omitempty"`   // begun so far, without repeated attempts
	Attempt int          `json:"attempt,omitempty"` // of the turn that is not through; 0 = its last one is
	Tries   int          `json:"tries,omitempty"`   // attempts of it that failed
	Trouble string       `json:"trouble,omitempty"` // why the last of them did
	Retry   time.Time    `json:"retry,omitzero"`    // when the next one is due
	Made    bool         `json:"made,omitempty"`    // a turn of it went well, and has an output

	Mail   int64     `json:"mail,omitempty"`  // the newest envelope that wants a turn
	Read   int64     `json:"read,omitempty"`  // up to where its mail is consumed
	Queued time.Time `json:"queued,omitzero"` // since when mail wants a turn
	Began  int64     `json:"began,omitempty"` // the newest record when its turn began
	Given  int64     `json:"given,omitempty"` // the newest envelope that wanted a turn then

	Asks    []string  `json:"asks,omitempty"`     // in its turn: approvals that it waits for
	For     []string  `json:"for,omitempty"`      // in its turn: agents that it waits for
	WaitSeq int64     `json:"wait_seq,omitempty"` // with which record that began,
	Since   time.Time `json:"since,omitzero"`     // and since when
	PauseAt time.Time `json:"pause_at,omitzero"`  // since when a person has it paused; zero = it is not

	Leave  Leave           `json:"leave,omitempty"`  // what becomes of it when its turn ends
	End    *swarm.AgentEnd `json:"end,omitempty"`    // why it has no turn any more
	Gone   int64           `json:"gone,omitempty"`   // mail up to this one went back when it ended
	Starts int             `json:"starts,omitempty"` // how often it was started again
	Over   swarm.Status    `json:"over,omitempty"`   // how its work ended with the run
}

// A State is what a member does.
type State string

// The states. A member that is paused in its turn finishes the turn first.
const (
	MemberIdle    State = "idle"    // it has no turn, and no mail that wants one
	MemberDue     State = "due"     // mail wants a turn of it
	MemberRunning State = "running" // it has a turn
	MemberWaiting State = "waiting" // in its turn it waits for others, and needs no slot
	MemberPaused  State = "paused"  // it has no turn until a person resumes it
	MemberEnded   State = "ended"   // it has no turn any more, and gets no mail
)

// A Leave is what becomes of a member when it has no turn.
type Leave string

// What can become of it.
const (
	Stays    Leave = ""
	Leaves   Leave = "leaves"   // a person has cancelled it
	Restarts Leave = "restarts" // and started it again
)

// A Closing is why no turn of a team starts any more.
type Closing string

// Why that can be.
const (
	ClosedByLead   Closing = "done"      // the lead has reported that all is done
	ClosedByPerson Closing = "closed"    // a person ends the run
	ClosedByCancel Closing = "cancelled" // a person has cancelled it
	ClosedByBudget Closing = "spent"     // the budget is spent
	ClosedByLoss   Closing = "lost"      // the lead has ended, and without it a team is lost
	ClosedByStray  Closing = "astray"    // a turn was not the one that was asked for, and no other can be trusted
	ClosedByStall  Closing = "stalled"   // it made no progress, and nobody is there to decide
)

// An Owed is a reply that somebody wants and that has not come.
type Owed struct {
	Mail
	Seq      int64     `json:"seq"`
	Since    time.Time `json:"since"`
	Reminded bool      `json:"reminded,omitempty"`
}

// A Request is something that an agent wants of its run: another agent, or another edge.
type Request struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
}

// NewTeam makes a team of which no fact is known yet.
func NewTeam() *Team { return &Team{at: map[string]int{}} }

// RestoreTeam makes the team again that was stored with its state. Only a reader's can be.
func RestoreTeam(s TeamState) *Team {
	t := &Team{TeamState: s, at: make(map[string]int, len(s.Members))}
	for i, m := range s.Members {
		t.at[m.Name] = i
	}
	return t
}

// Find is the number of the member with this name.
func (t *Team) Find(name string) (int, bool) {
	i, ok := t.at[name]
	return i, ok
}

// Member is the member with this name, or nil. It is read and not changed.
func (t *Team) Member(name string) *Member {
	if i, ok := t.at[name]; ok {
		return &t.Members[i]
	}
	return nil
}

// add lets the agents of a plan, or of what it grew by, join.
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
			t.Members = append(t.Members, Member{Name: a.Name, Ref: ref, State: MemberIdle})
		}
	}
}

// wants says whether a member has mail that wants a turn.
func (m *Member) wants() bool { return m.Mail > m.Read && m.End == nil }

// InTurn says whether a member has a turn, perhaps to wait for others in it.
func (m *Member) InTurn() bool { return m.State == MemberRunning || m.State == MemberWaiting }

// Quiet says whether a member has nothing to do.
func (m *Member) Quiet() bool { return !m.InTurn() && !m.wants() }

// rest gives a member that has no turn the state that follows from what is known of it.
func (m *Member) rest() {
	switch {
	case m.End != nil:
		m.State = MemberEnded
	case !m.PauseAt.IsZero():
		m.State = MemberPaused
	case m.wants():
		m.State = MemberDue
	default:
		m.State = MemberIdle
	}
}

// settle is rest for one that may have a turn.
func (m *Member) settle() {
	if !m.InTurn() {
		m.rest()
	}
}

// consume notes that the mail up to a number is read.
func (m *Member) consume(upto int64) {
	if m.Read = max(m.Read, upto); m.Mail <= m.Read {
		m.Queued = time.Time{}
	}
	m.settle()
}

// begin notes that a member's turn has begun.
func (m *Member) begin(turn swarm.TurnID, seq int64) {
	m.State, m.Turn, m.Began, m.Given, m.Retry = MemberRunning, turn, seq, m.Mail, time.Time{}
	m.Asks, m.For, m.Since = nil, nil, time.Time{}
	_, m.Turns, m.Attempt = splitTurn(turn)
}

// nextTurn is the id of the turn that it would begin now.
func (m *Member) nextTurn() swarm.TurnID {
	if m.Attempt == 0 {
		return swarm.NewTurnID(m.Name, m.Turns+1, 1)
	}
	return swarm.NewTurnID(m.Name, m.Turns, m.Attempt+1)
}

// Running is how many turns run that need a slot: a member that waits for others needs none.
func (t *Team) Running() (n int) {
	for i := range t.Members {
		if t.Members[i].State == MemberRunning {
			n++
		}
	}
	return n
}

// inTurn says whether anybody has a turn.
func (t *Team) inTurn() bool {
	return slices.ContainsFunc(t.Members, func(m Member) bool { return m.InTurn() })
}

// Paused says whether an agent is paused, and whether it is a member that could be.
func (t *Team) Paused(agent string) (paused, known bool) {
	m := t.Member(agent)
	return m != nil && !m.PauseAt.IsZero(), m != nil
}

// Wrote notes the number of an envelope that the run itself wrote. Until it has come by, it cannot be
// said of anybody that there is no mail for it.
func (t *Team) Wrote(seq int64) { t.owed = max(t.owed, seq) }

// heard says whether all has come by that the run itself wrote.
func (t *Team) heard() bool { return t.Seen >= t.owed }

// Returned notes that the mail of an agent up to a number went back: it does not read it when it is
// started again.
func (t *Team) Returned(agent string, upto int64) {
	if m := t.Member(agent); m != nil {
		m.Gone = max(m.Gone, upto)
	}
}

// Dealt is how many requests were dealt with: a turn is told, because the team may have grown by them.
func (t *Team) Dealt() int { return t.dealt }
