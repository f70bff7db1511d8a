package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/view"
)

func (a *app) waitCommand() *cobra.Command {
	var timeout string
	cmd := &cobra.Command{
		Use:   "wait [RUN]",
		Short: "Wait until a run ends, and exit with its code",
		Long: `Wait until a run ends, printing nothing, and exit with its code: 0 all done, 1 something failed,
3 budget spent. After --timeout, or if no process drives the run, print an error and exit with 1. The
run itself is not affected.

` + newestRun,
		Example: "  swarm up -d && swarm wait\n  swarm wait @last --timeout 10m && echo done",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, end := leaveSignals()
			defer end()
			if timeout != "" {
				d, err := span(timeout)
				if err != nil {
					return err
				}
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, d)
				defer stop()
			}
			return a.waitFor(ctx, args[0], timeout)
		},
	}
	cmd.Flags().StringVar(&timeout, "timeout", "", "wait at most this `time`, as in 90s, 10m or 1d")
	return cmd
}

func (a *app) waitFor(ctx context.Context, ref, timeout string) error {
	_, l, err := a.openReader(ref)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := l.Wait(ctx)
	switch {
	case ctx.Err() == context.DeadlineExceeded && err != nil:
		late := swarm.Errorf(swarm.Other, "run %s has not ended after %s", l.ID, timeout)
		if p, err := l.Living(); err == nil && p.Status == swarm.Paused {
			return late.WithHint("it is paused; to have it go on: swarm resume %s", l.ID)
		}
		return late.WithHint("it continues; to watch it: swarm attach %s", l.ID)
	case err != nil:
		return err
	case p.Status == swarm.Interrupted:
		return swarm.Errorf(swarm.Other, "no process drives run %s", l.ID).WithHint("to resume it: %s", p.ResumeCommand())
	}
	a.exit = exitOf(p)
	if a.json {
		return a.print(struct {
			Run    swarm.RunID  `json:"run"`
			Status swarm.Status `json:"status"`
			Exit   int          `json:"exit"`
			Reason string       `json:"reason,omitempty"`
			Ended  time.Time    `json:"ended"`
		}{p.ID, p.Status, p.Exit, p.Reason, p.Ended})
	}
	return nil
}

// exitOf is the exit code of a run that no process drives any more.
func exitOf(p view.Picture) int {
	if p.Status == swarm.Interrupted {
		return swarm.ExitInterrupted
	}
	return p.Exit
}

// leaveSignals makes a context that ends when a signal tells a watching command to stop. The
// watched run continues.
func leaveSignals() (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		stop(swarm.Errorf(swarm.Stopped, "interrupted"))
	}()
	return ctx, func() { signal.Stop(signals); stop(nil) }
}
