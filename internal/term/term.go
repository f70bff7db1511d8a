// Package term shows a run in a terminal, and in a pipe. A [Screen] is fed with the run's events
// and with the deltas of its turns. A [Board] draws them as a table that is redrawn in place at the
// end of the scrollback. [Lines] print them one after the other, each line with the name of its
// task in front. A [Table] sums up how the run ended.
//
// Other screens use the same parts: a [Window] draws on a terminal, a [Printer] puts names in front
// of lines, a [Palette] gives names their colours, and [Sign] and [StatusStyle] show a status.
//
// Text of agents is untrusted: it goes through [Escape] before it reaches a terminal. The caller
// provides the clock.
package term

import (
	"swarm"
	"swarm/internal/view"
)

// A Screen shows a run while it runs. Many goroutines may call its methods.
type Screen interface {
	// Event shows the next event of the run's log. It needs every event, in order.
	Event(e *swarm.Event)
	// Delta shows what a task's turn does while it runs.
	Delta(task string, d swarm.Delta)
	// Close shows the rest and gives the terminal back.
	Close() error
}

// A ParentScreen also shows the runs of swarms that do tasks of its run.
type ParentScreen interface {
	Screen
	// Child returns the part of the screen that shows the swarm which does a task. It begins where the
	// fold stands, and owns the fold from then on.
	Child(task string, run *view.Run) Screen
}
