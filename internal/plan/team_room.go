package plan

import "swarm"

// MayFit reports whether a member's turn that the reservations of others kept out may fit later.
func (t *Team) MayFit(m *Member, end *swarm.CallEnd) bool {
	return !t.ending() && t.freed.mayFit(end, m.Began, m.Name, t.reserving())
}

// makeRoom records that a turn of a member has ended. It lets the next waiting member try again.
func (t *Team) makeRoom(m *Member, end *swarm.CallEnd) {
	if t.freed.endTurn(end, t.Seen, m.Began, m.Name) {
		t.callNext()
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
