package term

import (
	"io"
	"strings"

	"swarm"
	"swarm/internal/view"
)

// LogLines print lines of what has been said, as [Lines] print them while it is said.
type LogLines struct {
	w      io.Writer
	paint  Paint
	colors Palette
	width  int
}

// NewLogLines prints to w what the tasks of a run said.
func NewLogLines(w io.Writer, p view.Picture, color bool) *LogLines {
	l := &LogLines{w: w, paint: Paint(color), colors: Palette{}, width: len(runsLabel)}
	for _, t := range p.Tasks {
		l.colors.Of(t.Name)
		l.width = max(l.width, min(len(t.Name), maxNames))
	}
	return l
}

// Print prints a line: a stamp, or "", the task or "" for the run, and what was said, by the kind of a provider's delta or of an
// event.
func (l *LogLines) Print(stamp, task, kind, text string) error {
	text = Escape(text)
	bar := "   "
	switch swarm.DeltaKind(kind) {
	case swarm.DeltaText:
		bar = " | "
	case swarm.DeltaStderr, swarm.DeltaToolFailed:
		bar = " ! "
	case swarm.DeltaThinking:
		bar, text = " ~ ", l.paint.With(Dim, text)
	case swarm.DeltaTool, swarm.DeltaToolDone, swarm.DeltaFile:
		bar, text = " > ", l.paint.With(Dim, text)
	default:
		text = l.paint.Status(statusOf(swarm.EventKind(kind)), text)
	}
	name := task
	if name == "" {
		name = runsLabel
	}
	front := oneLine(name) + strings.Repeat(" ", max(0, l.width-len(name)))
	if color, ok := l.colors[task]; ok {
		front = l.paint.With(color, front+bar[:2]) + bar[2:]
	} else {
		front = l.paint.With(Bold, front) + bar
	}
	_, err := io.WriteString(l.w, l.paint.With(Dim, stamp)+front+text+"\n")
	return err
}

// statusOf is the status that an event tells of, for its colour.
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
	case swarm.TaskRetrying, swarm.TaskBlocked, swarm.Notice, swarm.BudgetSpent, swarm.RunInterrupted:
		return swarm.Interrupted
	}
	return ""
}
