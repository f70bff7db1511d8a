package plan

import "swarm"

// A Step is what is to be done next.
type Step struct {
	Kind      StepKind
	Task      int    // of all but StepIterate
	Needed    int    // of StepFail: the task whose end fails it
	Group     int    // of StepIterate
	Iteration int    // the task's or the group's
	Reason    string // why it is skipped or cancelled
}

// A StepKind says what is to be done.
type StepKind int

// What can be to do.
const (
	StepNone    StepKind = iota // nothing, until something ends
	StepRun                     // start the task's turn; it counts as running
	StepSkip                    // the task has ended as skipped
	StepCancel                  // the task has ended as cancelled
	StepIterate                 // the group's next iteration has begun
	StepFail                    // the task has ended as failed: what it needed is not to be had
)

// Next gives the next thing to do, and has taken it as done.
func (s *Schedule) Next() Step {
	if s.stopping != "" {
		return s.nextCancel()
	}
	for !s.skips.empty() {
		i := s.skips.pop()
		n := &s.nodes[i]
		if on, ok := n.needed(s); ok && n.status == swarm.Pending {
			s.Ended(i, swarm.Failed)
			return Step{Kind: StepFail, Task: i, Needed: on, Iteration: s.Iteration(i),
				Reason: "Referenced agent @" + s.nodes[on].task.Agent + " " + ended(s.nodes[on].status)}
		}
		if n.allowed() {
			why := n.unmet(s)
			if why == "" {
				continue
			}
			s.Ended(i, swarm.Skipped)
			return Step{Kind: StepSkip, Task: i, Iteration: s.Iteration(i), Reason: why}
		}
	}
	if !s.through.empty() {
		g := s.through.pop()
		s.Iterate(g)
		return Step{Kind: StepIterate, Group: g, Iteration: s.groups[g].iteration}
	}
	for !s.paused && (s.limit == 0 || s.running < s.limit) {
		i, ok := s.nextReady()
		if !ok {
			break
		}
		n := &s.nodes[i]
		if g := n.closed(); g != nil {
			g.queue.push(i)
			s.passOn(n, g)
			continue
		}
		s.Started(i)
		return Step{Kind: StepRun, Task: i, Iteration: s.Iteration(i)}
	}
	return Step{}
}

// allowed says whether the task is still to be judged or run. It may not be by the time its turn in a queue comes: it was cancelled,
// and perhaps its group has begun another iteration since.
func (n *node) allowed() bool { return n.status == swarm.Pending && n.open == 0 }

func (s *Schedule) nextReady() (int, bool) {
	for _, q := range []*queue{&s.freed, &s.ready} {
		for !q.empty() {
			i := q.pop()
			if s.nodes[i].allowed() {
				return i, true
			}
			s.passOn(&s.nodes[i], nil)
		}
	}
	return 0, false
}

// nextCancel ends what has not begun, in the file's order.
func (s *Schedule) nextCancel() Step {
	for ; s.cancel < len(s.nodes); s.cancel++ {
		i := s.cancel
		if st := s.nodes[i].status; st == swarm.Pending || st == swarm.Waiting {
			s.Ended(i, swarm.Cancelled)
			return Step{Kind: StepCancel, Task: i, Iteration: s.Iteration(i), Reason: s.stopping}
		}
	}
	return Step{}
}

// closed is the limiter at which the task would have to wait, or nil.
func (n *node) closed() *limiter {
	if n.agent.paused || n.agent.inside >= n.agent.most {
		return n.agent
	}
	if n.cap != nil && n.cap.inside >= n.cap.most {
		return n.cap
	}
	return nil
}

// Started says that the task's turn runs.
func (s *Schedule) Started(i int) {
	n := &s.nodes[i]
	if n.status == swarm.Running || n.status.Ended() {
		return
	}
	n.status, n.started = swarm.Running, true
	s.running++
	for _, g := range []*limiter{n.agent, n.cap} {
		if g != nil {
			g.inside++
			g.last = i
		}
	}
}

// leave frees the limiters that the task's turn had passed.
func (s *Schedule) leave(i int) {
	n := &s.nodes[i]
	if n.status != swarm.Running {
		return
	}
	s.running--
	for _, g := range []*limiter{n.agent, n.cap} {
		if g == nil {
			continue
		}
		g.inside--
		s.wake(g)
	}
}

// wake gives the first task that waits at a limiter another chance.
func (s *Schedule) wake(g *limiter) {
	for !g.paused && !g.queue.empty() {
		if k := g.queue.pop(); s.nodes[k].allowed() {
			s.freed.push(k)
			return
		}
	}
}

// passOn gives the chance that a task had been woken for, and cannot use, to the next one: at each of its limiters that have room,
// but not where it waits itself.
func (s *Schedule) passOn(n *node, at *limiter) {
	for _, g := range []*limiter{n.agent, n.cap} {
		if g != nil && g != at && g.inside < g.most {
			s.wake(g)
		}
	}
}

// Wait says that the task's turn has ended but the task has not: it waits for another attempt, or for a person.
func (s *Schedule) Wait(i int, why Wait) {
	if s.nodes[i].status.Ended() {
		return
	}
	s.leave(i)
	s.nodes[i].status, s.nodes[i].why = swarm.Waiting, why
}

// Again says that a waiting task may run again.
func (s *Schedule) Again(i int) {
	if n := &s.nodes[i]; n.status == swarm.Waiting {
		n.status, n.why = swarm.Pending, Wait{}
		if !s.follower {
			s.ready.push(i)
		}
	}
}

// Ended says how the task ended in this iteration.
func (s *Schedule) Ended(i int, st swarm.Status) {
	n := &s.nodes[i]
	if n.status.Ended() {
		return
	}
	s.leave(i)
	n.status, n.why = st, Wait{}
	s.left--
	if st == swarm.Completed && !s.good[n.task.Agent] {
		s.firstOutput(n.task.Agent)
	}
	for _, k := range n.next {
		if s.nodes[k].group == n.group {
			s.settle(k)
		}
	}
	g := &s.groups[n.group]
	if g.left--; g.left > 0 {
		return
	}
	if g.iteration < g.iterations && s.stopping == "" {
		if !s.follower {
			s.through.push(n.group)
		}
		return
	}
	s.finish(n.group)
}

// firstOutput says that an agent has made something: those who awaited that may be judged.
func (s *Schedule) firstOutput(agent string) {
	s.good[agent] = true
	for _, k := range s.await[agent] {
		if s.nodes[k].status == swarm.Pending {
			s.settle(k)
		}
	}
	delete(s.await, agent)
}

// finish says that a group is through: now those that wait for it from other groups may be judged.
func (s *Schedule) finish(group int) {
	g := &s.groups[group]
	g.through = true
	for _, i := range g.members {
		for _, k := range s.nodes[i].next {
			if s.nodes[k].group != group {
				s.settle(k)
			}
		}
	}
}

func (s *Schedule) settle(k int) {
	n := &s.nodes[k]
	n.open--
	if _, hopeless := n.needed(s); n.open == 0 || hopeless { // what is needed is not to be had, whatever the others do
		s.judge(k)
	}
}

// Iterate begins the group's next iteration: all its tasks are pending again.
func (s *Schedule) Iterate(group int) {
	g := &s.groups[group]
	g.iteration++
	g.left = len(g.members)
	s.left += g.left
	for _, i := range g.members {
		s.nodes[i].status, s.nodes[i].started = swarm.Pending, false
	}
	for _, i := range g.members {
		n := &s.nodes[i]
		n.open = 0
		for _, d := range n.deps {
			if !s.settled(i, d.node) {
				n.open++
			}
		}
		for _, agent := range n.task.Awaits {
			if !s.good[agent] {
				n.open++
			}
		}
	}
	for _, i := range g.members {
		if s.nodes[i].open == 0 {
			s.judge(i)
		}
	}
}

// Pause keeps turns from starting, or lets them start again.
func (s *Schedule) Pause(on bool) { s.paused = on }

// PauseAgent keeps the turns of one agent from starting, or lets them start again. It says whether that is a change.
func (s *Schedule) PauseAgent(agent string, on bool) bool {
	g := s.agents[agent]
	if g == nil || g.paused == on {
		return false
	}
	if g.paused = on; on {
		s.pausedAgents++
	} else {
		s.pausedAgents--
		s.wake(g)
	}
	return true
}

// Paused says whether an agent is paused, and whether any task is its.
func (s *Schedule) Paused(agent string) (paused, known bool) {
	g := s.agents[agent]
	return g != nil && g.paused, g != nil
}

// PausedAgents is how many agents are paused.
func (s *Schedule) PausedAgents() int { return s.pausedAgents }

// Stop says that nothing starts any more, and why. Next then gives what has to be cancelled.
func (s *Schedule) Stop(why string) {
	if s.stopping == "" {
		s.stopping = why
	}
}

// Running is how many turns run.
func (s *Schedule) Running() int { return s.running }

// Done says whether everything has ended: there is nothing to run, now or later.
func (s *Schedule) Done() bool {
	return s.left == 0 && s.running == 0 && (s.through.empty() || s.stopping != "")
}
