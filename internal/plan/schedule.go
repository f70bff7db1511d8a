// Package plan knows what may run next. A [Schedule] knows the dependencies, iterations, busy
// agents and limits of a pipeline. A [Team] knows the mail, turns and waits of a team. Loops ask
// them what to do next, and views ask them which agents wait and why. The package does no I/O and
// reads no clock, so the same facts give the same decisions in a replay.
package plan

import (
	"fmt"

	"swarm"
)

// A Schedule is the state of a running pipeline. One goroutine owns it: the loop that drives the
// run, or the view that follows it. So it has no mutex.
//
// A loop calls Next until there is no further step, and reports the end of every turn. A view makes
// its schedule with NewFollower and reports starts too, as the log has them. Such a schedule offers
// no steps.
type Schedule struct {
	// Routes returns the route of an agent, for limits; nil = no provider has any.
	Routes func(agent string) Route

	nodes        []node
	at           map[string]int
	groups       []group
	agents       map[string]*limiter // by agent: one turn at a time
	good         map[string]bool     // agents that have completed a task
	await        map[string][]int    // by agent: the tasks that wait for its first output
	caps         map[string]*limiter // by task, without the number of its copy
	limit        int                 // concurrent turns; 0 = no limit
	limits       Limits              // of providers, that are reached
	pausedAgents int                 // number of paused agents
	room         freed               // of the budget
	crowd        []int               // tasks that wait for room in the budget, or try again after that, in the order in which they began to wait
	ticks        int64               // starts and ends of turns so far
	running      int
	left         int // tasks that have not ended in their group's current iteration

	begun    bool // a plan was added
	follower bool
	paused   bool
	stopping string // why no task starts any more, or ""

	ready   queue // tasks whose dependencies are met, in order
	freed   queue // ready tasks that waited at a limiter which has room now: they go first
	limited queue // ready tasks that a provider's limit holds back
	called  queue // ready tasks that may find room in the budget now: they go before all others
	gated   queue // ready tasks that wait until those that wait for room have their turns
	skips   queue // tasks that end as skipped or failed, without a turn
	through queue // groups that have ended an iteration and have another
	cancel  int   // when stopping: the next node to cancel
}

// A node is a task and its state in the current iteration of its group.
type node struct {
	task    *swarm.Task
	group   int
	status  swarm.Status // pending, running, waiting, or ended
	deps    []dep
	next    []int // nodes that depend on it
	open    int   // dependencies that have not ended, and agents without an output yet
	agent   *limiter
	cap     *limiter
	why     *Wait // when waiting: the reason
	started bool  // in this iteration
	began   int64 // by the schedule's ticks: when its last turn began
	called  bool  // it has waited for room in the budget, and tries again
	needs   bool  // it has an OnNeeded dependency; saves the scan of its dependencies otherwise
}

type dep struct {
	node      int
	condition swarm.Condition
}

type group struct {
	members    []int
	iteration  int // from 1
	iterations int
	left       int  // members that have not ended in this iteration
	through    bool // all members have ended the last iteration
}

// A limiter admits a number of turns at once. Further tasks queue.
type limiter struct {
	most, inside int
	paused       bool // it admits no turn, even if there is room
	last         int  // the node that was admitted last
	queue        queue
}

// New makes a schedule for a loop.
func New() *Schedule {
	return &Schedule{at: map[string]int{}, agents: map[string]*limiter{}, caps: map[string]*limiter{}, good: map[string]bool{}, await: map[string][]int{}}
}

// NewFollower makes a schedule for a view.
func NewFollower() *Schedule {
	s := New()
	s.follower = true
	return s
}

// Add adds the tasks of a plan. Tasks may depend on any task of the same plan and on tasks added
// before. Add refuses unknown names and cycles, and changes nothing then.
func (s *Schedule) Add(p *swarm.Plan) error {
	base, groups, links := len(s.nodes), len(s.groups), 0
	at := make(map[string]int, len(p.Tasks))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if _, twice := at[t.Name]; twice || s.has(t.Name) {
			return swarm.Errorf(swarm.BadInput, "the task %q is in the plan twice", t.Name)
		}
		if t.Group < 0 || t.Group >= len(p.Groups) {
			return swarm.Errorf(swarm.BadInput, "the task %q is in no group", t.Name)
		}
		at[t.Name] = base + i
		links += len(t.DependsOn)
	}
	nodes, deps := make([]node, len(p.Tasks)), make([]dep, 0, links)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		from := len(deps)
		for _, d := range t.DependsOn {
			j, ok := at[d.Task]
			if !ok {
				j, ok = s.at[d.Task]
			}
			if !ok {
				return swarm.Errorf(swarm.BadInput, "the task %q depends on %q, which is not in the plan", t.Name, d.Task)
			}
			deps = append(deps, dep{j, d.Condition})
			nodes[i].needs = nodes[i].needs || d.Condition == swarm.OnNeeded
		}
		nodes[i] = node{task: t, group: groups + t.Group, status: swarm.Pending, deps: deps[from:len(deps):len(deps)], needs: nodes[i].needs}
	}
	if cycle := newCycle(nodes, base); cycle != nil {
		return swarm.Errorf(swarm.BadInput, "dependency cycle: %s", cycle)
	}
	if !s.begun {
		s.begun, s.limit = true, p.MaxParallel
	}
	for _, g := range p.Groups {
		s.groups = append(s.groups, group{iteration: 1, iterations: max(1, g.Iterations)})
	}
	if base == 0 {
		s.nodes, s.at = nodes, at
	} else {
		s.nodes = append(s.nodes, nodes...)
	}
	s.reserve(base, links)
	for i := base; i < len(s.nodes); i++ {
		s.admit(i)
	}
	for i := base; i < len(s.nodes); i++ {
		if s.nodes[i].open == 0 {
			s.judge(i)
		}
	}
	return nil
}

func newCycle(nodes []node, base int) fmt.Stringer {
	cycle := Cycle(len(nodes), func(i int) []int {
		var succ []int
		for _, d := range nodes[i].deps {
			if d.node >= base {
				succ = append(succ, d.node-base)
			}
		}
		return succ
	})
	if cycle == nil {
		return nil
	}
	var p Path
	for _, i := range append(cycle, cycle[0]) {
		p = append(p, nodes[i].task.Name)
	}
	return p
}

// reserve allocates the lists of dependent nodes in one piece.
func (s *Schedule) reserve(base, links int) {
	counts := make([]int, len(s.nodes)-base)
	for i := base; i < len(s.nodes); i++ {
		for _, d := range s.nodes[i].deps {
			if d.node >= base {
				counts[d.node-base]++
			}
		}
	}
	room := make([]int, links)
	for i, n := range counts {
		s.nodes[base+i].next, room = room[:0:n], room[n:]
	}
}

// admit links a new node to its group, its limiters and its dependencies.
func (s *Schedule) admit(i int) {
	n := &s.nodes[i]
	s.at[n.task.Name] = i
	g := &s.groups[n.group]
	g.members = append(g.members, i)
	g.left++
	s.left++
	n.agent = limiterOf(s.agents, n.task.Agent, 1)
	if n.task.Concurrency > 0 {
		n.cap = limiterOf(s.caps, baseName(n.task), n.task.Concurrency)
	}
	for _, d := range n.deps {
		s.nodes[d.node].next = append(s.nodes[d.node].next, i)
		if !s.settled(i, d.node) {
			n.open++
		}
	}
	for _, agent := range n.task.Awaits {
		if !s.good[agent] {
			s.await[agent] = append(s.await[agent], i)
			n.open++
		}
	}
}

func limiterOf(gates map[string]*limiter, name string, most int) *limiter {
	g := gates[name]
	if g == nil {
		g = &limiter{most: most}
		gates[name] = g
	}
	return g
}

func baseName(t *swarm.Task) string {
	if t.Base != "" {
		return t.Base
	}
	return t.Name
}

// settled says whether j has ended from the view of i, which depends on it. In the same group the
// current iteration counts, in another group the last.
func (s *Schedule) settled(i, j int) bool {
	if s.nodes[i].group == s.nodes[j].group {
		return s.nodes[j].status.Ended()
	}
	return s.groups[s.nodes[j].group].through
}

// judge decides whether i runs, or is skipped or failed. The caller knows that all dependencies
// have ended, or enough of them to decide.
func (s *Schedule) judge(i int) {
	if s.follower || s.nodes[i].status != swarm.Pending {
		return
	}
	if _, hopeless := s.nodes[i].needed(s); hopeless || s.nodes[i].unmet(s) != "" {
		s.skips.push(i)
	} else {
		s.ready.push(i)
	}
}

// unmet says which ended dependency keeps the task from running, or "".
func (n *node) unmet(s *Schedule) string {
	soft, others := "", 0
	for _, d := range n.deps {
		on := &s.nodes[d.node]
		if on.status != swarm.Skipped {
			others++
		}
		switch {
		case d.condition == swarm.OnAlways,
			on.status == swarm.Completed && d.condition != swarm.OnFailed,
			on.status == swarm.Failed && d.condition != swarm.OnSuccess:
		case d.condition == swarm.OnAny && on.status == swarm.Skipped:
			soft = fmt.Sprintf("%s was skipped", on.task.Name)
		case d.condition == swarm.OnAny:
			return fmt.Sprintf("%s was %s", on.task.Name, on.status)
		default:
			return fmt.Sprintf("%s %s, and this runs on its %s", on.task.Name, ended(on.status), d.condition)
		}
	}
	if soft != "" && others == 0 {
		return soft
	}
	return ""
}

// needed returns the dependency that n needs completed and that ended otherwise.
func (n *node) needed(s *Schedule) (int, bool) {
	if !n.needs {
		return 0, false
	}
	for _, d := range n.deps {
		if st := s.nodes[d.node].status; d.condition == swarm.OnNeeded && st.Ended() && st != swarm.Completed {
			return d.node, true
		}
	}
	return 0, false
}

func ended(s swarm.Status) string {
	if s == swarm.Skipped || s == swarm.Cancelled {
		return "was " + string(s)
	}
	return string(s)
}

// A queue is first in, first out.
type queue struct {
	items []int
	head  int
}

func (q *queue) push(i int) { q.items = append(q.items, i) }

func (q *queue) empty() bool { return q.head == len(q.items) }

func (q *queue) pop() int {
	i := q.items[q.head]
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 1024 && q.head > len(q.items)/2:
		q.items, q.head = append(q.items[:0], q.items[q.head:]...), 0
	}
	return i
}
