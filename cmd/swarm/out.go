package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) outCommand() *cobra.Command {
	var iteration int
	var good bool
	cmd := &cobra.Command{
		Use:   "out [RUN] [TASK | @AGENT]",
		Short: "Print the output of a run or a task, the report of a team, or the answer of a swarm",
		Long: `Print the answer of a swarm, as swarm solve does, or the report of a team's lead. Of any other run,
print the output of its last task, if it has one last task. With TASK, print a task's output, byte
for byte as the run's log has it; with @AGENT, that of the agent's last task.
Without flags, this is the last output, of a good or a failed turn. Only the last 102,400 bytes of a
long output are kept. On a terminal, control characters are made visible.

` + newestRun,
		Example: "  swarm out code\n  swarm out @last code\n  swarm out @last test --iteration 1\n  swarm out @last code --good > code.txt",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("iteration") && iteration < 1 {
				return swarm.Errorf(swarm.BadInput, "--iteration %d: iterations are counted from 1", iteration)
			}
			if len(args) == 1 {
				return a.printAnswerOf(args[0], iteration, good)
			}
			return a.printOutput(args[0], args[1], iteration, good)
		},
	}
	cmd.Flags().IntVar(&iteration, "iteration", 0, "the output of iteration `N` (default the last one that has any)")
	cmd.Flags().BoolVar(&good, "good", false, "the last output of a successful turn")
	return cmd
}

// readAnswer reads the answer of a swarm.
func (a *app) readAnswer(ref string) (answer run.Answer, err error) {
	_, l, err := a.openReader(ref)
	if err != nil {
		return answer, err
	}
	defer l.Close()
	return l.Answer()
}

// printAnswerOf prints the answer of a swarm, or the report of a team.
func (a *app) printAnswerOf(ref string, iteration int, good bool) error {
	if iteration > 0 || good {
		return swarm.Errorf(swarm.BadInput, "the flags --iteration and --good need a task").WithHint("usage: swarm out [RUN] TASK --iteration N")
	}
	_, l, err := a.openReader(ref)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := l.Living()
	if err != nil {
		return err
	}
	switch p.Kind {
	case swarm.TeamRun:
		return a.printReport(p)
	case swarm.SwarmRun:
	default:
		name, err := onlyResult(p)
		if err != nil {
			return err
		}
		return a.printOutputOf(l, name, 0, false)
	}
	answer, err := l.Answer()
	if err != nil {
		return err
	}
	if a.json {
		return a.print(answer)
	}
	return a.printAnswer(answer)
}

// onlyResult returns the task whose output is the result of a run of tasks or lines. A run that has
// none or several has an error that names a task to choose.
func onlyResult(p view.Picture) (string, error) {
	if len(p.Tasks) == 1 {
		return p.Tasks[0].Name, nil
	}
	var names []string
	for _, t := range results(p) {
		names = append(names, t.Name)
	}
	switch len(names) {
	case 0:
	case 1:
		return names[0], nil
	default:
		return "", swarm.Errorf(swarm.BadInput, "run %s has %d outputs: %s", p.ID, len(names), excerpt.List(names, mostNamed)).
			WithHint("to see the last: swarm out %s %s", p.ID, names[len(names)-1])
	}
	e := swarm.Errorf(swarm.Other, "run %s has no output of a last task: it is %s%s", p.ID, p.Status, excerpt.Reason(term.Escape(p.Reason)))
	for _, t := range slices.Backward(p.Tasks) {
		if t.Output.Hash != "" {
			return "", e.WithHint("to see an output that it has: swarm out %s %s", p.ID, t.Name)
		}
	}
	return "", e.WithHint("to see its tasks: swarm show %s", p.ID)
}

// mostNamed is how many names of outputs or agents a message lists.
const mostNamed = 8

// printReport prints what the lead of a team has reported.
func (a *app) printReport(p view.Picture) error {
	switch {
	case p.Report == "":
		has := fmt.Sprintf("no report: it %s%s", p.Status, excerpt.Reason(term.Escape(p.Reason)))
		if !p.Status.Ended() {
			has = fmt.Sprintf("no report yet: it is %s", p.Status)
		}
		e := swarm.Errorf(swarm.Other, "run %s has %s", p.ID, has)
		if len(p.Tasks) > 0 {
			e = e.WithHint("to see what an agent said last: swarm out %s @%s", p.ID, p.Tasks[0].Agent)
		}
		return e
	case a.json:
		return a.print(struct {
			Run    swarm.RunID `json:"run"`
			Report string      `json:"report"`
		}{p.ID, p.Report})
	}
	return a.writeOutputs(p, nil)
}

func (a *app) printOutput(ref, name string, iteration int, good bool) error {
	_, l, err := a.openReader(ref)
	if err != nil {
		return err
	}
	defer l.Close()
	return a.printOutputOf(l, name, iteration, good)
}

// printOutputOf prints the output of a task of an open run.
func (a *app) printOutputOf(l *run.Reader, name string, iteration int, good bool) error {
	out, err := findOutput(l, name, iteration, good)
	if err != nil {
		return err
	}
	name, _, _ = strings.Cut(string(out.Turn), "/") // an agent's name stands for its task
	text, err := l.Text(out.Hash)
	if err != nil {
		return err
	}
	if a.json {
		return a.print(struct {
			Run  swarm.RunID `json:"run"`
			Task string      `json:"task"`
			view.Output
			Text string `json:"text"`
		}{l.ID, name, out, string(text)})
	}
	if out.Bytes > int64(len(text)) {
		fmt.Fprintf(a.stderr, "note: the output had %d bytes, of which the last %d are kept\n", out.Bytes, len(text))
	}
	return a.printForeign(text)
}

// findOutput finds the output that was asked for. Only an error needs the whole run, to say what is
// wrong.
func findOutput(l *run.Reader, name string, iteration int, good bool) (view.Output, error) {
	if iteration == 0 {
		if out, ok, err := l.LastOutput(name, good); ok || err != nil {
			return out, err
		}
	}
	p, err := l.Picture()
	if err != nil {
		return view.Output{}, err
	}
	t, err := task(p, name)
	if err != nil {
		return view.Output{}, err
	}
	out := t.Output
	if good {
		out = t.Good
	}
	if iteration > 0 {
		if out, err = l.Output(t.Name, iteration, good); err != nil {
			return out, err
		}
	}
	if out.Hash == "" {
		return out, noOutput(t, iteration, good)
	}
	return out, nil
}

// noOutput explains why there is nothing to print.
func noOutput(t view.Task, iteration int, good bool) error {
	what := "output"
	if good {
		what = "good output"
	}
	if iteration > 0 {
		e := swarm.Errorf(swarm.Other, "task %s has no %s from iteration %d", t.Name, what, iteration)
		if iteration > t.Iterations {
			return e.WithHint("it has %d iterations", t.Iterations)
		}
		return e
	}
	e := swarm.Errorf(swarm.Other, "task %s has no %s: it is %s", t.Name, what, t.Status)
	if t.Reason != "" {
		e.Msg += ", " + t.Reason
	}
	if good && t.Output.Hash != "" {
		return e.WithHint("leave out --good to print its last output, which is from a failed turn")
	}
	return e
}
