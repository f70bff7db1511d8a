package term

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/view"
)

// A Frame is everything that a board shows at one moment. Drawing it is a pure function of it.
type Frame struct {
	view.Picture
	selection
	Saying        map[string]Saying // the last lines of tasks, by name
	Children      map[string]Frame  // the swarms that do tasks now, by task
	Now           time.Time
	Width, Height int // of the terminal
	Color         bool
	Stops         int             // how often the user has asked to stop
	Trouble       string          // an error of the board itself
	Attached      bool            // another process drives the run
	Answers       bool            // keys answer questions
	Answered      map[string]bool // approvals whose answer is on its way, by id
}

// Saying is the last line of a running task.
type Saying struct {
	Line  string
	At    time.Time
	Usage swarm.Usage // of its running turn so far
}

// streamingFor is how long a task counts as streaming after it has said something.
const streamingFor = 2 * time.Second

// Draw draws the frame: a head, the rows that have room, and a foot, with newlines between lines.
func (f Frame) Draw() string {
	f.Width, f.Height = max(f.Width, 20), max(f.Height, 1)
	f.setStatus()
	rows := f.allRows()
	lines := []string{f.head()}
	if plan := PlanLine(f.Swarm, f.Tasks); plan != "" && f.Height > 6 {
		lines = append(lines, Paint(f.Color).With(Dim, ansi.Truncate(plan, f.Width, "…")))
	}
	var foot []string
	if f.Height > len(rows)+6 {
		room := f.Height - len(rows) - 6
		foot = append(foot, f.taskLines(min(3, room))...)
		foot = append(foot, f.findingLines(min(3, room-len(foot)))...)
	}
	if vote := f.DescribeVote(); vote != "" && f.Height > len(rows)+6 {
		foot = append(foot, ansi.Truncate("vote: "+OneLine(vote), f.Width, "…"))
	}
	if f.Height > 4 {
		foot = append(foot, f.noteLines(min(3, f.Height-4))...)
	}
	foot = append(foot, f.askLines()...)
	if f.Height > 3 && !f.Status.Ended() && f.Status != swarm.Interrupted {
		foot = append(foot, f.foot())
	}
	room := max(0, f.Height-1-len(lines)-len(foot)) // one line is the cursor's
	switch f.Mode {
	case showsTasks:
		lines = append(lines, f.rows(rows, room)...)
	case takesMessage:
		message := f.chosenLines(room)
		lines = append(lines, f.rows(rows, room-len(message))...)
		lines = append(lines, message...)
	default:
		said := f.chosenLines(room)
		lines = append(lines, said[:min(len(said), room)]...)
	}
	lines = append(lines, foot...)
	if most := max(1, f.Height-1); len(lines) > most { // the first line stays, and the end, which says what to do
		lines = append(lines[:1], lines[len(lines)-most+1:]...)
	}
	return strings.Join(lines, "\n")
}

// setStatus gives tasks the status that the board shows, and adds what their running turns have used.
func (f *Frame) setStatus() {
	f.Tasks = append([]view.Task(nil), f.Tasks...)
	for i := range f.Tasks {
		t := &f.Tasks[i]
		asks := t.Status == swarm.Running && len(f.blockingApprovals(t.Name)) > 0
		if s, ok := f.Saying[t.Name]; ok && t.InTurn() {
			t.Usage = t.Usage.Plus(s.Usage)
			f.Picture.Usage = f.Picture.Usage.Plus(s.Usage)
			if t.Status == swarm.Running && s.Line != "" && f.Now.Sub(s.At) < streamingFor {
				t.Status = swarm.Streaming
			}
		}
		switch {
		case asks:
			t.Status = swarm.Blocked
		case t.Status == swarm.Waiting && t.Waits[0].For == plan.ForMail:
			t.Status = swarm.Idle
		}
	}
}

// A boardRow is a task of a run, or an agent of the swarm that does one.
type boardRow struct {
	view.Task
	of    *Frame
	label string
}

// allRows returns the tasks, each with the agents of its swarm below it. The supervisor is left out
// unless it waits: the row of the task says what it does.
func (f *Frame) allRows() (rows []boardRow) {
	for _, t := range f.Tasks {
		rows = append(rows, boardRow{t, f, t.Name})
		child, ok := f.Children[t.Name]
		if !ok {
			continue
		}
		child.setStatus()
		f.Findings = append(f.Findings[:len(f.Findings):len(f.Findings)], child.Findings...)
		for _, row := range child.allRows() {
			if row.Agent == swarm.Supervisor && (row.InTurn() || len(child.Tasks) > 1) {
				continue
			}
			row.label = t.Name + "/" + row.label
			rows = append(rows, row)
		}
	}
	return rows
}

// head draws the first line: the run, its status, its time and its cost.
func (f Frame) head() string {
	h := Head{
		Name:    f.Name,
		ID:      f.ID,
		Status:  f.Status,
		Elapsed: f.elapsed(),
		Usage:   f.Picture.Usage,
		Calls:   callCount(f.Picture.Usage.Calls, f.Budget.Calls),
	}
	if h.Name == "" {
		h.Name = string(f.Kind)
	}
	return h.Line(Paint(f.Color), f.Width)
}

// withSuffix appends a suffix to a text that is not empty.
func withSuffix(text, name string) string {
	if text == "" {
		return ""
	}
	return text + name
}

// callCount formats the number of calls, and the budget's limit if there is one.
func callCount(n, most int64) string {
	switch {
	case most > 0:
		return strconv.FormatInt(n, 10) + " of " + Plural(most, "call")
	case n > 0:
		return Plural(n, "call")
	}
	return ""
}

// elapsed formats the time that the run has taken, in whole seconds until it has ended.
func (f Frame) elapsed() string {
	if f.Started.IsZero() {
		return ""
	}
	took := f.Elapsed(f.Now)
	if f.Ended.IsZero() {
		took = took.Truncate(time.Second)
	}
	return Duration(took)
}

// worked formats the time of a task's turns, in whole seconds while one runs. The table at the end of
// the run has the same time.
func (f Frame) worked(t *view.Task) string {
	d := t.TimeAt(f.Now)
	switch {
	case t.HasTurn():
		return Duration(d.Truncate(time.Second))
	case d == 0:
		return ""
	}
	return Duration(d)
}

// noteLines draws the most important note, in at most so many lines.
func (f Frame) noteLines(most int) []string {
	text := ""
	_, asks := f.question()
	switch n := len(f.Notices); {
	case f.Trouble != "":
		text = f.Trouble
	case f.Spent != "":
		text = "the budget is spent: " + f.Spent
	case f.Reason != "" && asks == 0: // else it only repeats the question
		text = f.Reason
	case n > 0 && f.Notices[n-1].Hint != "":
		text = f.Notices[n-1].Reason + " (" + f.Notices[n-1].Hint + ")"
	case n > 0:
		text = f.Notices[n-1].Reason
	default:
		return nil
	}
	lines := wrapWords("! "+OneLine(text), f.Width)
	if len(lines) > most {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1], ansi.Truncate(rest, f.Width-1, "")+"…")
	}
	for i := range lines {
		lines[i] = Paint(f.Color).With(Yellow, strings.TrimRight(lines[i], " "))
	}
	return lines
}

// foot draws the line that explains the keys, in a short form if there is little room.
func (f Frame) foot() string {
	keys := []string{"Ctrl-C stops the run, twice kills it · p pauses it · ? help", "Ctrl-C stops · p pauses · ? help"}
	_, asks := f.question()
	switch paused := f.Status == swarm.Pausing || f.Status == swarm.Paused; {
	case f.Mode == takesMessage:
		keys = []string{"Enter sends the message · Esc leaves it", "Enter sends · Esc leaves it"}
	case f.Mode == showsTask:
		keys = []string{"Esc back · ↑ ↓ another task · m writes to its agent · ? help", "Esc back · ↑ ↓ others · m writes"}
	case f.Mode == showsHelp:
		keys = []string{"Esc back", "Esc back"}
	case f.Attached && paused:
		keys = []string{"Ctrl-C leaves, and the run stays as it is · p lets it go on · ? help", "Ctrl-C leaves · p goes on · ? help"}
	case f.Attached:
		keys = []string{"Ctrl-C leaves, and the run goes on · p pauses it · ? help", "Ctrl-C leaves · p pauses · ? help"}
	case f.Stops > 0:
		keys = []string{"stopping: turns that run are being ended · Ctrl-C again kills them", "stopping · Ctrl-C again kills"}
	case paused:
		keys = []string{"Ctrl-C stops the run, twice kills it · p lets it go on · ? help", "Ctrl-C stops · p goes on · ? help"}
	}
	if asks > 0 && f.Mode == showsTasks {
		keys = []string{"a allows it · d denies it · " + keys[1], "a allows · d denies · ? help"}
	}
	text := keys[0]
	if ansi.StringWidth(text) > f.Width {
		text = keys[1]
	}
	return Paint(f.Color).With(Dim, ansi.Truncate(text, f.Width, "…"))
}

// rows draws the tasks. They are in the plan's order if all have room. Otherwise the most important
// ones are shown, and the number of others.
func (f Frame) rows(tasks []boardRow, room int) []string {
	if room <= 0 || len(tasks) == 0 {
		return nil
	}
	more := ""
	if len(tasks) > room {
		rank := func(r *boardRow) int {
			if r.of.Chosen == r.Name && f.Chosen != "" {
				return -2
			}
			return rank(&r.Task)
		}
		sort.SliceStable(tasks, func(i, k int) bool { return rank(&tasks[i]) < rank(&tasks[k]) })
		var words []string
		for _, t := range tasks[room-1:] {
			words = append(words, string(t.Status))
		}
		more = Paint(f.Color).With(Dim, Fit(More(words), f.Width))
		tasks = tasks[:room-1]
	}
	l := f.layout(tasks)
	var lines []string
	for i := range tasks {
		lines = append(lines, tasks[i].draw(l))
	}
	if more != "" {
		lines = append(lines, more)
	}
	return lines
}

// rank orders tasks by importance: the lower, the more important.
func rank(t *view.Task) int {
	switch t.Status {
	case swarm.Blocked:
		return -1
	case swarm.Running, swarm.Streaming:
		return 0
	case swarm.Failed:
		return 1
	case swarm.Waiting:
		if w := t.Waits[0].For; w == plan.ForPerson || w == plan.ForRetry || w == plan.ForLimit {
			return 1
		}
		return 3
	case swarm.Idle:
		return 3
	case swarm.Pending:
		return 2
	case swarm.Completed:
		return 4
	}
	return 5
}

// A layout has the widths of a board's columns; 0 = not shown.
type layout struct{ name, status, iteration, elapsed, tokens, detail int }

// layout gives the name the width that it needs, up to a quarter, and drops columns that have no
// room.
func (f Frame) layout(tasks []boardRow) layout {
	var l layout
	for i := range tasks {
		t := &tasks[i].Task
		l.name = max(l.name, ansi.StringWidth(OneLine(tasks[i].label)))
		l.iteration = max(l.iteration, len(iteration(*t)))
		l.elapsed = max(l.elapsed, len(f.worked(t)))
		l.tokens = max(l.tokens, len(Tokens(t.Usage)))
	}
	l.name = min(l.name, max(12, f.Width/4))
	if f.Width >= 56 {
		l.status = len(swarm.Completed)
	}
	if f.Width < 48 {
		l.tokens = 0
	}
	l.detail = f.Width - 2
	for _, w := range []int{l.name, l.status, l.iteration, l.elapsed, l.tokens} {
		if w > 0 {
			l.detail -= w + 2
		}
	}
	return l
}

// draw draws one row.
func (r *boardRow) draw(l layout) string {
	f, t := r.of, &r.Task
	p := Paint(f.Color)
	var b strings.Builder
	mark := " "
	if f.Chosen == t.Name && f.Mode != showsTask && f.Chosen != "" {
		mark = p.With(Bold, "▸")
	}
	b.WriteString(p.Status(t.Status, Sign(t.Status)) + mark)
	b.WriteString(PadRight(Fit(r.label, l.name), l.name))
	cell := func(width int, text string, style Style) {
		if width > 0 {
			b.WriteString("  " + blanks(text, width) + p.With(style, text))
		}
	}
	if l.status > 0 {
		b.WriteString("  " + p.Status(t.Status, PadRight(Fit(string(t.Status), l.status), l.status)))
	}
	cell(l.iteration, iteration(*t), Dim)
	cell(l.elapsed, f.worked(t), Unstyled)
	cell(l.tokens, Tokens(t.Usage), Unstyled)
	if text := f.detail(t, l.detail); l.detail >= 6 && text != "" {
		text = ansi.Truncate(text, l.detail, "…")
		if t.Status == swarm.Failed || t.Status == swarm.Blocked {
			text = p.Status(t.Status, text)
		} else {
			text = p.With(Dim, text)
		}
		b.WriteString("  " + text)
	}
	return strings.TrimRight(b.String(), " ")
}

// detail shows what else there is to say about a task: its question, its last line, its waits, its
// failure.
func (f Frame) detail(t *view.Task, width int) string {
	switch t.Status {
	case swarm.Blocked:
		return f.approvalDetail(t, width)
	case swarm.Running, swarm.Streaming:
		said := f.doing(t, OneLine(f.Saying[t.Name].Line))
		if child, ok := f.Children[t.Name]; ok {
			said = child.work()
		}
		if n := t.Tries(); n > 1 {
			said = strings.TrimRight("attempt "+strconv.Itoa(n)+": "+said, ": ")
		}
		return f.mailDetail(t, said)
	case swarm.Idle, swarm.Pending:
		if t.Subtask != nil {
			return f.doing(t, reason(t))
		}
		return f.mailDetail(t, reason(t))
	case swarm.Waiting:
		if w := t.Waits[0]; w.For == plan.ForRetry {
			return OneLine(f.retryIn(w) + ": " + w.Reason)
		}
		return OneLine("for " + view.Waiting(t.Waits))
	}
	return reason(t)
}

// retryIn says when a task is retried.
func (f Frame) retryIn(w view.Wait) string {
	left := w.Until.Sub(f.Now)
	if left <= 0 {
		return "again now"
	}
	return "again in " + Duration((left + time.Second - 1).Truncate(time.Second))
}
