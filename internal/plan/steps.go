package plan

import (
	"slices"
	"time"

	"swarm"
)

// A Step is the next thing for the loop to do.
type Step struct {
	Kind      StepKind
	Task      int    // for all kinds but StepIterate
	Needed    int    // for StepFail: the task whose end is the cause
	Group     int    // for StepIterate
	Iteration int    // of the task or the group
	Reason    string // why the task is skipped or cancelled
}

// A StepKind is the kind of a step.
type StepKind int

// The kinds of steps.
const (
	StepNone    StepKind = iota // nothing to do until a turn ends
	StepRun                     // start the task's turn; the schedule counts it as running
	StepSkip                    // the task has ended as skipped
	StepCancel                  // the task has ended as cancelled
	StepIterate                 // the group's next iteration has begun
	StepFail                    // the task has ended as failed, because a task that it needs did not complete
)

// Next returns the next step. The schedule has applied it already.
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
		closed := s.closeRoom()
		i, ok := s.nextReady()
		if !ok {
			break
		}
		n := &s.nodes[i]
		if closed && !n.called {
			s.gated.push(i)
			s.passOn(n, nil)
			continue
		}
		if g := n.closed(); g != nil {
			g.queue.push(i)
			s.passOn(n, g)
			continue
		}
		if s.held(n) != nil {
			s.limited.push(i)
			s.passOn(n, nil)
			continue
		}
		s.Started(i)
		return Step{Kind: StepRun, Task: i, Iteration: s.Iteration(i)}
	}
	return Step{}
}

// allowed says whether the task is still ready. A queued task may have been cancelled meanwhile,
// and its group may be in another iteration.
func (n *node) allowed() bool { return n.status == swarm.Pending && n.open == 0 }

func (s *Schedule) nextReady() (int, bool) {
	for _, q := range []*queue{&s.called, &s.freed, &s.ready} {
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

// nextCancel cancels the tasks that have not started, in the order of the file.
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

// closed returns the limiter that would not admit the task, or nil.
func (n *node) closed() *limiter {
	if n.agent.paused || n.agent.inside >= n.agent.most {
		return n.agent
	}
	if n.cap != nil && n.cap.inside >= n.cap.most {
		return n.cap
	}
	return nil
}

// Started reports that the task's turn runs.
func (s *Schedule) Started(i int) {
	n := &s.nodes[i]
	if n.status == swarm.Running || n.status.Ended() {
		return
	}
	n.status, n.started = swarm.Running, true
	s.running++
	s.ticks++
	n.began = s.ticks
	for _, g := range []*limiter{n.agent, n.cap} {
		if g != nil {
			g.inside++
			g.last = i
		}
	}
}

// leave gives back the places of the task's turn in its limiters.
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

// wake moves the first task that queues at a limiter to freed.
func (s *Schedule) wake(g *limiter) {
	for !g.paused && !g.queue.empty() {
		if k := g.queue.pop(); s.nodes[k].allowed() {
			s.freed.push(k)
			return
		}
	}
}

// passOn wakes another task in place of n, which was woken and cannot run. It does so at each
// limiter of n that has room, except the one where n queues again. Without it a place could stay
// empty while tasks queue for it.
func (s *Schedule) passOn(n *node, at *limiter) {
	for _, g := range []*limiter{n.agent, n.cap} {
		if g != nil && g != at && g.inside < g.most {
			s.wake(g)
		}
	}
}

// Wait reports that the task's turn has ended but the task has not: it waits for a retry or for a
// person.
func (s *Schedule) Wait(i int, why Wait) {
	if s.nodes[i].status.Ended() {
		return
	}
	s.leave(i)
	s.nodes[i].status, s.nodes[i].why = swarm.Waiting, &why
}

// Again reports that a waiting task may run again.
func (s *Schedule) Again(i int) {
	if n := &s.nodes[i]; n.status == swarm.Waiting {
		n.status, n.why = swarm.Pending, nil
		if !s.follower {
			s.ready.push(i)
		}
	}
}

// Ended reports how the task ended in this iteration.
func (s *Schedule) Ended(i int, st swarm.Status) {
	n := &s.nodes[i]
	if n.status.Ended() {
		return
	}
	s.leave(i)
	s.dropCrowded(i)
	n.status, n.why = st, nil
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

// firstOutput reports the first output of an agent, and judges the tasks that waited for it.
func (s *Schedule) firstOutput(agent string) {
	s.good[agent] = true
	for _, k := range s.await[agent] {
		if s.nodes[k].status == swarm.Pending {
			s.settle(k)
		}
	}
	delete(s.await, agent)
}

// finish reports that a group has ended, and judges the tasks of other groups that waited for it.
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
	if _, hopeless := n.needed(s); n.open == 0 || hopeless { // an OnNeeded dependency failed, so the others do not matter
		s.judge(k)
	}
}

// Iterate begins the group's next iteration. All its tasks are pending again.
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

// Pause stops turns from starting, or lets them start again.
func (s *Schedule) Pause(on bool) { s.paused = on }

// PauseAgent stops one agent's turns from starting, or lets them start again. It says whether that
// changed anything.
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

// Paused says whether an agent is paused, and whether it has tasks.
func (s *Schedule) Paused(agent string) (paused, known bool) {
	g := s.agents[agent]
	return g != nil && g.paused, g != nil
}

// PausedAgents is the number of paused agents.
func (s *Schedule) PausedAgents() int { return s.pausedAgents }

// ReachLimit holds back the turns of a provider.
func (s *Schedule) ReachLimit(l swarm.Limit, now time.Time) { s.limits.reach(l, now) }

// EndLimit lets the turns of a provider start again.
func (s *Schedule) EndLimit(provider string) {
	s.limits.end(provider)
	for !s.limited.empty() { // those that another limit holds back queue again
		s.freed.push(s.limited.pop())
	}
}

// Limits are the limits that are reached.
func (s *Schedule) Limits() Limits { return s.limits }

// HeldBack returns the providers with a limit that a task or an agent uses, or all with one if target
// is "".
func (s *Schedule) HeldBack(target string) (providers []string) {
	for i := range s.nodes {
		if t := s.nodes[i].task; target != "" && (target == t.Name || target == t.Base || target == t.Agent) {
			for _, name := range s.limits.providers(s.Routes(t.Agent)) {
				if !slices.Contains(providers, name) {
					providers = append(providers, name)
				}
			}
		}
	}
	return append(providers, s.limits.all(target)...)
}

// RestoreLimits sets the limits that are reached.
func (s *Schedule) RestoreLimits(l Limits) { s.limits = l }

// held returns the limit that holds back a task, or nil.
func (s *Schedule) held(n *node) *Limit {
	if len(s.limits) == 0 || s.Routes == nil {
		return nil
	}
	_, l := s.limits.Choose(s.Routes(n.task.Agent))
	return l
}

// Stop stops tasks from starting, for a reason. Next then returns the tasks to cancel.
func (s *Schedule) Stop(why string) {
	if s.stopping == "" {
		s.stopping = why
	}
}

// Running is the number of running turns.
func (s *Schedule) Running() int { return s.running }

// Done says whether all tasks have ended and no iteration is left.
func (s *Schedule) Done() bool {
	return s.left == 0 && s.running == 0 && (s.through.empty() || s.stopping != "")
}
