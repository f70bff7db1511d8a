package main

import (
	"fmt"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/term"
	"swarm/internal/view"
)

type terminalScreen struct{ a *app }

func newTerminalScreen(a *app, runID string, do screenActions) screen { return &terminalScreen{a} }

func (s *terminalScreen) Event(e *swarm.Event, _ *view.Run) { fmt.Fprintln(s.a.stdout, e.Kind, e.Task, e.Turn) }
func (s *terminalScreen) Delta(task, turn string, d provider.Delta) { fmt.Fprintf(s.a.stdout, "%s | %s\n", task, term.Escape(d.Text)) }
func (s *terminalScreen) close()                                     {}
