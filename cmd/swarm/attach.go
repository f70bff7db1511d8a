package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) attachCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attach RUN",
		Short: "Watch a run that another process drives",
		Long: `Watch a run that another process drives, as ` + "`swarm up`" + ` shows it, and exit with the run's code when it
ends. Ctrl-C only detaches: the run continues, and the exit code is 0. The key p pauses the run. With
--json, print all events of the run from the first one.

If no process drives the run, print the table of its tasks and how to resume it.

` + runHelp,
		Example:           "  swarm up -d\n  swarm attach @last",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, l, err := a.openReader(args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			return a.attach(h, l)
		},
	}
	a.showFlags(cmd)
	return cmd
}

func (a *app) attach(h *statedir.Home, l *run.Reader) error {
	if l.GoesOn() || a.json {
		ctx, end := leaveSignals()
		err := a.watch(ctx, h, l)
		end()
		if left := new(swarm.Error); errors.As(err, &left) && left.Kind == swarm.Stopped {
			if out := a.stdout; !a.json {
				if a.quiet {
					out = a.stderr // standard output is for the result
				}
				fmt.Fprintf(out, "run %s continues · to watch it again: swarm attach %s\n", l.ID, l.ID)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	p, err := l.Picture()
	if err != nil {
		return err
	}
	a.exit = exitOf(p)
	return a.printEnd(h, p, l.Text)
}

// watch shows the run until it ends, its driver is gone, or the user detaches.
func (a *app) watch(ctx context.Context, h *statedir.Home, l *run.Reader) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	v := view.New(l.ID)
	if !a.json {
		var err error
		if v, err = l.Fold(); err != nil {
			return err
		}
	}
	timeline, err := l.TimelineFrom(v)
	if err != nil {
		return err
	}
	if a.json {
		timeline.Only = func(string) bool { return false } // events only
	}
	s, err := a.spectator(h, v, func() { leave(swarm.Errorf(swarm.Stopped, "left")) })
	if err != nil {
		return err
	}
	err = timeline.Follow(ctx, func(m run.Entry) error {
		if m.Event != nil {
			s.Event(m.Event)
		} else {
			s.Delta(m.Task, m.Delta())
		}
		return nil
	})
	return errors.Join(err, s.Close())
}

// spectator is the screen for a run that another process drives. It starts with the state in v.
func (a *app) spectator(h *statedir.Home, v *view.Run, leave func()) (term.Screen, error) {
	if a.json {
		return &eventWriter{run: v.ID, out: json.NewEncoder(term.EscapeJSON(a.stdout))}, nil
	}
	if a.quiet {
		return needWriter{a.stderr}, nil
	}
	color, err := a.paints()
	if err != nil {
		return nil, err
	}
	if a.width() == 0 || a.plain || os.Getenv("TERM") == "dumb" {
		return withChildren(a.newLines(v, a.linesOf(v.Kind), color), h, v), nil
	}
	k := keysOf(context.Background(), h, v.ID)
	return withChildren(term.NewBoard(v, term.BoardOptions{Terminal: a.terminal(color), Attached: true,
		Interrupt: func(int) { leave() }, Pause: k.pause, Answer: k.answer, Send: k.send}), h, v), nil
}
