package plan

import "swarm"

// A turn reserves the most that it may use, and usually uses less. If the budget has no room for a
// turn beside the running turns, there may be room when one of them ends. So a member whose turn
// was refused for that reason waits. It waits only while another member has a turn, because nothing
// else can make room.
//
// Members that wait for room go first: no other member begins a turn before them. Otherwise a
// member that ends a turn would take the room again with its next turn, and a waiting member could
// starve.

// MayFit reports whether a turn that the reservations of others kept out may fit later. It may if
// another member has a turn, or if another turn has ended since this one began.
func (t *Team) MayFit(m *Member, end *swarm.CallEnd) bool {
	return end.Crowded && end.Kind == swarm.OverBudget && !t.ending() && (t.reserving() || t.freed.at > m.Began && t.freed.by != m.Name)
}

// A freed is the end of a turn that may have made room in the budget: its sequence number, and whose
// turn it was.
type freed struct {
	at int64
	by string
}

// makeRoom records that a turn of a member has ended and has freed its reservation. It lets the
// next waiting member try again.
//
// A crowded turn is one that began and found no room for its first request. It frees only the small
// reservation of its start, so it calls no other member. Otherwise two waiting members would call
// each other forever. It still counts as freed room if no other turn has ended since it began, so
// that two turns that kept each other out can both try again, one after the other.
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

// reserving reports whether a member has a turn that ends by itself and frees a reservation. A turn
// that waits for other agents does not count: it may wait for the member that waits for room. An
// action reserves nothing.
func (t *Team) reserving() bool {
	return t.anyMember(func(m *Member) bool { return m.State == MemberCut || m.State == MemberRunning && !m.acting() })
}

// awaitsRoom reports whether a member waits because other turns have reserved the rest of the
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
