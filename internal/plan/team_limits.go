package plan

import (
	"time"

	"swarm"
)

// Outlasts says whether the end of a member's turn is a provider's limit that the member waits out,
// or another provider makes up for. A run that is about to end waits for no limit: a swarm lists its
// results instead of an answer.
func (t *Team) Outlasts(m *Member, end *swarm.CallEnd) bool {
	return !t.ending() && t.Limits.Outlasts(m.Route, end, LimitedSince(m.Limited, end, t.Now))
}

// ending says whether the run only finishes what has begun.
func (t *Team) ending() bool { return t.Closing != "" || t.Swarm != nil && t.Swarm.Draining }

// held returns the limit that keeps a member from its next turn, or nil. An action needs no provider.
func (t *Team) held(m *Member) *Limit {
	if len(t.Limits) == 0 || m.InTurn() || t.ending() || m.Effort != nil && m.Effort.Next != nil {
		return nil
	}
	_, l := t.Limits.Choose(m.Route)
	return l
}

// holdBack records since when a limit keeps each member from a turn.
func (t *Team) holdBack() {
	for i := range t.Members {
		t.holdBackMember(&t.Members[i])
	}
}

// holdBackMember records since when a limit, or the lack of room in the budget, keeps a member from a
// turn. The time does not count for the replies that the member owes, nor for its own work.
func (t *Team) holdBackMember(m *Member) {
	switch held := m.Crowded > 0 || t.held(m) != nil; {
	case held && m.HeldAt.IsZero():
		m.HeldAt = t.Now
	case !held && !m.HeldAt.IsZero():
		t.giveTime(m, t.Now.Sub(m.HeldAt))
		m.HeldAt = time.Time{}
	}
}

// giveTime gives a member back the time in which it could do nothing.
func (t *Team) giveTime(m *Member, by time.Duration) {
	t.postponeReplies(m.Name, by)
	t.postponeEnd(m, by)
}

// giveWait gives a member back the time that its turn waited for the budget of another run. A pause
// meanwhile was given back already, so no clock is set later than now.
func (t *Team) giveWait(m *Member, by time.Duration) {
	if by == 0 {
		return
	}
	t.giveTime(m, by)
	if began := t.began(m); began != nil {
		*began = earlier(*began, t.Now)
	}
	for i := range t.Owed {
		if t.Owed[i].To == m.Name {
			t.Owed[i].Since = earlier(t.Owed[i].Since, t.Now)
		}
	}
}

// HeldBack returns the providers with a limit that an agent uses, or all with one if agent is "".
func (t *Team) HeldBack(agent string) []string {
	if m := t.Member(agent); m != nil {
		return t.Limits.providers(m.Route)
	}
	return t.Limits.all(agent)
}

// Reached returns the limits that are reached.
func (t *Team) Reached() Limits { return t.Limits }
