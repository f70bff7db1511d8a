package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
	"swarm/internal/view"
)

// Lines print a run line by line: what agents say and what becomes of their tasks, each with the
// task's name in front. A line is written whole, however many agents speak. Nothing is left out, so
// a reader that stops reading stops the agents: that is the backpressure of a pipe.
type Lines struct {
	*linesOutput
	// ShowsAnswer also prints the answer of a swarm, which `swarm solve` prints in its own way.
	ShowsAnswer bool
	// Unattended says that nobody watches: a question says how the run goes on without an answer.
	Unattended bool
	hidesWaits bool   // a board below the lines shows which task waits for which
	under      string // the task that the run does as a swarm; "" = it is the run that is shown

	// The mutex of the output guards the fields below.
	run     *view.Run
	tasks   map[string]*taskLines
	voted   bool // the vote of a council was printed
	dropped int  // subtasks that a person has taken out of the plan, as the last line about the plan has it
}

// A linesOutput is where the lines of a run go, and of the swarms that do its tasks.
type linesOutput struct {
	w io.Writer

	mu    sync.Mutex // guards the fields below
	print *Printer
	err   error // the first error of writing
}

// taskLines is what was printed about a task in this iteration.
type taskLines struct {
	waited map[plan.WaitFor]bool // the kinds of waits that were printed
	before swarm.Usage           // the task's usage at the beginning of the iteration
	worked time.Duration         // the time of its turns until then
	kept   map[int]bool          // the iterations whose turns are kept from the run that this one retries
	redone bool                  // a turn of this iteration runs in this run
	heard  bool                  // its last turn was printed from the beginning
	said   bool                  // that turn has said something

	// The fields below are those of an agent of a swarm.
	planned bool         // its subtask was printed
	told    swarm.TurnID // the turn whose action was printed
	hidden  visibility   // of the text of its turn
}

const (
	fewTasks = 50      // with more tasks than this, waits are not printed
	runLabel = "swarm" // stands for the run where a task's name would be
)

// NewLines prints to w from where the run's fold stands. The lines own the fold from then on.
func NewLines(run *view.Run, w io.Writer, color bool) *Lines {
	return linesOf(&linesOutput{w: w, print: newRunPrinter(color)}, "", run)
}

func linesOf(out *linesOutput, under string, run *view.Run) *Lines {
	l := &Lines{linesOutput: out, under: under, run: run, tasks: map[string]*taskLines{}}
	l.addTasks()
	return l
}

// Child prints the run of a swarm as `swarm solve` does, with the name of its task in front of the
// agents' names.
func (l *Lines) Child(task string, run *view.Run) Screen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.child(task, run)
}

func (l *Lines) child(task string, run *view.Run) *Lines {
	child := linesOf(l.linesOutput, l.name(task), run)
	child.hidesWaits, child.Unattended = l.hidesWaits, l.Unattended
	return child
}

// name is how lines name a task, an agent, or the run.
func (l *Lines) name(task string) string {
	switch {
	case l.under == "":
		return task
	case task == runLabel:
		return l.under
	}
	return l.under + "/" + task
}

// newRunPrinter makes a printer whose column of names has room for the run's label.
func newRunPrinter(color bool) *Printer {
	p := NewPrinter(Paint(color), nil)
	p.widen(runLabel)
	return p
}

// addTasks adds the tasks that are new.
func (l *Lines) addTasks() {
	for i := range l.run.Len() {
		t := l.run.At(i)
		if l.tasks[t.Name] != nil {
			continue
		}
		l.tasks[t.Name] = &taskLines{}
		l.print.Meet(l.name(t.Name))
	}
}

// Event prints what the next event of the run's log changes.
func (l *Lines) Event(e *swarm.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(e, l.run.Apply(e))
}

// show prints what an event has changed that the fold has, or why it could not be folded.
func (l *Lines) show(e *swarm.Event, err error) {
	if err != nil {
		l.label(runLabel, l.print.Paint.With(Yellow, OneLine(err.Error())))
	}
	if task := l.tasks[e.Task]; task == nil {
		l.runEvent(e)
	} else {
		l.taskEvent(task, e)
	}
	l.printVote()
	switch e.Kind {
	case swarm.PlanAdded, swarm.TaskStarted, swarm.TaskRetrying, swarm.LimitReached, swarm.RunPausing:
		if l.run.Swarm == nil { // the plan of a swarm says it
			l.printWaits()
		}
	case swarm.ApprovalAnswered:
		if l.run.Swarm != nil {
			l.printPlan()
		}
	}
	l.flush()
}

// taskEvent prints an event of a task, and what the task took when it ends.
func (l *Lines) taskEvent(v *taskLines, e *swarm.Event) {
	if l.swarmEvent(v, e) {
		return
	}
	t, _ := l.run.Task(e.Task)
	told, difference := splitDifference(t.Kind, view.DescribeEvent(e))
	text := excerpt.Head(OneLine(told), maxReason)
	if view.Need(e) != "" { // a person can only answer what they can read
		text = OneLine(told)
	}
	if e.Kind == swarm.TaskBlocked && len(t.Waits) > 0 { // the wait says what to type
		text = "failed, and waits for " + OneLine(t.Waits[0].String())
	}
	kept := v.kept[t.Iteration] && !v.redone
	switch e.Kind {
	case swarm.TurnCarriedOver:
		_, iteration := plan.OfTurn(e.Turn)
		if v.kept == nil {
			v.kept = map[int]bool{}
		}
		v.kept[iteration] = true
		return
	case swarm.TaskStarted:
		v.before, v.worked, v.redone = t.Usage, t.Busy, false
		text = l.print.Paint.Status(swarm.Running, text)
		if v.kept[t.Iteration] { // it has ended in the other run
			text = ""
		}
	case swarm.TurnStarted:
		v.redone, v.heard, v.said = true, true, false
		text = l.print.Paint.With(Yellow, text)
		if text == "" {
			text = l.print.Paint.Status(swarm.Running, startedTurn(&t, e, l.run.Kind))
		}
	case swarm.TurnEnded:
		l.print.EndTurn(l.name(t.Name))
	case swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		if kept {
			l.label(t.Name, l.print.Paint.With(Dim, text+": kept from "+OneLine(string(l.run.From))))
			return
		}
		text = l.print.Paint.Status(t.Status, text+v.cost(t))
		clear(v.waited)
	default:
		text = l.print.Paint.With(Yellow, text)
	}
	if text != "" {
		l.label(t.Name, text)
	}
	if l.Unattended && e.Kind == swarm.ApprovalAsked {
		if a, _ := swarm.Body[swarm.Approval](e); !a.Auto {
			l.label(t.Name, l.print.Paint.With(Yellow, aloneWith(&a)))
		}
	}
	for line := range strings.Lines(difference) {
		l.label(t.Name, "  "+l.print.Paint.diffLine(Escape(strings.TrimSuffix(line, "\n"))))
	}
}

// aloneWith says what becomes of an approval that nobody is there to answer.
func aloneWith(a *swarm.Approval) string {
	key := "{tools: deny}, or auto"
	switch {
	case a.Retry != nil:
		return "this run is unattended: it waits until the question is answered from another terminal"
	case a.Growth != nil:
		key = "{spawn: deny}, or auto"
	}
	return "this run is unattended: it waits until the question is answered from another terminal;" +
		" to run without a person, write in the compose file: approvals: " + key
}

// startedTurn says that a turn has started, if nothing else says so: the start of a task covers its first
// turn, and an agent of a team has turns but no start.
func startedTurn(t *view.Task, e *swarm.Event, kind swarm.RunKind) string {
	_, number := plan.OfTurn(e.Turn)
	switch {
	case t.Tries() > 1:
		return fmt.Sprintf("attempt %d started", t.Tries())
	case t.Crowded > 0:
		return "started"
	case kind == swarm.TeamRun && number > 1:
		return fmt.Sprintf("started (turn %d)", number)
	case kind == swarm.TeamRun:
		return "started"
	}
	return ""
}

// cost formats what a task took in this iteration: the time of its turns, as tables have it.
func (v *taskLines) cost(t view.Task) string {
	if t.Started.IsZero() {
		return ""
	}
	u := t.Usage
	u.InputTokens, u.OutputTokens = u.InputTokens-v.before.InputTokens, u.OutputTokens-v.before.OutputTokens
	return Cost(t.Busy-v.worked, u)
}

// splitDifference cuts the diff from the reason of a turn that does not match its recording,
// because the lines of a diff must stay lines.
func splitDifference(kind swarm.ErrorKind, text string) (told, difference string) {
	if told, difference, ok := strings.Cut(text, ":\n"); ok && kind == swarm.Mismatch {
		return told, difference
	}
	return text, ""
}

const maxReason = 500 // bytes of a reason

// reason returns why a task failed, in one line.
func reason(t *view.Task) string {
	if t.Outcome != "" {
		return excerpt.Head(OneLine(view.DescribeOutcome(t.Outcome, t.Reason)), maxReason)
	}
	told, _ := splitDifference(t.Kind, t.Reason)
	return excerpt.Head(OneLine(told), maxReason)
}

// runEvent prints an event of the run. The first plan prints the run's name.
func (l *Lines) runEvent(e *swarm.Event) {
	r := l.run
	switch e.Kind {
	case swarm.RunStarted, swarm.IterationStarted: // the lines of the plan and of its tasks cover them
		return
	case swarm.RunEnded:
		if l.under != "" { // the task says it
			return
		}
	case swarm.PlanAdded:
		first := len(l.tasks) == 0
		l.addTasks()
		switch {
		case r.Swarm != nil:
			if first && l.under != "" {
				l.label(runLabel, "a swarm does it: swarm show "+OneLine(string(r.ID)))
			} else if first {
				l.label(runLabel, fmt.Sprintf("run %s: %s", OneLine(string(r.ID)), OneLine(r.Name)))
			}
			if !strings.HasPrefix(e.Key, swarm.PlanEditKey("")) { // the answer that follows says what it takes out
				l.printPlan()
			}
			l.printTasks(e)
		case first:
			l.label(
				runLabel,
				fmt.Sprintf(
					"run %s: %s%s",
					OneLine(string(r.ID)),
					withSuffix(OneLine(r.Name), ", "),
					Plural(r.Len(), Noun(r.Kind)),
				),
			)
		}
		return
	}
	text := OneLine(view.DescribeEvent(e))
	if view.Need(e) == "" {
		text = excerpt.Head(text, maxReason)
	}
	switch {
	case text == "":
		return
	case e.Kind == swarm.RunEnded:
		text = l.print.Paint.Status(r.Status, text+Cost(r.Elapsed(r.Ended), r.Usage, Dollars(r.Usage)))
	case e.Kind != swarm.RunUnpaused:
		text = l.print.Paint.With(Yellow, text)
	}
	l.label(runLabel, text)
}

// printWaits prints which task waits for which, once for each kind of wait and iteration.
func (l *Lines) printWaits() {
	if l.run.Len() > fewTasks || l.hidesWaits {
		return
	}
	for i := range l.run.Len() {
		t := l.run.At(i)
		v := l.tasks[t.Name]
		if v == nil || t.Status != swarm.Waiting || v.waited[t.Waits[0].For] || t.Waits[0].For == plan.ForRetry ||
			t.Waits[0].For == plan.ForLimit && t.Attempt > 0 || // its own turn has told
			t.Waits[0].For == plan.ForPerson ||
			t.Waits[0].For == plan.ForMail {
			continue
		}
		if v.waited == nil { // most runs with many tasks print none
			v.waited = map[plan.WaitFor]bool{}
		}
		v.waited[t.Waits[0].For] = true
		l.label(t.Name, l.print.Paint.With(Dim, "waiting for "+OneLine(view.Waiting(t.Waits))))
	}
}

// Delta prints what a task's turn says.
func (l *Lines) Delta(task string, d swarm.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say(task, d)
}

func (l *Lines) say(task string, d swarm.Delta) {
	if l.hides(task, d) {
		return
	}
	if v := l.tasks[task]; v != nil && d.Kind == swarm.DeltaText {
		v.said = v.heard
	}
	l.print.Delta(l.name(task), d)
	l.flush()
}

// Said reports whether all that the last turn of a task said was printed.
func (l *Lines) Said(task string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.tasks[task]
	return v != nil && v.said
}

// SplitLine returns the name in front of a printed line, and its text without the mark.
func SplitLine(line string) (name, text string) {
	name, text, _ = strings.Cut(ansi.Strip(line), " ")
	text = strings.TrimLeft(text, " ")
	for _, bar := range []string{barText, barError, barTool, barThink} {
		if rest, ok := strings.CutPrefix(text, bar[1:]); ok {
			return name, rest
		}
	}
	return name, text
}

// label prints a line about a task or the run.
func (l *Lines) label(name, text string) {
	l.print.breakLine(l.name(name))
	l.print.Label(l.name(name), barNone, text)
}

// flush writes all printed lines in one call, so that lines of several writers do not mix.
func (l *linesOutput) flush() {
	if lines := l.print.Take(); len(lines) > 0 && l.err == nil {
		_, l.err = l.w.Write(lines)
	}
}

// Close prints the unfinished lines and returns the first error of writing.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under != "" { // its output is not its own
		return nil
	}
	l.print.EndAll()
	l.flush()
	return l.err
}
