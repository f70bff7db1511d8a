// Package view folds a run's events into a picture of it: the state of the run, its tasks and
// agents, who waits for whom and why, the outputs and the cost. Every door shows runs by this
// package, so that all of them show the same. It does no I/O and reads no clock: the same events
// always give the same picture.
//
// A [Run] is the fold. It takes one event at a time. Its size grows with the plan and not with the
// log, so it can be stored ([Run.Marshal]) and continued later. A [Picture] is its state at one
// moment; it shares no memory with the Run. Details that grow with the log, above all the list of
// turns, are collected by a pass over the log on request: [Collect].
package view

import (
	"slices"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A Run is the fold of a run's events so far. It belongs to one goroutine, so it has no mutex.
type Run struct {
	Head
	Usage swarm.Usage // of all turns that have ended

	tasks   []task // by their numbers in the schedule
	agents  []Agent
	agentAt map[string]int
	edges   []Edge            // of all plans, each once
	edgeAt  map[[2]string]int // by its two ends, in both orders
	// questions are the newest that agents have asked a person.
	questions []question
	boxes     map[string]Box      // by agent, in a team
	actions   map[string][]Action // by task or agent, "" = on the whole run; the newest of each
	groups    []group
	planned   bool         // a plan was added
	parallel  int          // turns at once; 0 = no limit
	pause     swarm.Status // pausing, paused, or "" when turns may start; outlasts an interruption
	pausedAt  time.Time
	retries   []int // tasks that wait for their next attempt, unordered because there are few
	sched     *plan.Schedule
	plans     []*swarm.Plan // held, so that the other readers of this process share them
	team      *plan.Team    // of a team: its members are the tasks; nil = a pipeline, see sched
	findings  []Finding     // the newest of a swarm
}

// A task is the public state of a task and what the schedule needs to be restored.
type task struct {
	Task
	Group       int                `json:"group"`
	DependsOn   []swarm.Dependency `json:"depends_on,omitempty"`
	Awaits      []string           `json:"awaits,omitempty"`
	Concurrency int                `json:"concurrency,omitempty"`
	Began       time.Time          `json:"began,omitzero"`    // when its running turn started
	Reserved    swarm.Usage        `json:"reserved,omitzero"` // by its running turn, which counts if a crash cuts it
	Outside     *Wait              `json:"outside,omitempty"` // the wait for the external worker at the desk of its running turn; nil = swarm started the worker
	agent       int                // index into agents, or -1
}

// A group is a set of tasks that iterate together.
type group struct {
	Iteration  int   `json:"iteration"`
	Iterations int   `json:"iterations"`
	members    []int // tasks, by number
}

// Head is the state of a run as a whole.
type Head struct {
	ID        swarm.RunID      `json:"id"`
	Kind      swarm.RunKind    `json:"kind,omitempty"`
	Name      string           `json:"name,omitempty"` // the pipeline's name, or the request
	Dir       string           `json:"dir,omitempty"`
	File      string           `json:"file,omitempty"`
	Args      []string         `json:"args,omitempty"`
	Version   string           `json:"version,omitempty"` // of the program that started it
	Loops     string           `json:"loops,omitempty"`
	Replay    bool             `json:"replay,omitempty"`
	From      swarm.RunID      `json:"from,omitempty"`      // the run that this one retries
	Origin    *swarm.Origin    `json:"asked,omitempty"`     // the message of another program that began it
	Key       string           `json:"key,omitempty"`       // the key of the MCP client that began it
	Workspace string           `json:"workspace,omitempty"` // of a swarm: the folder of its agents' files
	Status    swarm.Status     `json:"status"`              // running, pausing, paused, completed, failed, cancelled or interrupted
	Exit      int              `json:"exit"`                // the exit code of `swarm up`; valid when the run has ended
	Reason    string           `json:"reason,omitempty"`
	Report    string           `json:"report,omitempty"`    // of a team: its lead's report
	Goal      *Goal            `json:"goal,omitempty"`      // of a team: how it is seen that its goal is reached; only a picture has it
	Answer    swarm.TurnID     `json:"answer,omitempty"`    // of a swarm: the turn that holds the answer
	Unsourced bool             `json:"unsourced,omitempty"` // the answer names no source; only a report knows it, which reads the answer
	Swarm     *SwarmLimits     `json:"swarm,omitempty"`
	Started   time.Time        `json:"started,omitzero"`
	Ended     time.Time        `json:"ended,omitzero"`
	Paused    time.Duration    `json:"-"`              // how long it was paused, without the pause that lasts
	Since     time.Time        `json:"-"`              // when the pause that lasts began; zero = it is not paused
	Owner     swarm.Ownership  `json:"owner,omitzero"` // the last process that drove it; the log does not know if it lives
	Budget    swarm.Budget     `json:"budget,omitzero"`
	Spent     string           `json:"spent,omitempty"` // which part of the budget ran out, or ""
	Seq       int64            `json:"seq"`             // of the last event
	Time      time.Time        `json:"time,omitzero"`   // of the last event
	Notices   []Notice         `json:"notices,omitempty"`
	Snapshots []swarm.Snapshot `json:"trees,omitempty"`
	// Approvals are the approvals that wait for a person.
	Approvals []Approval `json:"approvals,omitempty"`
	// Actions are in a [Report] only, because they grow with the log.
	Actions []Action `json:"actions,omitempty"`
}

// Elapsed returns how long the run has taken at a moment. Its clock stops while it is paused.
func (h *Head) Elapsed(now time.Time) time.Duration {
	return swarm.RunSummary{Started: h.Started, Ended: h.Ended, Pauses: h.Paused, Since: h.Since}.Elapsed(now)
}

// endPause adds the pause that lasts to the time of all pauses.
func (h *Head) endPause(now time.Time) {
	if !h.Since.IsZero() {
		h.Paused, h.Since = h.Paused+now.Sub(h.Since), time.Time{}
	}
}

// SwarmLimits bound the work of a swarm.
type SwarmLimits struct {
	Workers    int `json:"workers"`    // agents that work at once
	Iterations int `json:"iterations"` // of one agent
	MaxAgents  int `json:"max_agents"` // with those that join later
	plan.Bound     // what the run may use, as far as its prices are known
	// Strategy says how the query is answered; "" = by a team.
	Strategy swarm.Strategy `json:"strategy,omitempty"`
	// Coordination is how many tokens went into coordination: the supervisor's turns, and the
	// iterations in which agents write, publish or ask for help. The others are work.
	Coordination int64 `json:"coordination_tokens"`
	// TaskList has the entries of the task list that agents have added. The tasks have the others.
	TaskList []TaskEntry `json:"task_list,omitempty"`
}

// An Approval is an approval that no person has answered yet.
type Approval struct {
	swarm.Approval
	Agent string       `json:"agent"`
	Task  string       `json:"task"`
	Turn  swarm.TurnID `json:"turn"`
	Asked time.Time    `json:"asked"`
	Text  string       `json:"text"` // as [DescribeApproval]
}

// A Notice is something that a person should know. A Run keeps the newest.
type Notice struct {
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	Task   string    `json:"task,omitempty"`
	Agent  string    `json:"agent,omitempty"`
	Reason string    `json:"reason"`
	Hint   string    `json:"hint,omitempty"`

	Code   swarm.MessageCode `json:"code,omitempty"`   // the message's code, for decisions
	Paused bool              `json:"paused,omitempty"` // the run paused itself because of it
}

const keptNotices = 20

// Tries returns how many attempts of this iteration have begun. The budget had no room for the others,
// so they do not count for people.
func (t *Task) Tries() int { return t.Attempt - t.Crowded }

// A Task is the state of a task in its group's current iteration, with its results so far.
type Task struct {
	Name       string          `json:"name"`
	Base       string          `json:"base,omitempty"` // the name without the copy's number, if it is a copy
	Agent      string          `json:"agent"`
	Status     swarm.Status    `json:"status"`
	Waits      []Wait          `json:"waits,omitempty"` // what it waits for and why
	Iteration  int             `json:"iteration"`
	Iterations int             `json:"iterations"`
	Attempt    int             `json:"attempt"`           // of its last turn in this iteration
	Crowded    int             `json:"crowded,omitempty"` // how many attempts of this iteration never began, for lack of room in the budget
	Turn       swarm.TurnID    `json:"turn,omitempty"`    // its last turn
	Started    time.Time       `json:"started,omitzero"`  // in this iteration
	Ended      time.Time       `json:"ended,omitzero"`
	Busy       time.Duration   `json:"busy_ns,omitempty"` // total time of its turns, over all iterations
	Kind       swarm.ErrorKind `json:"kind,omitempty"`    // why it failed, was skipped, was cancelled or is retried
	Reason     string          `json:"reason,omitempty"`
	Hint       string          `json:"hint,omitempty"` // what to do about its last turn
	Provider   string          `json:"provider,omitempty"`
	Model      string          `json:"model,omitempty"`
	Output     Output          `json:"output,omitzero"` // of its last turn, successful or not
	Good       Output          `json:"good,omitzero"`   // of its last turn that succeeded
	Usage      swarm.Usage     `json:"usage,omitzero"`
	// DependsOn are the tasks that it waits for. Only a picture has them here.
	DependsOn []swarm.Dependency `json:"depends_on,omitempty"`
	Final     bool               `json:"-"` // no other task depends on it; set when the run has ended

	// The fields below are those of a worker of a swarm. Its iterations are its turns.
	Subtask *swarm.Subtask `json:"subtask,omitempty"`
	Doing   string         `json:"doing,omitempty"`   // its last action, in words
	Outcome swarm.Outcome  `json:"outcome,omitempty"` // how it ended; Reason says why
	Dropped bool           `json:"dropped,omitempty"` // a person has taken its subtask out of the plan, or denied the plan that adds it

	// awaitsPerson says that it waits for nothing but a person's answer. Mail would still give it a
	// turn.
	awaitsPerson bool
	reserved     swarm.Usage // by its running turn
	began        time.Time   // the start of its running turn
}

// An Output is the output of a turn.
type Output struct {
	Hash  swarm.Hash   `json:"hash"`  // the stored part
	Turn  swarm.TurnID `json:"turn"`  //
	Bytes int64        `json:"bytes"` // its length before it was cut to the stored part
}

// An Agent is the state of an agent.
type Agent struct {
	Name     string         `json:"name"`
	Base     string         `json:"base,omitempty"`
	Provider string         `json:"provider,omitempty"`
	Model    string         `json:"model,omitempty"`
	OnLimit  *swarm.OnLimit `json:"on_limit,omitempty"` // what it does at a limit of its provider; nil = it waits
	Status   swarm.Status   `json:"status"`             // idle, running, streaming, waiting, blocked; failed or cancelled if it has ended
	Task     string         `json:"task,omitempty"`     // the task that it runs, waits with or is blocked on
	Turn     swarm.TurnID   `json:"turn,omitempty"`     // its running turn
	Waits    []Wait         `json:"waits,omitempty"`    // what it waits for, since when and why
	Reason   string         `json:"reason,omitempty"`   // why it has ended
	Session  string         `json:"session,omitempty"`  // its provider's session
	Active   time.Time      `json:"last_activity,omitzero"`
	Usage    swarm.Usage    `json:"usage,omitzero"`
	Context  *Context       `json:"context,omitempty"` // of its last turn; nil = not known
	Inbox    *Inbox         `json:"inbox,omitempty"`   // in a team; only a picture has it

	// The fold leaves these empty: they depend on the run's driver and on streams, which are not in
	// the log.
	Connection Connection `json:"connection,omitempty"`
	Stream     Stream     `json:"stream,omitempty"`
}

// A Connection says whether an agent can be reached.
type Connection string

// The states of a connection.
const (
	Connected    Connection = "connected"    // it has a turn
	IdleAgent    Connection = "idle"         // it waits for a turn
	Disconnected Connection = "disconnected" // its run has no driver
)

// A Stream says what an agent does in its turn.
type Stream string

// The states of a stream.
const (
	Reading Stream = "reading" // it has its prompt and has produced no output yet
	Writing Stream = "writing"
)

// A Wait is one reason why a task does not run.
type Wait = plan.Wait

// An Edge is a path between two agents, and how much it was used. An edge in both directions counts
// both.
type Edge struct {
	swarm.Edge
	Handoffs int64 `json:"handoffs"`           // envelopes along it
	LastSeq  int64 `json:"last_seq,omitempty"` // the event of the newest
}

// A Context is how full the context of an agent's model is: the tokens of its last request and the
// answer to it.
type Context struct {
	Tokens int64 `json:"tokens"`
	Window int64 `json:"window,omitempty"` // the most that the model takes; 0 = not known
}

// An Inbox is the mail that an agent has not seen yet.
type Inbox struct {
	Unread int       `json:"unread"`
	Oldest time.Time `json:"oldest,omitzero"` // when the oldest of it was stored
}

// A Picture is the state of a run at one moment. It shares no memory with the fold, so callers may
// keep it.
type Picture struct {
	Head   `json:"run"`
	Tasks  []Task         `json:"tasks"`
	Agents []Agent        `json:"agents"`
	Edges  []Edge         `json:"edges"` // of its plans; dependencies are edges, too
	Usage  swarm.Usage    `json:"usage"`
	Votes  []Vote         `json:"votes,omitempty"` // of a council that has voted, the best answer first
	Tie    bool           `json:"tie,omitempty"`   // the first two of these are level
	Mail   map[string]Box `json:"-"`               // by agent, in a team; Collect has all mail
	// Findings are the newest of a swarm, oldest first; Collect has all of them.
	Findings []Finding `json:"-"`
}

// New returns the fold of a run without events.
func New(id swarm.RunID) *Run {
	r := &Run{Head: Head{ID: id, Status: swarm.Running}, agentAt: map[string]int{}, edgeAt: map[[2]string]int{}, sched: plan.NewFollower()}
	r.sched.Routes = r.route
	return r
}

// Len returns the number of tasks.
func (r *Run) Len() int { return len(r.tasks) }

// At returns the i-th task as it is now.
func (r *Run) At(i int) Task {
	t := r.tasks[i].Task
	t.reserved, t.began = r.tasks[i].Reserved, r.tasks[i].Began
	t.DependsOn = r.tasks[i].DependsOn // never changed, so that it can be shared
	t.Status, t.Waits = r.standing(i)
	if end := r.ended(t.Agent); end != nil && t.Status.Ended() {
		t.Kind, t.Reason, t.Outcome = end.Kind, end.Reason, end.Outcome
	}
	r.addEffort(&t)
	if w := r.tasks[i].Outside; w != nil && t.Status == swarm.Running {
		t.Waits = append(t.Waits, *w)
	}
	for _, a := range r.Approvals {
		if a.Task != t.Name {
			continue
		}
		w := Wait{For: plan.ForPerson, Since: a.Asked, Reason: AskApproval("it", a.Approval) + " swarm approve " + a.ID}
		switch {
		case a.Retry != nil: // its text says why, too
			t.Waits = []Wait{w}
		case a.Growth == nil:
			t.Waits = append(t.Waits, w)
		case t.Status != swarm.Waiting: // a growth request does not stop an agent that has work
		case t.Waits[0].For == plan.ForMail:
			t.Waits, t.awaitsPerson = []Wait{w}, true
		default:
			t.Waits = append(t.Waits, w)
		}
	}
	return t
}

// Task returns the task with this name as it is now.
func (r *Run) Task(name string) (Task, bool) {
	i, ok := r.find(name)
	if !ok {
		return Task{}, false
	}
	return r.At(i), true
}

// find returns the number of the task with this name.
func (r *Run) find(name string) (int, bool) { return r.machine().Find(name) }

// A machine knows the state of tasks: the schedule of a pipeline, or a team.
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

// standing returns the task's status for people. A task that is only held back by something is
// waiting.
func (r *Run) standing(i int) (swarm.Status, []Wait) {
	st, waits := r.machine().Standing(i)
	waits = slices.Clone(waits) // pictures share no memory with the fold
	for i := range waits {
		r.quote(&waits[i])
	}
	return st, waits
}

// ended returns why an agent of a team gets no more turns; nil = it gets them.
func (r *Run) ended(agent string) *swarm.AgentEnd {
	if r.team == nil {
		return nil
	}
	if m := r.team.Member(agent); m != nil {
		return m.End
	}
	return nil
}

// Picture returns the state of the run now.
func (r *Run) Picture() Picture {
	p := Picture{Head: r.Head, Usage: r.Usage, Tasks: make([]Task, len(r.tasks)),
		Agents: append([]Agent{}, r.agents...), Edges: append([]Edge{}, r.edges...)}
	if len(r.boxes) > 0 {
		p.Mail = make(map[string]Box, len(r.boxes))
		for name, b := range r.boxes {
			b.Inbox = append([]Unread(nil), b.Inbox...)
			p.Mail[name] = b
			p.Agents[r.agentAt[name]].Inbox = b.unseen()
		}
	}
	p.Findings = append([]Finding(nil), r.findings...)
	p.Swarm, p.Goal = r.withTaskList(), r.goal()
	tally := r.tally()
	p.Votes, p.Tie = tally.Votes, tally.Tie
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
		p.cutTurns()
	}
	if p.Status.Ended() {
		r.markFinal(p.Tasks)
	}
	return p
}

// markFinal marks the tasks that no other task depends on: their outputs are the results of the run.
func (r *Run) markFinal(tasks []Task) {
	needed := map[string]bool{}
	for i := range r.tasks {
		for _, d := range r.tasks[i].DependsOn {
			needed[d.Task] = true
		}
	}
	for i := range tasks {
		tasks[i].Final = !needed[tasks[i].Name]
	}
}

// HasTurn reports whether a turn of the task runs, whatever its status says about it.
func (t *Task) HasTurn() bool { return !t.began.IsZero() }

// TimeAt returns the time of the task's turns at a moment, over all iterations, with that of its
// running turn.
func (t *Task) TimeAt(now time.Time) time.Duration {
	if t.HasTurn() {
		return t.Busy + max(0, now.Sub(t.began))
	}
	return t.Busy
}

// involve updates an agent's status by one of its tasks. Of several tasks the most telling one
// counts.
func (a *Agent) involve(t *Task) {
	if t.InTurn() {
		a.Turn = t.Turn
	}
	if st := t.AgentStatus(); st != swarm.Pending && Telling(st) > Telling(a.Status) {
		a.Status, a.Task, a.Waits = st, t.Name, t.Waits
	}
}

// AgentStatus returns the status of a task's agent, as far as this task tells. The agent is idle if
// the task waits for mail or has ended.
func (t *Task) AgentStatus() swarm.Status {
	switch {
	case t.Status.Ended():
		return swarm.Idle
	case len(t.Waits) > 0 && t.Waits[0].For == plan.ForPerson && !t.awaitsPerson:
		return swarm.Blocked
	case t.AwaitsMail():
		return swarm.Idle
	}
	return t.Status
}

// Telling ranks statuses by how much they say about an agent: the highest one counts.
func Telling(s swarm.Status) int {
	return slices.Index([]swarm.Status{swarm.Idle, swarm.Pending, swarm.Interrupted, swarm.Waiting, swarm.Running, swarm.Blocked}, s)
}

// InTurn reports whether a task has a turn. Within it the agent may wait for others.
func (t *Task) InTurn() bool {
	return t.Status == swarm.Running || len(t.Waits) > 0 && t.Waits[0].For == plan.ForAgents
}

// AwaitsRetry reports whether a task waits for the command that retries it: a person has to decide, or a
// provider's limit holds it back.
func (t *Task) AwaitsRetry() bool {
	return t.Status == swarm.Waiting && (t.Waits[0].For == plan.ForPerson || t.Waits[0].For == plan.ForLimit)
}

// EndReason returns why a task of a pipeline or a line ended, and "" if a person cancelled it: its status
// says that.
func (t *Task) EndReason() string {
	if t.Status == swarm.Cancelled && t.Kind == swarm.CutByCancel {
		return ""
	}
	return t.Reason
}

// AsksPerson reports whether a task waits for a person: for a decision, or for an answer.
func (t *Task) AsksPerson() bool {
	return slices.ContainsFunc(t.Waits, func(w Wait) bool {
		return w.For == plan.ForPerson || w.For == plan.ForReply && w.Agent == swarm.User
	})
}

// AwaitsMail reports whether an agent of a team waits for nothing but its next message.
func (t *Task) AwaitsMail() bool { return len(t.Waits) > 0 && t.Waits[0].For == plan.ForMail }

// HeldBack returns the wait for the limit that resets first, if the run does nothing until then:
// some tasks wait for limits of providers, and nothing else runs, is about to, or waits for a person.
func (p *Picture) HeldBack() (first Wait, ok bool) {
	if p.Status != swarm.Running || len(p.Approvals) > 0 {
		return first, false
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		switch {
		case t.Status.Ended():
		case t.Status != swarm.Waiting:
			return Wait{}, false
		case t.Waits[0].For == plan.ForLimit:
			if !ok || t.Waits[0].Until.Before(first.Until) {
				first, ok = t.Waits[0], true
			}
		case t.Waits[0].For != plan.ForDependency && t.Waits[0].For != plan.ForOutput && t.Waits[0].For != plan.ForMail:
			return Wait{}, false
		}
	}
	return first, ok
}

// OutsideDesk returns the desk at which an external worker has to do the task's running turn; "" =
// there is none.
func (t *Task) OutsideDesk() string {
	for _, w := range t.Waits {
		if w.For == plan.ForWorker {
			return w.Reason
		}
	}
	return ""
}

// ResumeCommand returns what to type to resume the run. A replay needs its recording, and a session
// its lines.
func (p *Picture) ResumeCommand() string {
	switch {
	case p.Replay:
		return "swarm resume " + string(p.ID) + " --replay FILE"
	case p.Kind == swarm.LineRun:
		return "swarm repl --resume " + string(p.ID)
	}
	return "swarm resume " + string(p.ID)
}

// Abandoned returns the picture of a run whose driver has disappeared: interrupted, unless the run
// had ended.
func (p Picture) Abandoned(reason string) Picture {
	if p.Status.Ended() || p.Status == swarm.Interrupted {
		return p
	}
	p.Status, p.Reason = swarm.Interrupted, reason
	p.Tasks, p.Agents = append([]Task{}, p.Tasks...), append([]Agent{}, p.Agents...)
	p.cutTurns()
	return p
}

// cutTurns marks the running turns as cut, because the run has no driver.
func (p *Picture) cutTurns() {
	inTurn := func(w Wait) bool { return w.For == plan.ForAgents || w.For == plan.ForWorker }
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.InTurn() {
			t.Status, t.Reason, t.began = swarm.Pending, "its turn was cut, and runs again on resume", time.Time{}
			use := t.reserved.AsCut()
			t.Usage, p.Usage = t.Usage.Plus(use), p.Usage.Plus(use)
			if a := slices.IndexFunc(p.Agents, func(a Agent) bool { return a.Name == t.Agent }); a >= 0 {
				p.Agents[a].Usage = p.Agents[a].Usage.Plus(use)
			}
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
