// Package term is what a person sees of a run in a terminal, and what a pipe gets. A [Screen] is fed with the run's events and
// with what its agents say while they say it: a [Board] draws them as a table that lives at the end of the scrollback, and
// [Lines] print them one after the other, each line with the name of its task in front. A [Table] says at the end how it went.
//
// Other screens are made of the same parts: a [Window] is a terminal that is drawn on, a [Printer] puts names in front of lines,
// a [Palette] gives names their colours, and [Sign] and [StatusStyle] say what a status looks like.
//
// What agents write is text of strangers: it goes through [Escape] before it reaches a terminal. Times come from a clock that is
// given in.
package term

import (
	"swarm"
)

// A Screen shows a run while it runs. Its methods may be called from many goroutines.
type Screen interface {
	// Event shows the next event of the run's log. All of them have to be given, in order.
	Event(e *swarm.Event)
	// Delta shows what a task's turn does while it runs.
	Delta(task string, d swarm.Delta)
	// Close shows what is left to show and gives the terminal back.
	Close() error
}
