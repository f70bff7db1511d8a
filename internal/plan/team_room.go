package plan

import "swarm"

// A turn reserves the most that it may use, and mostly uses less. So a budget that has no room for
// a turn beside those that run may have room when one of them has ended. A member that was refused
// for that reason waits until then. It never waits if no other member has a turn: then nothing is
// left that could make room.
//
// Other members begin no turn until those that waited have had theirs. Otherwise a member that has
// just ended its turn would take the room again, and one could wait until all others are done.

// MayFit says whether a turn that was refused for what others had reserved may fit later: another
// member has a turn, or one has ended since it asked.
func (t *Team) MayFit(m *Member, end *swarm.CallEnd) bool {
	return end.Crowded && end.Kind == swarm.OverBudget && !t.ending() && (t.reserving() || t.freed.at > m.Began && t.freed.by != m.Name)
}

// A freed is the end of a turn that may have made room in the budget: its sequence number, and whose
// turn it was.
type freed struct {
	at int64
	by string
}

// makeRoom records that a member's turn has ended, with what it had reserved.
//
// A turn that had begun and found no room for its first request has freed what its start had reserved.
// That was less, so it calls nobody: two members that wait would call each other all the time. But
// two turns that were in the way of each other both may try again, one after the other.
func (t *Team) makeRoom(m *Member, end *swarm.CallEnd) {
	switch {
	case end.Unbegun:
	case !end.Crowded:
		t.freed = freed{t.Seen, m.Name}
		t.callNext()
	case t.freed.at <= m.Began:
		t.freed = freed{t.Seen, m.Name}
	}
}

// reserving says whether a member has a turn that ends by itself. One that waits for other agents
// may wait for the very member that waits for room, and an action reserves nothing.
func (t *Team) reserving() bool {
	return t.anyMember(func(m *Member) bool { return m.State == MemberCut || m.State == MemberRunning && !m.acting() })
}

// awaitsRoom says whether a member has no turn because others have reserved what is left of the
// budget.
func (m *Member) awaitsRoom() bool { return m.State == MemberDue && m.Crowded > 0 && !m.Called }

// mayBegin says whether a member that is due waits neither for a provider's limit nor for a delay.
func (t *Team) mayBegin(m *Member) bool { return t.held(m) == nil && !t.Now.Before(m.Retry) }

// crowded says whether a member has its turn after it waited for room, or could try again. One that
// a limit holds back keeps nobody waiting.
func (t *Team) crowded() bool {
	return t.anyMember(func(m *Member) bool {
		return m.Called && m.InTurn() || (m.awaitsRoom() || m.Called && m.State == MemberDue) && t.mayBegin(m)
	})
}

// callNext lets the member try again that has waited longest for room. It calls one for each turn
// that has ended. Otherwise each end of a turn would let all of them try, most of them in vain. A
// member that a limit holds back is called if no other waits.
func (t *Team) callNext() {
	var first *Member
	for i := range t.Members {
		m := &t.Members[i]
		switch {
		case !m.awaitsRoom():
		case first == nil, t.mayBegin(m) && !t.mayBegin(first), t.mayBegin(m) == t.mayBegin(first) && m.Crowded < first.Crowded:
			first = m
		}
	}
	if first != nil {
		first.Called = true
	}
}
