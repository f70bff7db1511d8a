package plan

import (
	"strings"

	"swarm"
	"swarm/internal/excerpt"
)

// Standing is the state of the i-th member as it is shown. Its turn runs, or waits for others. Or
// it has mail and something keeps it from a turn. Or it is idle, and waits for replies or mail.
func (t *Team) Standing(i int) (swarm.Status, []Wait) {
	m := &t.Members[i]
	switch {
	case m.Over != "":
		return m.Over, nil
	case m.failed():
		return swarm.Failed, nil
	case m.State == MemberEnded && m.End.Outcome != "":
		return swarm.Completed, nil
	case m.State == MemberEnded:
		return swarm.Cancelled, nil
	case m.InTurn():
		if waits := t.waitsInTurn(m); len(waits) > 0 {
			return swarm.Waiting, waits
		}
		return swarm.Running, nil
	}
	waits := t.obstacles(m)
	for _, o := range t.Owed {
		if o.ReplyTo == m.Name {
			waits = append(waits, Wait{For: ForReply, Agent: o.To, Since: o.Since, Reason: o.ID})
		}
	}
	switch {
	case waits != nil:
		return swarm.Waiting, waits
	case m.wants():
		return swarm.Pending, nil
	case t.Swarm != nil && m.Name == Supervisor:
		if waits = t.workersAtWork(); waits != nil {
			return swarm.Waiting, waits
		}
	}
	return swarm.Waiting, []Wait{{For: ForMail}}
}

// workersAtWork lists the workers that the supervisor of a swarm waits for before it answers. In a
// council they also judge each other.
func (t *Team) workersAtWork() (waits []Wait) {
	for i := range t.Members {
		if m := &t.Members[i]; m.Effort != nil && (m.End == nil || m.Reviewing()) {
			waits = append(waits, Wait{For: ForDependency, Task: m.Name})
		}
	}
	return waits
}

// obstacles lists what keeps a member from having a turn.
func (t *Team) obstacles(m *Member) (waits []Wait) {
	if t.awaitsApproval(m) {
		return []Wait{{For: ForPerson, Reason: "may it work on the plan? swarm approve " + swarm.PlanQuestionID(max(1, t.Swarm.Asked))}}
	}
	if !m.PauseAt.IsZero() {
		waits = append(waits, Wait{For: ForPause, Agent: m.Name, Since: m.PauseAt})
	}
	if !t.PauseAt.IsZero() && m.wants() {
		waits = append(waits, Wait{For: ForPause, Since: t.PauseAt})
	}
	if l := t.held(m); l != nil && m.wants() {
		waits = append(waits, l.wait())
	}
	if m.awaitsRoom() && t.reserving() {
		waits = append(waits, Wait{For: ForRoom})
	}
	if t.Now.Before(m.Retry) {
		waits = append(waits, Wait{For: ForRetry, Until: m.Retry, Reason: m.Trouble})
	}
	if m.Effort != nil && m.End == nil {
		for _, need := range m.Effort.Needs {
			if t.works(need) {
				waits = append(waits, Wait{For: ForDependency, Task: need})
			}
		}
	}
	if waits == nil && m.wants() && (t.Limit > 0 && t.Running() >= t.Limit || !t.hasRoom(m)) {
		waits = append(waits, Wait{For: ForSlot, Since: m.Queued})
	}
	return waits
}

// waitsInTurn lists the agents that a member's turn still waits for, and why they are not done.
func (t *Team) waitsInTurn(m *Member) (waits []Wait) {
	for _, name := range m.For {
		if t.unready(name) {
			waits = append(waits, Wait{For: ForAgents, Agent: name, Since: m.Since, Reason: t.Busy(name).String()})
		}
	}
	return waits
}

// unready says whether an agent is not done with its mail and may still get done.
func (t *Team) unready(name string) bool {
	m := t.Member(name)
	return m != nil && m.End == nil && (!m.Quiet() || !m.Made)
}

// WaitPath is the path along which waits inside turns lead from one agent to another, or nil. A
// wait for an agent whose path leads back is a deadlock. Only waits before a sequence number count.
func (t *Team) WaitPath(from, to string, before int64) Path {
	return t.waitPath(from, to, before, map[string]bool{})
}

func (t *Team) waitPath(from, to string, before int64, seen map[string]bool) Path {
	if from == to {
		return Path{to}
	}
	seen[from] = true
	m := t.Member(from)
	if m == nil || m.WaitSeq >= before {
		return nil
	}
	for _, next := range m.For {
		if seen[next] {
			continue
		}
		if path := t.waitPath(next, to, before, seen); path != nil {
			return append(Path{from}, path...)
		}
	}
	return nil
}

// A Busy says why an agent is not done with its mail.
type Busy struct {
	Turn    swarm.TurnID // its turn
	Person  bool         // the turn waits for a person
	For     []string     // the turn waits for these agents
	Paused  bool         // it gets no turn until a person resumes it
	Mail    bool         // it has mail to read
	Trouble string       // why its last turn failed
}

// Busy says why a member is not done.
func (t *Team) Busy(name string) Busy {
	m := t.Member(name)
	b := Busy{Person: len(m.Asks) > 0, For: m.For, Paused: m.State == MemberPaused, Mail: m.wants(), Trouble: m.Trouble}
	if m.InTurn() {
		b.Turn = m.Turn
	}
	return b
}

// String is the sentence for agents and people.
func (b Busy) String() string {
	switch {
	case b.Turn != "" && b.Person:
		return "in its turn " + string(b.Turn) + " it waits for a person"
	case b.Turn != "" && len(b.For) > 0:
		return "in its turn " + string(b.Turn) + " it waits for " + strings.Join(b.For, ", ")
	case b.Turn != "":
		return "its turn " + string(b.Turn) + " runs"
	}
	text := "it has no output yet; nobody has sent it work"
	if b.Mail {
		text = "it has mail to read"
	}
	if b.Paused {
		text = "it is paused, and " + text
	}
	return text + LastFailure(b.Trouble)
}

// LastFailure completes a sentence about an agent whose last turn failed. It is "" if there is no
// failure.
func LastFailure(trouble string) string {
	if trouble == "" {
		return ""
	}
	return "; its last turn failed: " + excerpt.Head(excerpt.OneLine(trouble), 200)
}
