package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/home"
	"swarm/internal/run"
)

const runHelp = "RUN is an id, the beginning of one, or @last."

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel [RUN] [TASK | @AGENT]",
		Short: "End a run, or one of its tasks or agents",
		Long: `Cut what runs and start nothing more. A run that nobody drives is ended here. An agent of a team that is cancelled has no turn any more, and mail
for it goes back; swarm start lets it have turns again.

` + agentHelp,
		Example:           "  swarm cancel @last\n  swarm cancel @last code\n  swarm cancel @coder",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeRunOrAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ref, agent, err := a.meant(args); err == nil && agent != "" {
				return a.act(cmd, ref, agent, run.StopAgent)
			}
			h, id, err := a.live(args[0])
			if err != nil {
				return err
			}
			target := ""
			if len(args) > 1 {
				if target, err = a.target(h, id, args[1]); err != nil {
					return err
				}
			}
			if err := run.Control(cmd.Context(), h, id, swarm.WordCancel, target); err != nil {
				return err
			}
			if _, driven, err := driver(h, id); err == nil && !driven && target == "" {
				if p, err := picture(h, id); err == nil && p.Status.Ended() { // its driver has obeyed and left meanwhile
					return a.said(id, "cancel", target)
				}
				var owned *swarm.OwnedError
				if err := a.goOn(h, id, ""); !errors.As(err, &owned) { // else somebody goes on with it already, and will obey
					return err
				}
			}
			return a.said(id, "cancel", target)
		},
	}
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause [RUN] [@AGENT]",
		Short: "Let running turns finish and start no other",
		Long: `Let running turns finish and start no other, until ` + "`swarm resume`" + `: of the whole run, whose clocks stop, or of one agent. A run in which
nothing but an agent that is paused has something to do stays open, and says so.

` + agentHelp,
		Example:           "  swarm pause @last\n  swarm resume @last\n  swarm pause @coder\n  swarm resume @coder",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeRunOrAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, agent, err := a.meant(args)
			if err != nil {
				return err
			}
			if agent != "" {
				return a.act(cmd, ref, agent, run.PauseAgent)
			}
			h, id, err := a.live(ref)
			if err != nil {
				return err
			}
			if err := run.Control(cmd.Context(), h, id, swarm.WordPause, ""); err != nil {
				return err
			}
			return a.said(id, "pause", "")
		},
	}
}

func (a *app) resumeCommand() *cobra.Command {
	var replay string
	cmd := &cobra.Command{
		Use:   "resume [RUN] [@AGENT]",
		Short: "Go on with a run that was paused, interrupted or killed, or with an agent that was paused",
		Long: `Go on with a run, or with one agent of it that was paused. A run that is paused and driven by a living process goes on there; one that nobody drives is driven by this
process: finished turns are not run again, the one that was cut is, under the same id.

` + agentHelp,
		Example:           "  swarm resume @last\n  swarm resume @coder",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeRunOrAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, agent, err := a.meant(args)
			switch {
			case err != nil:
				return err
			case agent != "" && replay != "":
				return swarm.Errorf(swarm.BadInput, "an agent alone cannot be replayed").WithHint("leave out @%s, or --replay", agent)
			case agent != "":
				return a.act(cmd, ref, agent, run.ResumeAgent)
			}
			h, id, err := a.live(ref)
			if err != nil {
				return err
			}
			who, driven, err := driver(h, id)
			if err != nil {
				return err
			}
			if !driven {
				err := a.goOn(h, id, replay)
				var owned *swarm.OwnedError
				if errors.As(err, &owned) {
					return drivenError(id, owned.Owner)
				}
				return err
			}
			paused, err := run.PauseWanted(h, id)
			switch {
			case err != nil:
				return err
			case !paused:
				return drivenError(id, who)
			}
			if err := run.Control(cmd.Context(), h, id, swarm.WordResume, ""); err != nil {
				return err
			}
			return a.said(id, "resume", "")
		},
	}
	cmd.Flags().Var((*something)(&replay), "replay", "take the agents' answers from this `file`")
	return cmd
}

// goOn drives a run that nobody drives.
func (a *app) goOn(h *home.Home, id, replay string) error {
	o := run.Options{Unpause: true}
	var err error
	if replay != "" {
		if o.Replay, err = openCassette(replay); err != nil {
			return err
		}
	}
	r, err := run.Open(h, id)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Began().Replay && replay == "" {
		return swarm.Errorf(swarm.BadInput, "the run %s was a replay", id).WithHint("name its recording: swarm resume %s --replay FILE", id)
	}
	_, err = a.drive(h, r, o, false)
	return err
}

// drivenError says that a run cannot be driven here, and who does.
func drivenError(id string, who swarm.Owner) error {
	if who.Gone {
		return swarm.Errorf(swarm.BadInput, "the run %s is still with process %d, which is gone, or another is just taking it", id, who.PID).
			WithHint("try again in %s", max(time.Second, time.Until(who.Until).Round(time.Second)))
	}
	return swarm.Errorf(swarm.BadInput, "process %d drives the run %s", who.PID, id).WithHint("to look in: swarm attach %s", id)
}

func (a *app) retryCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run what failed again, and keep the rest",
		Long: `Try an ended run again, as a new run: what failed or was cancelled runs again, and what depends on it; the turns of all other tasks
are kept. In a run that still goes on, a task that failed and waits for a person is tried again.

` + runHelp,
		Example: "  swarm retry @last\n  swarm retry @last --from code",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, id, err := a.find(args[0])
			if err != nil {
				return err
			}
			if !h.Summary(id).Status.Ended() {
				if err := aPersons(id, "steering a run"); err != nil {
					return err
				}
				target := ""
				if from != "" {
					if target, err = a.target(h, id, from); err != nil {
						return err
					}
				}
				if _, driven, err := driver(h, id); err != nil || !driven {
					return swarm.Errorf(swarm.BadInput, "the run %s has not ended, and nobody drives it", id).WithHint("go on with it: swarm resume %s", id)
				}
				if err := run.Control(cmd.Context(), h, id, swarm.WordRetry, target); err != nil {
					return err
				}
				return a.said(id, "retry", target)
			}
			again, err := run.Retry(h, id, from)
			if err != nil {
				return err
			}
			return a.begin(begin{bundle: &compose.Bundle{Plan: *again.Plan, Bodies: again.Bodies}, file: again.Start.File, dir: again.Start.Dir,
				args: os.Args[1:], from: id, kept: again.Kept})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "run this `task` again, and what depends on it")
	return cmd
}

// live finds a run that has not ended.
func (a *app) live(ref string) (*home.Home, string, error) {
	h, id, err := a.find(ref)
	if err != nil {
		return nil, "", err
	}
	if s := h.Summary(id); s.Status.Ended() {
		return nil, "", swarm.Errorf(swarm.BadInput, "run %s has ended (%s)", id, s.Status).WithHint("to run what failed again: swarm retry %s", id)
	}
	return h, id, aPersons(id, "steering a run")
}

// driver is the process that drives a run, if one does.
func driver(h *home.Home, id string) (who swarm.Owner, driven bool, err error) {
	l, err := run.LookAt(h, id)
	if err != nil {
		return who, false, err
	}
	defer l.Close()
	who, driven = l.Driver()
	return who, driven, nil
}

// target is the task or agent that a user names, if the run has it.
func (a *app) target(h *home.Home, id, name string) (string, error) {
	l, err := run.LookAt(h, id)
	if err != nil {
		return "", err
	}
	defer l.Close()
	p, err := l.Picture()
	if err != nil {
		return "", err
	}
	agent := false
	if len(name) > 0 && name[0] == '@' {
		name, agent = name[1:], true
	}
	var names []string
	for _, t := range p.Tasks {
		if !agent && (t.Name == name || t.Base == name) {
			return name, nil
		}
		if !agent {
			names = append(names, t.Name)
		}
	}
	for _, ag := range p.Agents {
		if agent && ag.Name == name {
			return name, nil
		}
		if agent {
			names = append(names, "@"+ag.Name)
		}
	}
	if agent {
		return "", swarm.Errorf(swarm.BadInput, "the run has no agent %q", name).WithHint("%s", swarm.DidYouMean("@"+name, names))
	}
	return "", swarm.Errorf(swarm.BadInput, "the run has no task %q", name).WithHint("%s", swarm.DidYouMean(name, names))
}

// said confirms what is on disk now.
func (a *app) said(id, word, target string) error {
	if a.json {
		return a.print(map[string]string{"run": id, "word": word, "target": target})
	}
	if target != "" {
		target = " " + target
	}
	fmt.Fprintf(a.stdout, "run %s: %s%s, noted\n", id, word, target)
	h, err := a.home()
	if err != nil {
		return err
	}
	if _, driven, err := driver(h, id); err == nil && !driven && !h.Summary(id).Status.Ended() {
		fmt.Fprintf(a.stdout, "nobody drives it now: swarm resume %s\n", id)
	}
	return nil
}
