package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/recording"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

const (
	runHelp   = "RUN is an id, the beginning of one, or @last."
	newestRun = "Without RUN, use the newest run of this folder. " + runHelp
)

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel [RUN] [TASK | @AGENT]",
		Short: "Cancel a run, or one of its tasks or agents",
		Long: `Stop running turns and start no others. If no process drives the run, this command ends it.

A cancelled agent of a team gets no more turns, and its mail goes back to the senders. To restart it,
use swarm start.

` + namedRun,
		Example: "  swarm cancel\n  swarm cancel code\n  swarm cancel @last code\n  swarm cancel @coder",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, target := runAndAgent(args)
			if target != "" && strings.HasPrefix(args[1], "@") {
				return a.act(cmd, ref, target, run.StopAgent)
			}
			c, id, err := a.steerable(ref)
			if err != nil {
				return err
			}
			if target != "" {
				if _, err = c.Target(id, target); err != nil {
					if _, wrong := c.Target(id, "@"+target); wrong == nil {
						return a.act(cmd, ref, target, run.StopAgent)
					}
					return err
				}
			}
			driven := false
			if _, driven, err = c.Driver(id); err != nil {
				return err
			}
			result, err := c.Cancel(cmd.Context(), id, target)
			if err != nil || !driven && target == "" { // this process ended the run, and has shown its end
				return err
			}
			return a.printCommand(c, result)
		},
	}
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause [RUN] [@AGENT]",
		Short: "Pause a run or one agent after its running turns",
		Long: `Let running turns finish, and start no others until ` + "`swarm resume`" + `. This pauses the whole run,
whose time limits stop too, or one agent. A run stays open while only paused agents have work, and
prints that it does.

` + agentHelp,
		Example: "  swarm pause\n  swarm resume\n  swarm pause @coder\n  swarm resume @coder",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, agent := runAndAgent(args)
			if agent != "" {
				return a.act(cmd, ref, agent, run.PauseAgent)
			}
			c, id, err := a.steerable(ref)
			if err != nil {
				return err
			}
			result, err := c.Pause(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.printCommand(c, result)
		},
	}
}

func (a *app) resumeCommand() *cobra.Command {
	var (
		detach         bool
		record, replay string
	)
	cmd := &cobra.Command{
		Use:   "resume [RUN] [@AGENT]",
		Short: "Resume a run that was paused, interrupted or killed, or a paused agent",
		Long: `Resume a run, or one paused agent of it. If a process drives the paused run, it continues there. If
no process drives the run, this one does: finished turns are not run again, and interrupted turns are
run again under the same id.

` + agentHelp,
		Example: "  swarm resume\n  swarm resume @coder",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, agent := runAndAgent(args)
			switch {
			case agent != "" && (record != "" || replay != ""):
				return swarm.Errorf(swarm.BadInput, "an agent alone cannot be recorded or replayed").WithHint("leave out @%s, or the flag", agent)
			case agent != "" && a.open:
				return swarm.Errorf(swarm.BadInput, "the page shows a run, not an agent alone").WithHint("leave out @%s, or --open", agent)
			case agent != "":
				return a.act(cmd, ref, agent, run.ResumeAgent)
			}
			c, id, err := a.steerable(ref)
			if err != nil {
				return err
			}
			who, driven, err := c.Driver(id)
			if err != nil {
				return err
			}
			if driven && (record != "" || replay != "") {
				return swarm.Errorf(swarm.BadInput, "%s drives the run %s, so this one neither records nor replays it", who.Process(), id).
					WithHint("leave out the flag; after the run's end: swarm record %s FILE", id)
			}
			if driven && a.open {
				return errNoPage(who, id)
			}
			if detach && !driven {
				return a.detach("")
			}
			c.GoOn = func(_ context.Context, id swarm.RunID) error { return a.goOn(c.Home, id, record, replay) }
			result, err := c.Resume(cmd.Context(), id)
			if err != nil || !driven { // this process drove the run, and has shown it
				return err
			}
			return a.printCommand(c, result)
		},
	}
	detachFlag(cmd, &detach)
	recordFlags(cmd, &record, &replay)
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

// goOn drives a run that no process drives. out is the file to which it is recorded, and file the
// recording that it replays.
func (a *app) goOn(h *statedir.Home, id swarm.RunID, out, file string) error {
	var rec *recording.Recording
	if file != "" {
		var err error
		if rec, err = recording.Open(file); err != nil {
			return err
		}
	}
	if _, err := recordTo(out); err != nil {
		return err
	}
	r, o, err := control.Continue(h, id, rec != nil, a.asker(h))
	if err != nil {
		return err
	}
	defer r.Close()
	a.answerTo = r.Began().AnswerTo
	if out != "" {
		if err := run.CheckRecordable(r.Began()); err != nil {
			return err
		}
	}
	if isDetached() { // the next command must find that the run is driven
		if err := r.Take(context.Background()); err != nil {
			return err
		}
		detached(id)
	}
	o.Engine, o.Actor = engineFor(rec), control.FindCaller(h, swarm.HowTerminal).Actor()
	err = a.drive(h, r, o)
	return errors.Join(err, record(r, out))
}

func (a *app) retryCommand() *cobra.Command {
	var (
		from   string
		detach bool
	)
	cmd := &cobra.Command{
		Use:   "retry [RUN] [TASK]",
		Short: "Retry what failed, and carry the rest over",
		Long: `Retry an ended run as a new run. Tasks that failed or were cancelled run again, and so do the tasks
that depend on them. The turns of all other tasks are carried over. TASK is the same as --from TASK.

In an unfinished run, retry a task that failed and waits for a person, or end the wait for a
provider's limit before it resets. If no process drives the run, this one does.

` + newestRun,
		Example: "  swarm retry\n  swarm retry code\n  swarm retry @last --from code",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				if from != "" && from != args[1] {
					return swarm.Errorf(swarm.BadInput, "%s and --from %s name different tasks", args[1], from).WithHint("name one of them")
				}
				from = args[1]
			}
			c, id, err := a.find(args[0])
			if err != nil {
				return err
			}
			if !c.Home.Summary(id).Status.Ended() {
				who, driven, err := c.Driver(id)
				if err != nil {
					return err
				}
				if driven && a.open {
					return errNoPage(who, id)
				}
				if detach && !driven {
					return a.detach("")
				}
				result, err := c.RetryTask(cmd.Context(), id, from)
				if err != nil || !driven { // this process drove the run, and has shown it
					return err
				}
				return a.printCommand(c, result)
			}
			if detach {
				return a.detach("")
			}
			b, err := c.Retry(id, from)
			if err != nil {
				return err
			}
			b.Args = os.Args[1:]
			return a.begin(begin{Begin: b})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "run this `task` and all that depend on it again")
	detachFlag(cmd, &detach)
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

// steerable finds a run that has not ended and that the caller may control.
func (a *app) steerable(ref string) (*control.Control, swarm.RunID, error) {
	c, err := a.control()
	if err != nil {
		return nil, "", err
	}
	s, err := c.Find(ref)
	if err == nil {
		err = c.Steerable(s)
	}
	return c, s.ID, err
}

// printCommand confirms that a command for a run is on disk. If no process drives the run, the
// command takes effect when the run is resumed.
func (a *app) printCommand(c *control.Control, result control.CommandResult) error {
	if a.json {
		return a.print(result)
	}
	fmt.Fprintf(a.stdout, "run %s: %s, noted\n", result.Run, strings.TrimSpace(result.Command+" "+result.Target))
	if _, driven, err := c.Driver(result.Run); err == nil && !driven && !c.Home.Summary(result.Run).Status.Ended() {
		fmt.Fprintf(a.stdout, "no process drives it now: swarm resume %s\n", result.Run)
	}
	return nil
}
