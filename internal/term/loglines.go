package term

import (
	"io"

	"swarm"
	"swarm/internal/view"
)

// LogLines print lines of a log as [Lines] print them while a run runs.
type LogLines struct {
	w     io.Writer
	print *Printer
}

// NewLogLines prints to w what the tasks of a run said.
func NewLogLines(w io.Writer, p view.Picture, color bool) *LogLines {
	l := &LogLines{w: w, print: newRunPrinter(color)}
	for _, t := range p.Tasks {
		l.print.Meet(t.Name)
	}
	return l
}

// Meet makes room for the names of tasks, and gives each its colour.
func (l *LogLines) Meet(tasks ...string) { l.print.Meet(tasks...) }

// Print prints a line: a stamp or "", the task or "" for the run, and a text by its kind of delta
// or event.
func (l *LogLines) Print(stamp, task, kind, text string) error {
	paint, bar := l.print.Paint, barNone
	text = Escape(text)
	switch swarm.DeltaKind(kind) {
	case swarm.DeltaText:
		bar = barText
	case swarm.DeltaStderr, swarm.DeltaToolFailed:
		bar = barError
	case swarm.DeltaThinking:
		bar, text = barThink, paint.With(Dim, text)
	case swarm.DeltaTool, swarm.DeltaToolDone, swarm.DeltaFile:
		bar, text = barTool, paint.With(Dim, text)
	default:
		text = paint.Status(statusOf(swarm.EventKind(kind)), text)
	}
	if task == "" {
		task = runLabel
	}
	_, err := io.WriteString(l.w, paint.With(Dim, stamp)+l.print.prefix(task, bar)+text+"\n")
	return err
}

// statusOf returns the status that an event reports, for its colour.
func statusOf(kind swarm.EventKind) swarm.Status {
	switch kind {
	case swarm.TaskStarted:
		return swarm.Running
	case swarm.TaskCompleted:
		return swarm.Completed
	case swarm.TaskFailed:
		return swarm.Failed
	case swarm.TaskSkipped, swarm.TaskCancelled:
		return swarm.Skipped
	case swarm.TaskRetrying, swarm.LimitReached, swarm.TaskBlocked, swarm.Notice, swarm.BudgetSpent, swarm.RunInterrupted:
		return swarm.Interrupted
	}
	return ""
}
