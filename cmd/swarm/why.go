package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why [RUN] [TASK | @AGENT]",
		Short: "Explain why a task or an agent does not run",
		Long: `Print the chain of waits that starts at a task or an agent, and what is at its end; or the reason why
the task ended. The chain follows all kinds of waits: dependencies, busy agents, limits, pauses,
retries, people, required replies, and agents that wait for others inside their turns. A deadlock is
printed with its members. Then come the newest approvals and commands that were given to the last task
of the chain or to the run, with who gave each and how.

Without TASK and @AGENT, explain every task that waits for a person. If none does, explain a task that
failed, or else why the run failed, or else a task that has not completed.

` + newestRun,
		Example: "  swarm why\n  swarm why test\n  swarm why @coder\n  swarm why @last test",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.whyRun(args[0])
			}
			_, l, err := a.openReader(args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			return a.explain(l, args[1])
		},
	}
}

// whyRun explains the tasks of a run that tell the most: all that wait for a person, or else one that
// failed, or else one that has not completed, or else the last. An agent that merely has no mail tells
// less than any other that has not completed.
func (a *app) whyRun(ref string) error {
	_, l, err := a.openReader(ref)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := l.Living()
	if err != nil {
		return err
	}
	var asking []string
	for _, t := range p.Tasks {
		if t.AsksPerson() {
			asking = append(asking, t.Name)
		}
	}
	if len(asking) > 0 {
		if a.json {
			asking = asking[:1] // the answer is one object
		}
		for _, name := range asking {
			if err := a.explain(l, name); err != nil {
				return err
			}
		}
		return nil
	}
	failed := slices.ContainsFunc(p.Tasks, func(t view.Task) bool { return t.Status == swarm.Failed })
	if p.Status == swarm.Failed && !failed && p.Reason != "" && !a.json { // its goal is not reached, say
		_, err := fmt.Fprintf(a.stdout, "run %s failed: %s\nto see its turns: swarm show %s\n", p.ID, term.OneLine(p.Reason), p.ID)
		return err
	}
	name := ""
	for _, bad := range []func(view.Task) bool{
		func(t view.Task) bool { return t.Status == swarm.Failed },
		func(t view.Task) bool { return t.Status != swarm.Completed && !t.AwaitsMail() },
		func(t view.Task) bool { return t.Status != swarm.Completed },
		func(view.Task) bool { return true },
	} {
		for i := len(p.Tasks) - 1; i >= 0 && name == ""; i-- {
			if bad(p.Tasks[i]) {
				name = p.Tasks[i].Name
			}
		}
	}
	return a.explain(l, name)
}

// explain prints why a task or an agent does not run.
func (a *app) explain(l *run.Reader, name string) error {
	why, err := l.Why(name)
	if err != nil {
		return err
	}
	if a.json {
		return a.print(struct {
			Run    swarm.RunID  `json:"run"`
			Status swarm.Status `json:"status"`
			Path   view.Chain   `json:"path"`
			Cycle  []string     `json:"cycle,omitempty"` // the members of a deadlock
			// Actions are the newest of what people and agents did to the last of the chain, or to the run.
			Actions []view.Action `json:"actions,omitempty"`
		}{why.ID, why.Status, why.Chain, why.Chain.Cycle(), why.Actions})
	}
	if err := a.printWhy(why.Chain, why.Picture); err != nil {
		return err
	}
	for _, one := range why.Actions {
		fmt.Fprintf(a.stdout, "  %s, %s\n", term.Escape(one.String()), ago(one.Time, time.Now()))
	}
	return nil
}

func (a *app) printWhy(chain view.Chain, p view.Picture) error {
	if only := chain[0]; only.Task == "" {
		_, err := fmt.Fprintf(a.stdout, "@%s: %s: %s\n", only.Agent, only.Status, term.OneLine(only.Reason))
		return err
	}
	last, err := task(p, chain[len(chain)-1].Task)
	if err != nil {
		return err
	}
	now, cycle := time.Now(), chain.Cycle()
	ends := standing(last, now)
	if cycle != nil {
		ends = "they wait for each other: a deadlock"
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", chain.Path(), term.OneLine(ends))
	for _, link := range chain[:len(chain)-1] {
		fmt.Fprintf(a.stdout, "  %s waits for %s\n", link.Task, term.OneLine(waiting(link.Waits, now)))
	}
	switch {
	case cycle != nil:
		fmt.Fprintf(a.stdout, "to break it, write to one of them: swarm send @%s \"…\"\n", cycle[0])
	case p.Status == swarm.Interrupted:
		fmt.Fprintf(a.stdout, "no process drives run %s: %s\n", p.ID, p.ResumeCommand())
	case p.Status == swarm.Paused || p.Status == swarm.Pausing:
		fmt.Fprintf(a.stdout, "run %s is %s: %s\n", p.ID, p.Status, p.ResumeCommand())
		if why := p.PausedFor(); why != "" {
			fmt.Fprintln(a.stdout, term.Escape(why))
		}
	case last.OutsideDesk() != "":
		fmt.Fprintf(a.stdout, "to finish it: do what %s says, put the work and summary.md into outbox/,\n", term.Escape(filepath.Join(last.OutsideDesk(), desk.InstructionsFile)))
		fmt.Fprintln(a.stdout, `and write {"state": "completed"} or {"state": "failed"} to status.json`)
	case last.Status == swarm.Failed:
		fmt.Fprintf(a.stdout, "to see its last turn: swarm show %s --turn %s\n", p.ID, last.Turn)
	}
	return nil
}

// waiting describes what a task waits for, and since when if that is known.
func waiting(waits []view.Wait, now time.Time) string {
	text := view.Waiting(waits)
	if since := waits[0].Since; !since.IsZero() {
		text += ", for " + term.Duration(max(0, now.Sub(since)).Truncate(time.Second))
	}
	return text
}

// standing describes the status of a task, and its reason.
func standing(t view.Task, now time.Time) string {
	switch {
	case len(t.Waits) > 0:
		return "waits for " + waiting(t.Waits, now)
	case t.Status == swarm.Running && t.Attempt == 0:
		return "about to start" // the start of its turn is not in the log yet
	case t.Status == swarm.Running:
		return fmt.Sprintf("running for %s (turn %s)", term.Duration(now.Sub(t.Started)), t.Turn)
	case t.Reason != "":
		return fmt.Sprintf("%s: %s", t.Status, t.Reason)
	case t.Status == swarm.Completed:
		took := t.Busy // An agent of a team has turns, and no iteration that starts.
		if !t.Started.IsZero() && !t.Ended.IsZero() {
			took = t.Ended.Sub(t.Started)
		}
		return fmt.Sprintf("completed in %s (turn %s)", term.Duration(took), t.Turn)
	case t.Status == swarm.Pending:
		return "pending: ready to start"
	}
	return string(t.Status)
}
