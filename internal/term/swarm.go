package term

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/view"
)

// PlanLine says how a swarm answers its query, and what that takes at most. It is "" as long as the
// query is not divided.
func PlanLine(limits *view.SwarmLimits, tasks []view.Task) string {
	n := 0
	for i := range tasks {
		if tasks[i].Subtask != nil && !tasks[i].Dropped {
			n++
		}
	}
	if limits == nil || n == 0 {
		return ""
	}
	line, separator := "plan: "+Plural(n, "subtask"), ", "
	if limits.IsCouncil() {
		line = fmt.Sprintf("council: %d members answer independently, review each other, and vote", n)
		separator = "; "
	} else if at := min(n-longestChain(tasks)+1, limits.Workers); at > 1 {
		line += fmt.Sprintf(", %d at once", at)
	}
	line += separator + "at most " + Plural(limits.Iterations, "iteration")
	if n > 1 {
		line += " each"
	}
	if limits.Most.Calls == 0 {
		return line // of an older version
	}
	line += "; about " + bounded(limits.Planned) + ", at most " + bounded(limits.Most)
	if limits.Joining > 0 {
		line += " with " + Plural(limits.Joining, "more agent")
	}
	return line
}

// longestChain is the length of the longest chain of subtasks in which each waits for the previous
// one. At most one of them is worked on at a time. A plan has no cycles.
func longestChain(tasks []view.Task) (longest int) {
	at, length := map[string]*swarm.Subtask{}, map[string]int{}
	for i := range tasks {
		if s := tasks[i].Subtask; s != nil && !tasks[i].Dropped {
			at[s.ID] = s
		}
	}
	var chain func(id string) int
	chain = func(id string) int {
		s, known := at[id], length[id]
		if s == nil || known > 0 {
			return known
		}
		for _, need := range s.DependsOn {
			known = max(known, chain(need))
		}
		length[id] = known + 1
		return known + 1
	}
	for id := range at {
		longest = max(longest, chain(id))
	}
	return longest
}

// bounded describes what a swarm may use.
func bounded(u swarm.Usage) string {
	parts := []string{Plural(u.Calls, "call")}
	if u.Tokens() > 0 {
		parts = append(parts, Count(u.Tokens())+" tokens")
	}
	if u.USD > 0 {
		parts = append(parts, USD(u.USD))
	}
	return strings.Join(parts, " · ")
}

// CoordinationShare says which part of a swarm's tokens went into coordination, or "".
func CoordinationShare(p *view.Picture) string {
	share := p.CoordinationShare()
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of them for coordination", 100*share)
}

// SubtaskLine describes the subtask of a worker: what it is, and which agents must have ended before.
// That of each member of a council is the query itself, so its role says more.
func SubtaskLine(t *view.Task, tasks []view.Task, council bool) string {
	line := excerpt.Head(OneLine(t.Subtask.Description), maxReason)
	if council {
		line = "member " + t.Subtask.ID + " of the council"
	}
	var after []string
	for _, need := range t.Subtask.DependsOn {
		for i := range tasks {
			if s := tasks[i].Subtask; s != nil && s.ID == need {
				after = append(after, "@"+tasks[i].Agent)
			}
		}
	}
	var notes []string
	if t.Subtask.Role != "" {
		notes = append(notes, "as "+OneLine(t.Subtask.Role))
	}
	if len(after) > 0 {
		notes = append(notes, "after "+strings.Join(after, ", "))
	}
	if len(notes) > 0 {
		line += " (" + strings.Join(notes, ", ") + ")"
	}
	return line
}

// isAction says whether the text of a worker's turn is an action. People see its description, and
// not the JSON.
func isAction(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "```")
}

// doing describes what an agent of a swarm does in its turn. said is the last line of its output.
func (f Frame) doing(t *view.Task, said string) string {
	switch {
	case f.Swarm == nil:
		return said
	case t.Agent == swarm.Supervisor && PlanLine(f.Swarm, f.Tasks) == "":
		return "divides the query"
	case t.Agent == swarm.Supervisor:
		return "makes the answer"
	case said != "" && !isAction(said):
		return said
	case t.Doing != "":
		return OneLine(t.Doing)
	case t.Subtask != nil:
		return SubtaskLine(t, f.Tasks, f.Swarm.IsCouncil())
	}
	return ""
}

// work describes what a swarm does that does a task: what its supervisor does, or its plan.
func (f Frame) work() string {
	for i := range f.Tasks {
		if t := &f.Tasks[i]; t.Agent == swarm.Supervisor && t.InTurn() {
			return f.doing(t, "")
		}
	}
	return PlanLine(f.Swarm, f.Tasks)
}

// findingLines draws the newest findings of a swarm, in at most so many lines.
func (f Frame) findingLines(most int) (lines []string) {
	all := f.Findings
	if len(all) > most {
		all = all[len(all)-most:]
	}
	for _, found := range all {
		line := ansi.Truncate(OneLine("+ "+found.Agent+" found: "+found.Text), f.Width, "…")
		lines = append(lines, Paint(f.Color).With(Cyan, line))
	}
	return lines
}

// taskLines draws the entries of the task list that are not done, in at most so many lines.
func (f Frame) taskLines(most int) (lines []string) {
	if f.Swarm == nil {
		return nil
	}
	for _, e := range f.Swarm.TaskList {
		if e.State == string(swarm.OutcomeDone) || len(lines) >= most {
			continue
		}
		lines = append(lines, Paint(f.Color).With(Dim, ansi.Truncate("task list: "+describeEntry(&e), f.Width, "…")))
	}
	return lines
}

// describeEntry describes an entry of the task list in one line.
func describeEntry(e *view.TaskEntry) string {
	line := e.ID + " " + e.State
	if e.Agent != "" {
		line += " by @" + e.Agent
	}
	return line + ": " + OneLine(e.Description)
}

// printTasks prints the entries that agents add to the task list. If the agent's action is printed, it
// says what the entry is.
func (l *Lines) printTasks(e *swarm.Event) {
	p, _ := swarm.Body[swarm.Plan](e)
	if p.Swarm == nil {
		return
	}
	for _, s := range p.Swarm.Entries {
		v := l.tasks[s.For]
		if v == nil || s.Agent != "" {
			continue
		}
		text := "adds " + s.ID + " to the task list"
		if v.told == "" {
			text += ": " + excerpt.Head(OneLine(s.Description), maxReason)
		}
		l.label(s.For, text)
	}
}

// swarmEvent prints an event of a swarm, and reports whether there is nothing else to print of it.
func (l *Lines) swarmEvent(v *taskLines, e *swarm.Event) bool {
	if l.run.Swarm == nil {
		return false
	}
	t, _ := l.run.Task(e.Task)
	switch e.Kind {
	case swarm.TurnEnded:
		l.print.EndTurn(l.name(t.Name))
		v.hidden = unknown
		if end, _ := swarm.Body[swarm.CallEnd](e); end.Action != nil {
			v.told = e.Turn
			at := iteration(t) + " "
			if end.Action.Kind == swarm.ActReview {
				at = ""
			}
			l.label(t.Name, l.print.Paint.With(Dim, at)+OneLine(view.DescribeAction(end.Action)))
		}
	case swarm.ActionStarted:
		if start, _ := swarm.Body[swarm.ActionStart](e); start.Start > 1 {
			l.label(t.Name, l.print.Paint.With(Yellow, "runs its last action again: a crash cut it, so it may run twice"))
		}
	case swarm.ActionEnded:
		if end, _ := swarm.Body[swarm.CallEnd](e); end.Status != swarm.CallOK {
			l.label(t.Name, l.print.Paint.With(Yellow, "that failed: "+excerpt.Head(OneLine(end.Reason), maxReason)))
		}
	case swarm.TopicPublished, swarm.HandoffStored: // its action is printed already
		return v.told == e.Turn
	case swarm.TaskCompleted:
	case swarm.TaskFailed, swarm.TaskCancelled:
		return t.Outcome != "" // its end is printed already
	case swarm.AgentEnded:
		end, _ := swarm.Body[swarm.AgentEnd](e)
		switch {
		case end.Outcome == "":
			return false
		case end.Outcome == swarm.OutcomeDone && v.told != "": // its last action says so
			return true
		}
		l.label(t.Name, l.print.Paint.Status(t.Status, OneLine(view.DescribeOutcome(end.Outcome, end.Reason))))
	default:
		return false
	}
	return true
}

// printVote prints how a council has voted, once.
func (l *Lines) printVote() {
	if l.voted || !l.run.Swarm.IsCouncil() {
		return
	}
	if vote := l.run.DescribeVote(); vote != "" {
		l.voted = true
		l.label(runLabel, "vote: "+OneLine(vote))
	}
}

// printPlan prints the subtasks that are new, and the plan in one line if a person has taken some out.
func (l *Lines) printPlan() {
	var all []view.Task
	dropped := 0
	for i := range l.run.Len() {
		t := l.run.At(i)
		if all = append(all, t); t.Dropped {
			dropped++
		}
	}
	first := true
	if dropped != l.dropped {
		l.dropped, first = dropped, false
		l.label(runLabel, PlanLine(l.run.Swarm, all))
	}
	for i := range all {
		t := &all[i]
		v := l.tasks[t.Name]
		if t.Subtask == nil || v.planned {
			continue
		}
		if v.planned = true; first {
			first = false
			l.label(runLabel, PlanLine(l.run.Swarm, all))
		}
		l.label(t.Name, SubtaskLine(t, all, l.run.Swarm.IsCouncil()))
	}
}

// hides says whether the text of an agent's turn is not for people: an action, or the answer, which
// comes at the end of the run.
func (l *Lines) hides(task string, d swarm.Delta) bool {
	v := l.tasks[task]
	if l.run.Swarm == nil || v == nil || d.Kind != swarm.DeltaText {
		return false
	}
	if v.hidden == unknown && strings.TrimSpace(d.Text) != "" {
		v.hidden = shown
		if task == swarm.Supervisor && !l.ShowsAnswer || isAction(d.Text) {
			v.hidden = hidden
		}
	}
	return v.hidden != shown
}

// A visibility says whether the text of a turn is shown.
type visibility int

const (
	unknown visibility = iota
	shown
	hidden
)
