// Package view folds a run's events into a picture of it: where the run, its tasks and its agents stand, who waits for whom and
// why, what was made and what it cost. Whatever anybody is shown of a run comes from here, so that all of them are shown the
// same. It does no I/O and reads no clock: the same events always give the same picture.
//
// A [Run] is the fold. It takes one event at a time and keeps an amount that grows with the plan and not with the log, so it can
// be stored ([Run.Marshal]) and carried on later. A [Picture] is what it shows at a moment; it shares nothing with the Run. What
// would grow with the log, the list of turns above all, is collected by a pass over the log when somebody asks: [Collect].
package view

import (
	"slices"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A Run is the fold of a run's events so far. It belongs to one goroutine.
type Run struct {
	Head
	Usage swarm.Usage // of all turns that have ended

	tasks    []task // by the schedule's numbers
	agents   []Agent
	agentAt  map[string]int
	edges    []swarm.Edge   // of all plans, each once
	boxes    map[string]Box // by agent, in a team
	groups   []group
	planned  bool         // a plan was added
	parallel int          // turns at once; 0 = no limit
	pause    swarm.Status // pausing, paused, or "" when turns may start; outlasts an interruption
	pausedAt time.Time
	retries  []int // tasks that wait for their next attempt, in no order: there are few
	sched    *plan.Schedule
	team     *plan.Team // of a team: its members are the tasks; nil = the schedule has them
}

// A task is what is shown of it and what the schedule has to know of it.
type task struct {
	Task
	Group       int                `json:"group"`
	DependsOn   []swarm.Dependency `json:"depends_on,omitempty"`
	Awaits      []string           `json:"awaits,omitempty"`
	Concurrency int                `json:"concurrency,omitempty"`
	Began       time.Time          `json:"began,omitzero"` // when its running turn started
	agent       int                // its number in agents, or -1
}

// A group is a set of tasks that iterate together.
type group struct {
	Iteration  int   `json:"iteration"`
	Iterations int   `json:"iterations"`
	members    []int // tasks, by number
}

// Head is what is known of a run as a whole.
type Head struct {
	ID        swarm.RunID      `json:"id"`
	Kind      swarm.RunKind    `json:"kind,omitempty"`
	Name      string           `json:"name,omitempty"` // the pipeline's, or what was asked
	Dir       string           `json:"dir,omitempty"`
	File      string           `json:"file,omitempty"`
	Args      []string         `json:"args,omitempty"`
	Version   string           `json:"version,omitempty"` // of the program that started it
	Loops     string           `json:"loops,omitempty"`
	Replay    bool             `json:"replay,omitempty"`
	From      swarm.RunID      `json:"from,omitempty"`  // the run that this one tries again
	Origin    *swarm.Origin    `json:"asked,omitempty"` // the message of another program by which it was begun
	Status    swarm.Status     `json:"status"`          // running, pausing, paused, completed, failed, cancelled or interrupted
	Exit      int              `json:"exit"`            // what `swarm up` exits with; means something when it has ended
	Reason    string           `json:"reason,omitempty"`
	Report    string           `json:"report,omitempty"` // of a team: what its lead has reported as done
	Started   time.Time        `json:"started,omitzero"`
	Ended     time.Time        `json:"ended,omitzero"`
	Owner     swarm.Ownership  `json:"owner,omitzero"` // who drove it last; whether that process lives is for others to say
	Budget    swarm.Budget     `json:"budget,omitzero"`
	Spent     string           `json:"spent,omitempty"` // which part of the budget ran out, or ""
	Seq       int64            `json:"seq"`             // of the last event
	Time      time.Time        `json:"time,omitzero"`   // of the last event
	Notices   []Notice         `json:"notices,omitempty"`
	Snapshots []swarm.Snapshot `json:"trees,omitempty"`
	// Approvals are what agents want a person to allow.
	Approvals []Approval `json:"approvals,omitempty"`
}

// An Approval is something that an agent wants to do, and that nobody has allowed or refused yet.
type Approval struct {
	swarm.Approval
	Agent string       `json:"agent"`
	Task  string       `json:"task"`
	Turn  swarm.TurnID `json:"turn"`
	Asked time.Time    `json:"asked"`
}

// A Notice is something that a person should know. The last few are kept.
type Notice struct {
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	Task   string    `json:"task,omitempty"`
	Agent  string    `json:"agent,omitempty"`
	Reason string    `json:"reason"`
	Hint   string    `json:"hint,omitempty"`

	Code   swarm.MessageCode `json:"code,omitempty"`   // what it says, for those who decide by it
	Paused bool              `json:"paused,omitempty"` // the run has paused by itself for it
}

const keptNotices = 20

// A Task is where a task stands in its group's current iteration, and what it has made so far.
type Task struct {
	Name       string          `json:"name"`
	Base       string          `json:"base,omitempty"` // the name without the copy's number, when it is a copy
	Agent      string          `json:"agent"`
	Status     swarm.Status    `json:"status"`
	Waits      []Wait          `json:"waits,omitempty"` // for whom and why, when it waits
	Iteration  int             `json:"iteration"`
	Iterations int             `json:"iterations"`
	Attempt    int             `json:"attempt"`          // of its last turn in this iteration
	Turn       swarm.TurnID    `json:"turn,omitempty"`   // its last one
	Started    time.Time       `json:"started,omitzero"` // in this iteration
	Ended      time.Time       `json:"ended,omitzero"`
	Busy       time.Duration   `json:"busy_ns,omitempty"` // how long its turns took, over all iterations
	Kind       swarm.ErrorKind `json:"kind,omitempty"`    // why it failed, was skipped, was cancelled or is tried again
	Reason     string          `json:"reason,omitempty"`
	Hint       string          `json:"hint,omitempty"` // what can be done about its last turn
	Provider   string          `json:"provider,omitempty"`
	Model      string          `json:"model,omitempty"`
	Output     Output          `json:"output,omitzero"` // the last one, good or failed
	Good       Output          `json:"good,omitzero"`   // the last one of a turn that did what was asked
	Usage      swarm.Usage     `json:"usage,omitzero"`

	awaitsPerson bool // it waits for a person, and nothing but that; mail would give it a turn all the same
}

// An Output is what a turn made.
type Output struct {
	Hash  swarm.Hash   `json:"hash"`  // what is kept of it
	Turn  swarm.TurnID `json:"turn"`  //
	Bytes int64        `json:"bytes"` // how long it was before it was cut to what is kept
}

// An Agent is where an agent stands.
type Agent struct {
	Name     string       `json:"name"`
	Base     string       `json:"base,omitempty"`
	Provider string       `json:"provider,omitempty"`
	Model    string       `json:"model,omitempty"`
	Status   swarm.Status `json:"status"`            // idle, running, streaming, waiting, blocked; failed or cancelled when it has ended
	Task     string       `json:"task,omitempty"`    // the one it runs, waits with or is blocked on
	Turn     swarm.TurnID `json:"turn,omitempty"`    // the one that it has now
	Waits    []Wait       `json:"waits,omitempty"`   // for whom, since when and why
	Reason   string       `json:"reason,omitempty"`  // why it has ended
	Session  string       `json:"session,omitempty"` // its provider's
	Active   time.Time    `json:"last_activity,omitzero"`
	Usage    swarm.Usage  `json:"usage,omitzero"`

	// How it can be reached, and what it does: who drives the run, and what a running turn says, is not in the log.
	Connection Connection `json:"connection,omitempty"`
	Stream     Stream     `json:"stream,omitempty"`
}

// A Connection is how an agent can be reached.
type Connection string

// How it can be.
const (
	Connected    Connection = "connected"    // it has a turn
	IdleAgent    Connection = "idle"         // it waits for one
	Disconnected Connection = "disconnected" // nobody drives its run
)

// A Stream is what an agent does that has a turn.
type Stream string

// What it can do.
const (
	Reading Stream = "reading" // it has its prompt, and has said nothing since
	Writing Stream = "writing"
)

// A Wait is one reason why a task does not run.
type Wait = plan.Wait

// A Picture is what a run looks like at a moment. It may be kept and given away.
type Picture struct {
	Head   `json:"run"`
	Tasks  []Task         `json:"tasks"`
	Agents []Agent        `json:"agents"`
	Edges  []swarm.Edge   `json:"edges"` // of its plans; dependencies give an edge, too
	Usage  swarm.Usage    `json:"usage"`
	Mail   map[string]Box `json:"-"` // by agent, in a team; Collect knows all of it
}

// New makes the fold of a run of which no event is known yet.
func New(id swarm.RunID) *Run {
	return &Run{Head: Head{ID: id, Status: swarm.Running}, agentAt: map[string]int{}, sched: plan.NewFollower()}
}

// Len is how many tasks there are.
func (r *Run) Len() int { return len(r.tasks) }

// At is the i-th task as it stands now.
func (r *Run) At(i int) Task {
	t := r.tasks[i].Task
	t.Status, t.Waits = r.standing(i)
	if end := r.ended(t.Agent); end != nil && t.Status.Ended() {
		t.Kind, t.Reason = end.Kind, end.Reason
	}
	for _, a := range r.Approvals {
		if a.Task != t.Name {
			continue
		}
		w := Wait{For: plan.ForPerson, Since: a.Asked, Reason: "may it " + DescribeApproval(a.Approval) + "? swarm approve " + a.ID}
		switch {
		case a.Retry != nil: // which says why, too
			t.Waits = []Wait{w}
		case a.Growth == nil:
			t.Waits = append(t.Waits, w)
		case t.Status != swarm.Waiting: // who has a growth request goes on without it, while there is something to do
		case t.Waits[0].For == plan.ForMail:
			t.Waits, t.awaitsPerson = []Wait{w}, true
		default:
			t.Waits = append(t.Waits, w)
		}
	}
	return t
}

// Task is the task with this name as it stands now.
func (r *Run) Task(name string) (Task, bool) {
	i, ok := r.find(name)
	if !ok {
		return Task{}, false
	}
	return r.At(i), true
}

// find is the number of the task with this name.
func (r *Run) find(name string) (int, bool) { return r.machine().Find(name) }

// A machine knows where tasks stand: the schedule of a pipeline, or a team.
type machine interface {
	Find(name string) (int, bool)
	Standing(i int) (swarm.Status, []plan.Wait)
}

func (r *Run) machine() machine {
	if r.team != nil {
		return r.team
	}
	return r.sched
}

// standing is the task's status as it is shown: one that could run but for somebody or something is waiting.
func (r *Run) standing(i int) (swarm.Status, []Wait) {
	st, waits := r.machine().Standing(i)
	return st, slices.Clone(waits) // a picture may be kept
}

// ended is why an agent of a team has no turn any more; nil = it has.
func (r *Run) ended(agent string) *swarm.AgentEnd {
	if r.team == nil {
		return nil
	}
	if m := r.team.Member(agent); m != nil {
		return m.End
	}
	return nil
}

// Picture is what the run looks like now.
func (r *Run) Picture() Picture {
	p := Picture{Head: r.Head, Usage: r.Usage, Tasks: make([]Task, len(r.tasks)), Agents: append([]Agent{}, r.agents...), Edges: append([]swarm.Edge{}, r.edges...)}
	if len(r.boxes) > 0 {
		p.Mail = make(map[string]Box, len(r.boxes))
		for name, b := range r.boxes {
			b.Inbox = append([]int64(nil), b.Inbox...)
			p.Mail[name] = b
		}
	}
	p.Args = append([]string(nil), r.Args...)
	p.Notices = append([]Notice(nil), r.Notices...)
	p.Snapshots = append([]swarm.Snapshot(nil), r.Snapshots...)
	p.Approvals = append([]Approval(nil), r.Approvals...)
	for i := range r.tasks {
		p.Tasks[i] = r.At(i)
		if a := r.tasks[i].agent; a >= 0 {
			p.Agents[a].involve(&p.Tasks[i])
		}
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		if end := r.ended(a.Name); end != nil && !p.Status.Ended() {
			a.Status, a.Reason = swarm.Failed, end.Reason
			if end.Kind == swarm.CutByCancel {
				a.Status = swarm.Cancelled
			}
		}
	}
	if p.Status == swarm.Running && p.Reason == "" {
		p.Reason = r.stuck(&p)
	}
	if p.Status == swarm.Interrupted {
		p.stand()
	}
	return p
}

// involve has an agent's status follow from its tasks: of several the most telling one.
func (a *Agent) involve(t *Task) {
	if t.InTurn() {
		a.Turn = t.Turn
	}
	if st := t.AgentStatus(); st != swarm.Pending && Telling(st) > Telling(a.Status) {
		a.Status, a.Task, a.Waits = st, t.Name, t.Waits
	}
}

// AgentStatus is what a task says about its agent, which is idle when the task is not, or has ended.
func (t *Task) AgentStatus() swarm.Status {
	switch {
	case t.Status.Ended():
		return swarm.Idle
	case len(t.Waits) > 0 && t.Waits[0].For == plan.ForPerson && !t.awaitsPerson:
		return swarm.Blocked
	case len(t.Waits) > 0 && t.Waits[0].For == plan.ForMail:
		return swarm.Idle
	}
	return t.Status
}

// Telling says which of several tasks says most about their agent: the higher the more.
func Telling(s swarm.Status) int {
	return slices.Index([]swarm.Status{swarm.Idle, swarm.Pending, swarm.Interrupted, swarm.Waiting, swarm.Running, swarm.Blocked}, s)
}

// InTurn says whether a task has a turn, perhaps to wait for others in it.
func (t *Task) InTurn() bool {
	return t.Status == swarm.Running || len(t.Waits) > 0 && t.Waits[0].For == plan.ForAgents
}

// Abandoned is the picture of a run whose owner is gone without a word: interrupted, if it had not ended.
func (p Picture) Abandoned(reason string) Picture {
	if p.Status.Ended() || p.Status == swarm.Interrupted {
		return p
	}
	p.Status, p.Reason = swarm.Interrupted, reason
	p.Tasks, p.Agents = append([]Task{}, p.Tasks...), append([]Agent{}, p.Agents...)
	p.stand()
	return p
}

// stand says of what ran that it does not: nobody drives the run.
func (p *Picture) stand() {
	inTurn := func(w Wait) bool { return w.For == plan.ForAgents }
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.InTurn() {
			t.Status, t.Reason = swarm.Pending, "its turn was cut, and runs again on resume"
			t.Waits = slices.DeleteFunc(slices.Clone(t.Waits), inTurn)
		}
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		if a.Status == swarm.Running || slices.ContainsFunc(a.Waits, inTurn) {
			a.Status, a.Waits = swarm.Idle, nil
		}
		a.Turn = ""
	}
}
