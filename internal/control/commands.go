package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A CommandResult is a command that is on disk. The process that drives the run obeys it.
type CommandResult struct {
	Run     swarm.RunID `json:"run"`
	Command string      `json:"word"`
	Target  string      `json:"target,omitempty"` // a task or an agent; "" = the whole run
}

func refuse(hint, format string, args ...any) error {
	return &run.StateError{Err: swarm.Errorf(swarm.BadInput, format, args...).WithHint("%s", hint)}
}

// Steerable refuses a run that has ended, or that the caller may not steer.
func (c *Control) Steerable(s swarm.RunSummary) error {
	if err := c.maySteer(s.ID); err != nil {
		return err
	}
	if s = run.Current(c.Home, s); s.Status.Ended() && s.Kind == swarm.SwarmRun {
		return refuse(fmt.Sprintf("ask again, with a larger budget if that was spent: swarm solve %s --set budget.calls=N", swarm.Quote(s.Name)), "run %s has ended (%s)", s.ID, s.Status)
	}
	if s.Status.Ended() && s.Kind == swarm.LineRun {
		return refuse("to see it: swarm show "+string(s.ID)+"; to begin another session: swarm repl", "run %s has ended (%s)", s.ID, s.Status)
	}
	if s.Status.Ended() {
		return refuse(c.afterEnd(s), "run %s has ended (%s)", s.ID, s.Status)
	}
	return nil
}

// afterEnd says what can be done instead of steering a run that has ended: the newest run that has
// not ended may be the one that is meant.
func (c *Control) afterEnd(s swarm.RunSummary) string {
	hint := "to run what failed again: swarm retry " + string(s.ID)
	if s.Status == swarm.Completed {
		hint = "nothing of it is left to do; to see it: swarm show " + string(s.ID)
	}
	if open, err := c.Open(); err == nil && len(open) > 0 {
		hint += fmt.Sprintf("; run %s has not ended (%s)", open[0].ID, run.Current(c.Home, open[0]).Status)
	}
	return hint
}

func (c *Control) maySteer(id swarm.RunID) error { return c.Caller.Steer(c.Home, id, "steering a run") }

// Tell sends a command to a run, whichever process drives it. When it returns, the command is on
// disk.
func (c *Control) Tell(ctx context.Context, id swarm.RunID, command swarm.Command, target string) (CommandResult, error) {
	if err := c.maySteer(id); err != nil {
		return CommandResult{}, err
	}
	return CommandResult{id, string(command), target},
		run.Control(ctx, c.Home, id, swarm.ControlCommand{Command: command, Target: target, Actor: c.Caller.Actor()})
}

// Pause lets running turns finish and starts no others.
func (c *Control) Pause(ctx context.Context, id swarm.RunID) (CommandResult, error) {
	return c.Tell(ctx, id, swarm.CommandPause, "")
}

// Resume lets a paused run go on. If no process drives the run, this process drives it from now on.
func (c *Control) Resume(ctx context.Context, id swarm.RunID) (CommandResult, error) {
	if err := c.maySteer(id); err != nil {
		return CommandResult{}, err
	}
	who, driven, err := c.Driver(id)
	if err != nil {
		return CommandResult{}, err
	}
	if !driven {
		open, err := run.TakesLines(c.Home, id)
		if err == nil && open { // without lines it would never end
			err = refuse("to continue it: swarm repl --resume "+string(id), "run %s is a session, which needs somebody who enters lines", id)
		}
		if err == nil {
			err = c.GoOn(ctx, id)
		}
		if owned, ok := errors.AsType[*swarm.OwnedError](err); ok {
			return CommandResult{}, drivenError(id, owned.Owner)
		}
		return CommandResult{Run: id, Command: string(swarm.CommandResume)}, err
	}
	paused, err := run.PauseWanted(c.Home, id)
	switch {
	case err != nil:
		return CommandResult{}, err
	case !paused:
		return CommandResult{}, drivenError(id, who)
	}
	return c.Tell(ctx, id, swarm.CommandResume, "")
}

// drivenError refuses to drive a run that has an owner, and names the owner.
func drivenError(id swarm.RunID, who swarm.Owner) error {
	if who.Gone {
		return refuse("try again in "+max(time.Second, time.Until(who.Until).Round(time.Second)).String(),
			"the run %s is still with %s, which is gone, or another is just taking it", id, who.Process())
	}
	hint := "to watch it: swarm attach " + string(id)
	if who.Away {
		hint += "; if that machine is gone, try again in " + max(time.Second, time.Until(who.Until).Round(time.Second)).String()
	}
	return refuse(hint, "%s drives the run %s, and it is not paused", who.Process(), id)
}

// Cancel ends a run for good, or with a target one of its tasks or agents. If no process drives the
// run, this process does so, until the cancel has taken effect.
func (c *Control) Cancel(ctx context.Context, id swarm.RunID, target string) (CommandResult, error) {
	if target == "" && c.DrivesNone != nil { // an error changes nothing, so it comes before the command
		if _, driven, err := c.Driver(id); err != nil || !driven {
			return CommandResult{}, cmp.Or(err, c.DrivesNone)
		}
	}
	noted, err := c.Tell(ctx, id, swarm.CommandCancel, target)
	if err != nil || target != "" {
		return noted, err
	}
	return noted, c.obey(ctx, id)
}

// obey has a command of a run take effect. If no process drives the run, this process does so.
func (c *Control) obey(ctx context.Context, id swarm.RunID) error {
	if _, driven, err := c.Driver(id); err != nil || driven {
		return err
	}
	if p, err := c.Picture(id); err == nil && p.Status.Ended() { // its driver has obeyed and left in the meantime
		return nil
	}
	var owned *swarm.OwnedError
	if err := c.GoOn(ctx, id); err != nil && !errors.As(err, &owned) { // with an OwnedError another process drives it now, and obeys
		return err
	}
	return nil
}

// Close ends a team's run when its running turns have ended.
func (c *Control) Close(ctx context.Context, id swarm.RunID) (CommandResult, error) {
	if !c.Home.Summary(id).Kind.Team() {
		return CommandResult{}, refuse("to end it: swarm cancel "+string(id), "run %s is no team", id)
	}
	return c.Tell(ctx, id, swarm.CommandClose, "")
}

// Prune deletes old runs of this folder, or of all folders. An agent deletes only runs that its turn
// began.
func (c *Control) Prune(o statedir.PruneOptions) ([]statedir.Pruned, error) {
	if !c.Anywhere {
		o.Dir = c.Dir
	}
	o.Spare = func(id swarm.RunID) bool { return c.maySteer(id) != nil }
	return c.Home.Prune(o)
}

// Act does something to one agent of a run that has not ended.
func (c *Control) Act(ctx context.Context, id swarm.RunID, agent string, do run.Action) (CommandResult, error) {
	if err := c.maySteer(id); err != nil {
		return CommandResult{}, err
	}
	w, err := run.Act(ctx, c.Home, id, agent, do, c.Caller.Actor())
	var ours *swarm.Error
	if swarm.KindOf(err) == swarm.BadInput && errors.As(err, &ours) {
		err = &run.StateError{Err: ours}
	}
	return CommandResult{id, string(w.Command), w.Target}, err
}

// RetryTask retries a task that failed and waits for a person, in a run that has not ended. What a
// provider's limit holds back is tried before the limit resets. If no process drives the run, this
// process does so from now on.
func (c *Control) RetryTask(ctx context.Context, id swarm.RunID, task string) (CommandResult, error) {
	if task != "" {
		if _, err := c.Target(id, task); err != nil {
			return CommandResult{}, err
		}
	}
	_, driven, err := c.Driver(id)
	if err != nil {
		return CommandResult{}, err
	}
	if !driven {
		p, err := c.Picture(id)
		if err != nil {
			return CommandResult{}, err
		}
		waits := func(t view.Task) bool { return (task == "" || task == t.Name || task == t.Base) && t.AwaitsRetry() }
		if !slices.ContainsFunc(p.Tasks, waits) {
			return CommandResult{}, refuse("to resume it: "+p.ResumeCommand(), "run %s has not ended, and no process drives it", id)
		}
		if c.DrivesNone != nil {
			return CommandResult{}, c.DrivesNone
		}
	}
	noted, err := c.Tell(ctx, id, swarm.CommandRetry, task)
	if err != nil || driven {
		return noted, err
	}
	return noted, c.obey(ctx, id)
}
