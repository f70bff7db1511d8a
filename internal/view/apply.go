package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/providerkind"
)

// Apply folds the next event. It ignores an event that was folded before. It refuses an event that
// comes too early, because a picture with a gap would be wrong without a sign. An error about the
// content of an event leaves the rest of the picture right, so folding may go on.
func (r *Run) Apply(e *swarm.Event) error {
	if e.Seq <= r.Seq {
		return nil
	}
	if e.Seq != r.Seq+1 {
		return swarm.Errorf(swarm.Storage, "event %d comes after event %d: what is between them is missing", e.Seq, r.Seq)
	}
	r.Seq, r.Time = e.Seq, e.Time
	r.releaseRetries()
	return cmp.Or(r.fold(e), r.foldTeam(e), r.foldMail(e), r.foldAgent(e), r.foldSwarm(e)) // all of them fold, even after an error
}

func (r *Run) fold(e *swarm.Event) error {
	switch e.Kind {
	case swarm.TaskStarted, swarm.TurnStarted, swarm.TurnEnded, swarm.TaskRetrying, swarm.LimitReached, swarm.TaskBlocked,
		swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		i, ok := r.find(e.Task)
		if !ok {
			return unusable(e, "no plan has the task %q", e.Task)
		}
		return r.foldTask(i, e)
	case swarm.TurnReserved:
		i, ok := r.find(e.Task)
		if !ok || !setUsage(&r.tasks[i].Reserved, e.Data) {
			return unusable(e, "no turn of a task %q reserves so", e.Task)
		}
	case swarm.DeskOpened:
		if i, ok := r.find(e.Task); ok {
			return r.tasks[i].openDesk(e)
		}
	case swarm.IterationStarted:
		return r.iterate(e)
	case swarm.PlanAdded:
		return r.addPlan(e)
	case swarm.Control:
		return cmp.Or(r.control(e), r.keepAction(e))
	case swarm.ApprovalAsked:
		return r.approval(e)
	case swarm.ApprovalAnswered:
		return cmp.Or(r.approval(e), r.keepAction(e))
	}
	return r.foldRun(e)
}

// foldTask folds an event about the i-th task.
func (r *Run) foldTask(i int, e *swarm.Event) (err error) {
	t := &r.tasks[i]
	var kind swarm.ErrorKind
	if e.Kind != swarm.TaskBlocked && e.Kind != swarm.TurnEnded && len(r.Approvals) > 0 { // its question about a retry is settled
		r.Approvals = slices.DeleteFunc(r.Approvals, func(a Approval) bool { return a.Retry != nil && a.Task == e.Task })
	}
	switch e.Kind {
	case swarm.TaskStarted:
		t.Started, t.Ended, t.Attempt, t.Crowded, t.Kind, t.Reason, t.Hint = e.Time, time.Time{}, 0, 0, "", "", ""
	case swarm.TurnStarted:
		err = t.turnStarted(r, e)
	case swarm.TurnEnded:
		kind, err = r.turnEnded(i, e)
	case swarm.TaskRetrying, swarm.LimitReached, swarm.TaskBlocked:
		err = t.why(e)
	case swarm.TaskCompleted:
		t.Ended, t.Kind, t.Reason = e.Time, "", ""
	default:
		t.Ended, t.Began, t.Reserved = e.Time, time.Time{}, swarm.Usage{}
		err = t.why(e)
	}
	if r.team == nil {
		err = cmp.Or(err, r.foldSchedule(i, e, kind))
	}
	return err
}

// foldSchedule passes an event about the i-th task to the schedule. kind is why its turn failed.
func (r *Run) foldSchedule(i int, e *swarm.Event, kind swarm.ErrorKind) error {
	switch e.Kind {
	case swarm.TaskStarted:
		r.sched.Started(i)
	case swarm.TurnStarted:
		r.sched.Again(i)
		r.sched.Started(i)
	case swarm.TurnEnded:
		if kind == swarm.CutToSpeak || kind == swarm.CutToReset { // the loop starts the next attempt without another event
			r.sched.Wait(i, plan.Wait{For: plan.ForRetry})
			r.sched.Again(i)
		}
	case swarm.TaskRetrying:
		return r.retrying(i, e)
	case swarm.LimitReached:
		r.sched.Wait(i, plan.Wait{For: plan.ForLimit})
		r.sched.Again(i) // the schedule holds it back
		return swarm.UseBody(e, func(l swarm.Limit) { r.sched.ReachLimit(l, e.Time) })
	case swarm.TaskBlocked:
		w := plan.Wait{For: plan.ForPerson, Reason: r.tasks[i].Reason}
		if r.sched.Task(i).OnFailure == swarm.FailFix {
			w.Reason += "; to try it again: swarm retry " + string(r.ID) + " --from " + e.Task
		}
		r.sched.Wait(i, w)
	case swarm.TaskCompleted:
		r.sched.Ended(i, swarm.Completed)
	default:
		r.sched.Ended(i, endOf(e.Kind))
	}
	return nil
}

func endOf(kind swarm.EventKind) swarm.Status {
	switch kind {
	case swarm.TaskFailed:
		return swarm.Failed
	case swarm.TaskSkipped:
		return swarm.Skipped
	}
	return swarm.Cancelled
}

// unusable returns the error of an event whose body is JSON but makes no sense.
func unusable(e *swarm.Event, format string, args ...any) error {
	return swarm.Errorf(swarm.Storage, "event %d (%s) cannot be used: %w", e.Seq, e.Kind, fmt.Errorf(format, args...))
}

// why reads kind and reason from a body.
func (t *task) why(e *swarm.Event) error {
	t.Kind, t.Reason = "", ""
	attempt := 0
	m, ok := members{rest: e.Data}, true
	for m.next() && ok {
		switch string(m.key) {
		case "attempt":
			ok = setInt(&attempt, m.value)
		case "room": // an agent of a swarm begins an iteration with its first attempt
			if t.Crowded++; attempt == 1 {
				t.Crowded = 1
			}
		case "kind":
			ok = set(&t.Kind, m.value)
		case "reason":
			ok = set(&t.Reason, m.value)
		}
	}
	if !ok || m.bad {
		return unusable(e, "its body is not as it should be")
	}
	return nil
}

func (t *task) turnStarted(r *Run, e *swarm.Event) error {
	t.Turn, t.Began, t.Reserved, t.Outside = e.Turn, e.Time, swarm.Usage{Calls: 1}, nil
	if t.Started.IsZero() { // an agent of a team starts with each turn, a task before its first turn
		t.Started = e.Time
	}
	t.Model, t.Hint = "", ""
	var in swarm.Inputs
	m, ok := members{rest: e.Data}, true
	for m.next() && ok {
		switch string(m.key) {
		case "attempt":
			ok = setInt(&t.Attempt, m.value)
		case "provider":
			ok = set(&t.Provider, m.value)
		case "model":
			ok = set(&t.Model, m.value)
		case "inputs":
			ok = json.Unmarshal(m.value, &in) == nil
		case "reserves":
			ok = setUsage(&t.Reserved, m.value)
		}
	}
	if t.Attempt == 1 {
		t.Crowded = 0
	}
	if r.team != nil {
		r.box(e.Agent, func(b *Box) { b.Reading = in.Upto })
	}
	if a := t.agent; a >= 0 {
		r.agents[a].Active = e.Time
	}
	if !ok || m.bad {
		return unusable(e, "the turn's start is not as it should be")
	}
	return nil
}

// openDesk records that the running turn waits for an external worker. The wait ends with the turn.
func (t *task) openDesk(e *swarm.Event) error {
	return swarm.UseBody(e, func(o swarm.DeskOpening) {
		if t.Outside = nil; o.Worker == swarm.ExternalWorker {
			t.Outside = &Wait{For: plan.ForWorker, Since: t.Began, Until: o.Until, Reason: o.Dir}
		}
	})
}

// turnEnded folds the end of a task's turn, and returns the kind of its failure.
func (r *Run) turnEnded(i int, e *swarm.Event) (kind swarm.ErrorKind, err error) {
	t := &r.tasks[i]
	var status swarm.CallState
	var usage swarm.Usage
	var out Output
	var session string
	var action swarm.ActionKind
	var unbegun bool
	var last swarm.Usage // of the last request of the turn, if the log has its requests
	if t.agent >= 0 {
		session = r.agents[t.agent].Session
	}
	m, ok := members{rest: e.Data}, true
	for m.next() && ok {
		switch string(m.key) {
		case "status":
			ok = setKnown(&status, m.value, swarm.CallOK, swarm.CallFailed, swarm.CallCut)
		case "kind":
			ok = set(&kind, m.value)
		case "output":
			ok = set(&out.Hash, m.value)
		case "bytes":
			ok = setInt(&out.Bytes, m.value)
		case "usage":
			ok = setUsage(&usage, m.value)
		case "session":
			ok = set(&session, m.value)
		case "hint":
			ok = set(&t.Hint, m.value)
		case "unbegun":
			unbegun = string(m.value) == "true"
		case "requests":
			ok = setLastUsage(&last, m.value)
		case "action":
			act := readAction(m.value)
			action, t.Doing = act.Kind, DescribeAction(&act)
		}
	}
	if !ok || m.bad {
		return kind, unusable(e, "the turn's end is not as it should be")
	}
	r.Approvals = slices.DeleteFunc(r.Approvals, func(a Approval) bool { return a.Turn == e.Turn && a.Growth == nil })
	if out.Hash != "" {
		out.Turn = e.Turn
		t.Output = out
		if status == swarm.CallOK {
			t.Good = out
		}
	}
	if !t.Began.IsZero() {
		t.Busy += e.Time.Sub(t.Began)
		t.Began = time.Time{}
	}
	if unbegun && t.Reserved.CutCalls > 0 { // its swarm does not go on, so nothing else counts what that has used
		r.addUsage(t, t.Reserved)
	}
	t.Turn, t.Reserved = e.Turn, swarm.Usage{}
	r.addUsage(t, usage)
	r.addCoordination(e.Agent, action, usage)
	if t.agent >= 0 {
		a := &r.agents[t.agent]
		a.Active, a.Session = e.Time, session
		if n := last.Tokens(); n > 0 { // a program tells the sum of its requests, which is no size of a context
			a.Context = &Context{n, providerkind.ContextWindow(t.Model)}
		}
	}
	if r.team != nil {
		t.Started = time.Time{}
	}
	return kind, nil
}

// addUsage adds what a turn of a task has used to all sums.
func (r *Run) addUsage(t *task, usage swarm.Usage) {
	t.Usage, r.Usage = t.Usage.Plus(usage), r.Usage.Plus(usage)
	if t.agent >= 0 {
		r.agents[t.agent].Usage = r.agents[t.agent].Usage.Plus(usage)
	}
}

// approval folds an approval and its answer.
func (r *Run) approval(e *swarm.Event) error {
	a, err := swarm.Body[swarm.Approval](e)
	if err != nil {
		return err
	}
	r.Approvals = slices.DeleteFunc(r.Approvals, func(o Approval) bool { return o.ID == a.ID })
	if e.Kind == swarm.ApprovalAsked {
		r.Approvals = append(r.Approvals, Approval{Approval: a, Agent: e.Agent, Task: e.Task, Turn: e.Turn, Asked: e.Time, Text: DescribeApproval(a)})
	}
	return nil
}

// setKnown is set for a string that is nearly always one of the given ones. It allocates nothing
// for those.
func setKnown[S ~string](to *S, value []byte, known ...S) bool {
	for _, k := range known {
		if len(value) == len(k)+2 && string(value[1:len(value)-1]) == string(k) {
			*to = k
			return true
		}
	}
	return set(to, value)
}

// retrying makes the task wait for its next attempt. Without a delay the schedule may start it at
// once.
func (r *Run) retrying(i int, e *swarm.Event) (err error) {
	t := &r.tasks[i]
	var after time.Duration
	for m := (members{rest: e.Data}); m.next(); {
		if string(m.key) == "after" && !setInt(&after, m.value) {
			err = unusable(e, "its delay is not as it should be")
		}
		if string(m.key) == "room" && r.team == nil { // a team knows it by itself
			r.sched.Wait(i, plan.Wait{For: plan.ForRoom, Since: e.Time, Reason: t.Reason})
			return err
		}
	}
	r.sched.Wait(i, plan.Wait{For: plan.ForRetry, Until: e.Time.Add(after), Reason: t.Reason})
	if after <= 0 {
		r.sched.Again(i)
	} else {
		r.retries = append(r.retries, i)
	}
	return err
}

// releaseRetries lets tasks run whose next attempt is due. The loop writes no event for that, so
// the time of other events decides.
func (r *Run) releaseRetries() {
	if len(r.retries) == 0 || r.pause != "" {
		return
	}
	later := r.retries[:0]
	for _, i := range r.retries {
		w, held := r.retryWait(i)
		switch {
		case !held:
		case r.Time.Before(w.Until):
			later = append(later, i)
		default:
			r.sched.Again(i)
		}
	}
	r.retries = later
}

// retryWait returns what the i-th task waits for, if that is its next attempt.
func (r *Run) retryWait(i int) (plan.Wait, bool) {
	if r.sched.Status(i) != swarm.Waiting {
		return plan.Wait{}, false
	}
	w := r.sched.Waits(i)[0]
	return w, w.For == plan.ForRetry
}

// iterate begins a group's next iteration. All its tasks are pending again and keep their outputs.
func (r *Run) iterate(e *swarm.Event) error {
	body, err := swarm.Body[swarm.Iteration](e)
	if err != nil {
		return err
	}
	if body.Group < 0 || body.Group >= len(r.groups) {
		return unusable(e, "there is no group %d", body.Group)
	}
	g := &r.groups[body.Group]
	if body.Iteration != g.Iteration+1 {
		return unusable(e, "iteration %d follows iteration %d", body.Iteration, g.Iteration)
	}
	g.Iteration++
	r.sched.Iterate(body.Group)
	for _, i := range g.members {
		t := &r.tasks[i]
		t.Iteration, t.Attempt, t.Crowded, t.Kind, t.Reason, t.Hint = g.Iteration, 0, 0, "", "", ""
		t.Started, t.Ended, t.Began = time.Time{}, time.Time{}, time.Time{}
	}
	return nil
}

// addPlan adds the tasks and agents of a plan, or of an addition to it.
func (r *Run) addPlan(e *swarm.Event) error {
	p, err := swarm.PlanOf(e)
	if err != nil {
		return err
	}
	r.plans = append(r.plans, p)
	team := r.team != nil || p.Team != nil
	if !team {
		if err := r.sched.Add(p); err != nil {
			return unusable(e, "%w", err)
		}
	}
	if !r.planned { // the first plan has the settings of the whole run
		r.planned, r.Budget, r.parallel = true, p.Budget, p.MaxParallel
	}
	if r.Name == "" {
		r.Name = p.Name
	}
	r.agents = slices.Grow(r.agents, len(p.Agents)) // one allocation for a plan of 10,000 tasks
	for _, a := range p.Agents {
		r.addAgent(Agent{Name: a.Name, Base: a.Base, Provider: a.Provider, Model: a.Model, OnLimit: a.OnLimit, Status: swarm.Idle})
	}
	for _, edge := range p.Edges {
		r.addEdge(edge)
	}
	if team {
		r.addMembers(e, p)
		return nil
	}
	first := len(r.groups)
	for _, g := range p.Groups {
		r.groups = append(r.groups, group{Iteration: 1, Iterations: max(1, g.Iterations)})
	}
	r.tasks = slices.Grow(r.tasks, len(p.Tasks))
	for _, t := range p.Tasks {
		g := first + t.Group
		r.addTask(task{Group: g, DependsOn: t.DependsOn, Awaits: t.Awaits, Concurrency: t.Concurrency, Task: Task{Name: t.Name, Base: t.Base, Agent: t.Agent,
			Status: swarm.Pending, Iteration: 1, Iterations: r.groups[g].Iterations, Model: t.Model}})
		r.groups[g].members = append(r.groups[g].members, len(r.tasks)-1)
	}
	return nil
}

// addEdge adds an edge once for each pair of agents, because each line of a session is a plan that
// names all edges again.
func (r *Run) addEdge(e swarm.Edge) {
	i, ok := r.edgeAt[[2]string{e.From, e.To}]
	if !ok {
		r.keepEdge(Edge{Edge: e})
		return
	}
	old := &r.edges[i]
	old.Both = old.Both || e.Both || old.From == e.To
}

// keepEdge adds an edge that is not there yet.
func (r *Run) keepEdge(e Edge) {
	r.edgeAt[[2]string{e.From, e.To}], r.edgeAt[[2]string{e.To, e.From}] = len(r.edges), len(r.edges)
	r.edges = append(r.edges, e)
}

func (r *Run) addAgent(a Agent) {
	if _, there := r.agentAt[a.Name]; !there {
		r.agentAt[a.Name] = len(r.agents)
		r.agents = append(r.agents, a)
	}
}

func (r *Run) addTask(t task) {
	t.agent = -1
	if a, ok := r.agentAt[t.Agent]; ok {
		t.agent = a
		if t.Provider == "" {
			t.Provider = r.agents[a].Provider
		}
		if t.Model == "" {
			t.Model = r.agents[a].Model
		}
	}
	r.tasks = append(r.tasks, t)
}

// control folds the commands whose effect no other event shows.
func (r *Run) control(e *swarm.Event) error {
	c, err := swarm.Body[swarm.ControlCommand](e)
	if err != nil {
		return err
	}
	switch {
	case c.Command == swarm.CommandCancel && c.Target == "" && r.pause != "":
		r.setPause("")
	case c.Command == swarm.CommandRetry && r.team == nil:
		for i := range r.tasks {
			t := &r.tasks[i]
			if c.Target != "" && c.Target != t.Name && c.Target != t.Base {
				continue
			}
			if waits := r.sched.Waits(i); len(waits) == 1 && waits[0].For == plan.ForPerson {
				r.sched.Again(i)
			}
		}
	}
	return nil
}

// foldRun folds an event about the run as a whole.
func (r *Run) foldRun(e *swarm.Event) error {
	switch e.Kind {
	case swarm.RunStarted:
		return swarm.UseBody(e, func(s swarm.RunStart) {
			r.ID, r.Kind, r.Name, r.Dir, r.File, r.Args = cmp.Or(r.ID, s.ID), s.Kind, s.Name, s.Dir, s.File, s.Args
			if s.NoFile {
				r.File = ""
			}
			r.Version, r.Loops, r.Replay, r.From, r.Origin, r.Key, r.Workspace, r.Started = s.Version, s.Loops, s.Replay, s.From, s.Origin, s.Key, s.Workspace, e.Time
		})
	case swarm.RunOwned:
		for i := range r.tasks { // their turns were cut with the process before, and start again
			if r.team == nil && r.sched.Task(i).Swarm != nil {
				r.tasks[i].Reserved = r.tasks[i].Reserved.AsCut()
				continue // its swarm goes on, and counts what it has used
			}
			r.addUsage(&r.tasks[i], r.tasks[i].Reserved.AsCut())
			r.tasks[i].Reserved = swarm.Usage{}
		}
		return swarm.UseBody(e, func(owner swarm.Ownership) {
			if r.Owner = owner; r.Status == swarm.Interrupted {
				r.Status, r.Reason = cmp.Or(r.pause, swarm.Running), ""
			}
		})
	case swarm.RunPausing:
		r.setPause(swarm.Pausing)
	case swarm.RunPaused:
		r.setPause(swarm.Paused)
		if r.Since.IsZero() { // running turns have finished
			r.Since = e.Time
		}
	case swarm.RunUnpaused:
		r.endPause(e.Time)
		r.setPause("")
		r.dropPauseNotices()
	case swarm.RunInterrupted:
		var why swarm.Reason
		if len(e.Data) > 0 {
			var err error
			if why, err = swarm.Body[swarm.Reason](e); err != nil {
				return err
			}
		}
		r.Status, r.Reason = swarm.Interrupted, why.Reason
	case swarm.RunEnded:
		return swarm.UseBody(e, func(end swarm.RunEnd) {
			r.dropPauseNotices()
			r.endPause(e.Time)
			r.Status, r.Exit, r.Reason, r.Report, r.Ended, r.Approvals = end.Status, end.Exit, end.Reason, end.Report, e.Time, nil
			r.Answer = end.Answer
		})
	case swarm.TreeRecorded:
		return swarm.UseBody(e, r.addSnapshot)
	case swarm.BudgetSpent, swarm.Notice:
		return r.foldNote(e)
	}
	return nil
}

// dropPauseNotices forgets why the run had paused.
func (r *Run) dropPauseNotices() {
	r.Notices = slices.DeleteFunc(r.Notices, func(n Notice) bool { return n.Paused })
}

// setPause sets how far the run is paused; "" = it goes on. Retries are delayed by the length of
// the pause, because the loop's timers stop meanwhile.
func (r *Run) setPause(pause swarm.Status) {
	switch {
	case pause != "" && r.pause == "":
		r.pausedAt = r.Time
	case pause == "" && r.pause != "":
		for _, i := range r.retries {
			if w, held := r.retryWait(i); held {
				w.Until = w.Until.Add(r.Time.Sub(r.pausedAt))
				r.sched.Wait(i, w)
			}
		}
		r.pausedAt = time.Time{}
	}
	r.pause = pause
	r.sched.Pause(pause != "")
	if r.Status = pause; pause == "" {
		r.Status = swarm.Running
	}
}

// foldNote folds notices and the end of the budget.
func (r *Run) foldNote(e *swarm.Event) error {
	why, err := notice(e)
	if err != nil {
		return err
	}
	if e.Kind == swarm.BudgetSpent {
		r.Spent = why.Reason
		return nil
	}
	r.Notices = append(r.Notices, Notice{e.Seq, e.Time, e.Task, e.Agent, why.Reason, why.Hint, why.Code, why.Paused})
	if n := len(r.Notices); n > keptNotices {
		r.Notices = append(r.Notices[:0], r.Notices[n-keptNotices:]...)
	}
	return nil
}

// notice returns the body of a notice. The log of an older program has no codes, so its keys
// replace them.
func notice(e *swarm.Event) (swarm.Reason, error) {
	n, err := swarm.Body[swarm.Reason](e)
	if n.Code == "" && strings.HasPrefix(e.Key, "held:") {
		n.Code = swarm.WaitsForPaused
	}
	n.Paused = n.Paused || strings.HasPrefix(e.Key, "circle:")
	return n, err
}

// Stalled reports whether an event says why a team made no progress.
func Stalled(e *swarm.Event) bool {
	if e.Kind != swarm.Notice {
		return false
	}
	n, _ := notice(e)
	return n.Code.Stall()
}

// addSnapshot keeps the first snapshot of the start and the last one of the end, because a run may
// be resumed and end again.
func (r *Run) addSnapshot(t swarm.Snapshot) {
	for i := range r.Snapshots {
		if r.Snapshots[i].When == t.When {
			if t.When != "start" {
				r.Snapshots[i] = t
			}
			return
		}
	}
	r.Snapshots = append(r.Snapshots, t)
}
