package plan

import (
	"slices"

	"swarm"
)

// A turn reserves the most that it may use, and usually uses less. If the budget has no room for a
// turn beside the running turns, there may be room when one of them ends. So a task or a member whose
// turn was refused for that reason waits. It waits only while another turn runs, because nothing else
// can make room.
//
// Those that wait for room go first: no other turn begins before theirs. Otherwise the next turn of
// another would take the room again, and a waiting one could starve.

// A freed is the end of a turn that may have made room in the budget: when it was, and whose turn. Both
// machines keep one. The times are sequence numbers, or other numbers that grow with each record.
type freed struct {
	at int64
	by string
}

// mayFit reports whether a turn that the reservations of others kept out may fit later. It may if
// another turn reserves something, or if another turn has ended since this one began. A log that does
// not say that a turn was crowded out is of an older version. There the turn ends the budget, as it did.
func (f freed) mayFit(end *swarm.CallEnd, began int64, by string, reserving bool) bool {
	return end.Crowded && (end.Kind == swarm.OverBudget || end.Kind == swarm.OverShare) && (reserving || f.at > began && f.by != by)
}

// endTurn records that a turn has ended and has freed its reservation. It reports whether the next one
// that waits may try again.
//
// A crowded turn is one that began and found no room for its first request. It frees only the small
// reservation of its start, so it calls no other. Otherwise two that wait would call each other
// forever. It still counts as freed room if no other turn has ended since it began, so that two turns
// that kept each other out can both try again, one after the other.
func (f *freed) endTurn(end *swarm.CallEnd, now, began int64, by string) (calls bool) {
	switch {
	case end.Unbegun:
	case !end.Crowded:
		*f = freed{now, by}
		return true
	case f.at <= began:
		*f = freed{now, by}
	}
	return false
}

// MayFit reports whether the turn of the i-th task, which has ended, may fit into the budget later.
func (s *Schedule) MayFit(i int, end *swarm.CallEnd) bool {
	n := &s.nodes[i]
	return s.stopping == "" && s.room.mayFit(end, n.began, n.task.Name, s.running > 1)
}

// EndTurn records that a turn of the i-th task has ended, before the loop says what that means for the
// task.
func (s *Schedule) EndTurn(i int, end *swarm.CallEnd) {
	n := &s.nodes[i]
	s.ticks++
	s.dropCrowded(i)
	if s.room.endTurn(end, s.ticks, n.began, n.task.Name) {
		s.callNext()
	}
}

// AwaitRoom has the i-th task wait until the budget has room for its turn.
func (s *Schedule) AwaitRoom(i int) {
	s.Wait(i, Wait{For: ForRoom})
	s.crowd = append(s.crowd, i)
}

// dropCrowded forgets that the i-th task waits for room.
func (s *Schedule) dropCrowded(i int) {
	if s.nodes[i].called = false; len(s.crowd) > 0 {
		s.crowd = slices.DeleteFunc(s.crowd, func(k int) bool { return k == i })
	}
}

func (n *node) awaitsRoom() bool { return n.status == swarm.Waiting && n.why.For == ForRoom }

// mayBegin says whether neither a person nor a provider's limit holds the task back.
func (s *Schedule) mayBegin(n *node) bool { return !n.agent.paused && s.held(n) == nil }

// crowded says whether a task has its turn after it waited for room, or could try again. One that
// something else holds back keeps no other waiting.
func (s *Schedule) crowded() bool {
	return slices.ContainsFunc(s.crowd, func(i int) bool {
		n := &s.nodes[i]
		return n.status == swarm.Running || s.mayBegin(n)
	})
}

// callNext lets the task try again that has waited longest for room. It calls one for each turn that
// has ended. A task that something else holds back is called if no other waits.
func (s *Schedule) callNext() {
	first := -1
	for _, i := range s.crowd {
		if n := &s.nodes[i]; n.awaitsRoom() && (first < 0 || s.mayBegin(n) && !s.mayBegin(&s.nodes[first])) {
			first = i
		}
	}
	if first >= 0 {
		n := &s.nodes[first]
		n.status, n.why, n.called = swarm.Pending, nil, true
		s.called.push(first)
	}
}

// closeRoom says whether only tasks that were called may begin. If no turn runs, nothing makes room, so
// the next task that waits for some tries again. Tasks that were kept back follow when the room is open.
func (s *Schedule) closeRoom() bool {
	if len(s.crowd) > 0 && s.running == 0 && !slices.ContainsFunc(s.crowd, func(i int) bool { return s.nodes[i].called && s.mayBegin(&s.nodes[i]) }) {
		s.callNext()
	}
	if s.running > 0 && s.crowded() {
		return true
	}
	for !s.gated.empty() {
		s.freed.push(s.gated.pop())
	}
	return false
}
