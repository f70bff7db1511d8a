package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) solveCommand() *cobra.Command {
	var (
		src             source
		agents, most    count
		plan, strategy  string
		detach, approve bool
		record, replay  string
	)
	cmd := &cobra.Command{
		Use:   "solve (QUERY | -)",
		Short: "Have a swarm of agents divide a question, work on it and answer it",
		Long: `Have a swarm answer a question. The supervisor divides it into subtasks. An agent works on each of
them in iterations: it uses tools, shares what it finds, and writes to its teammates. When all have
ended, the supervisor makes one answer of their results.

With --strategy council nothing is divided: each agent answers the whole question without seeing the
others. Then each judges the answers of the others, and the supervisor answers from the one with the
most points.

Agents read the files of this folder, and write to a folder of the run. A line before the start says
so. An agent with root: DIR in the compose file works in DIR.

The answer goes to standard output, and everything else to standard error. Each claim of the answer
names the agent and the iteration that it comes from, as in [takao/3]. The references are listed after
the answer: swarm show RUN --turn takao/3 shows what was done there, and what came of it.

With - as the query, read it from standard input.

With --json, print the events of the run, one per line, and the answer with its references last.

Ctrl-C stops the run cleanly, and swarm resume continues it. A second Ctrl-C kills it.
Exit codes: 0 answered, 1 no answer, 2 bad input, 3 budget spent, 130 interrupted.`,
		Example: `  swarm solve "Compare AI chip markets across US, Japan and South Korea"
  swarm solve "Which of our packages have no tests?" --set swarm.workspace=.   # on the files here
  swarm solve "Compare three designs of a queue" --plan subtasks.json -o answer.md
  swarm solve "Is this design safe against a lost write?" --strategy council --agents 5
  swarm solve "What changed since v1.2?" -d && swarm wait @last && swarm out @last`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if detach {
				return a.detach(" · to see its answer then: swarm out %s")
			}
			if err := a.checkAnswerFile(); err != nil {
				return err
			}
			query, err := a.readQuery(args[0])
			if err != nil {
				return err
			}
			r := src.request(a, nil)
			r.Query, r.Agents, r.Iterations, r.Subtasks, r.Replay, r.ApprovePlan = query, agents.n, most.n, plan, replay, approve
			r.Strategy = strategy
			if a.answerTo != "" {
				if r.AnswerTo, err = filepath.Abs(a.answerTo); err != nil {
					return err
				}
			}
			return a.plan(r, record)
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&strategy, "strategy", "", "the `strategy`: team, or council: agents answer independently, review each other, and vote (default team, or swarm.strategy)")
	f.Var(&agents, "agents", "how many agents work at the same time, or are in the council (default 3)")
	f.Var(&most, "iterations", "how many iterations an agent has (default 25, or swarm.max_iterations_per_agent)")
	f.StringVar(&plan, "plan", "", "a JSON `file` with the subtasks, in the place of the supervisor's")
	f.BoolVar(&approve, "approve-plan", false, "show the plan and what it costs at most, and wait for swarm approve or swarm deny")
	f.VarP((*something)(&a.answerTo), "output", "o", "write the answer to this `file` instead of standard output, also after swarm resume")
	detachFlag(cmd, &detach)
	recordFlags(cmd, &record, &replay)
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

// printFiles prints, when a swarm starts, which files its agents see.
func (a *app) printFiles(p *swarm.Plan, dir string) {
	if a.json {
		return
	}
	for _, line := range run.DescribeFiles(p, dir) {
		fmt.Fprintf(a.stderr, "note: %s\n", term.Escape(line))
	}
}

// readQuery returns the query that an argument names: itself, or standard input.
func (a *app) readQuery(arg string) (string, error) {
	from := "it"
	if arg == "-" {
		text, err := a.readStdin()
		if err != nil {
			return "", err
		}
		arg, from = string(text), "standard input"
	}
	if strings.TrimSpace(arg) == "" {
		return "", swarm.Errorf(swarm.BadInput, "there is no query: %s is empty", from).WithHint(`write what is to be found out: swarm solve "Compare …"`)
	}
	return arg, nil
}

// A count is a flag for a number of agents or iterations; nil = it is not given.
type count struct{ n *int }

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("it must be a whole number")
	}
	c.n = &n
	return nil
}

func (c *count) String() string { return "" }

func (c *count) Type() string { return "N" }

// checkAnswerFile finds out before the run starts that the answer cannot be written at its end.
func (a *app) checkAnswerFile() error {
	if a.answerTo == "" {
		return nil
	}
	if at, err := os.Stat(a.answerTo); err == nil && at.IsDir() {
		return swarm.Errorf(swarm.BadInput, "-o %s is a folder", a.answerTo).WithHint("name a file in it")
	}
	if _, err := os.Stat(filepath.Dir(a.answerTo)); err != nil {
		return swarm.Errorf(swarm.BadInput, "-o %s: %w", a.answerTo, err).WithHint("make the folder first: mkdir -p %s", filepath.Dir(a.answerTo))
	}
	return nil
}

// endSwarm writes the answer of a swarm, what it refers to, and what the run took.
func (a *app) endSwarm(p view.Picture) error {
	if p.Answer != "" {
		answer, err := a.readAnswer(string(p.ID))
		if err != nil {
			return err
		}
		if err := a.printAnswer(answer); err != nil {
			return err
		}
	}
	if !a.json {
		a.printSwarmEnd(p)
	}
	return nil
}

// printAnswer writes the answer as it is, to a file or to standard output. What it refers to goes to
// standard error.
func (a *app) printAnswer(answer run.Answer) error {
	text := answer.Text
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if a.answerTo != "" {
		if err := os.WriteFile(a.answerTo, []byte(text), 0o666); err != nil {
			return swarm.Errorf(swarm.Other, "the answer cannot be written: %w", err).WithHint("it is kept: swarm out %s", answer.Run)
		}
	}
	switch {
	case a.json:
		return json.NewEncoder(term.EscapeJSON(a.stdout)).Encode(answer)
	case a.answerTo == "":
		if a.onTerminal() {
			fmt.Fprintln(a.stdout)
		}
		if _, err := io.WriteString(a.stdout, a.foreign([]byte(text))); err != nil {
			return err
		}
	}
	if !a.quiet {
		a.printReferences(answer)
	}
	return nil
}

const namesNoSource = "the answer names no source"

// printReferences lists the turns that an answer refers to, and how to see them.
func (a *app) printReferences(answer run.Answer) {
	if answer.Unsourced {
		fmt.Fprintf(a.stderr, "\n%s: to see the results that it was made of: swarm show %s --turn %s --prompt\n", namesNoSource, answer.Run, answer.Turn)
	}
	if len(answer.References) == 0 {
		return
	}
	fmt.Fprintln(a.stderr)
	width := 0
	for _, r := range answer.References {
		width = max(width, len(r.Ref))
	}
	var one swarm.TurnID
	for _, r := range answer.References {
		what := "not found: no such turn has a result, so nothing supports the claim"
		if r.Found {
			what, one = r.What, r.Turn
		}
		fmt.Fprintf(a.stderr, "[%s]%*s %s\n", r.Ref, width-len(r.Ref), "", term.Escape(what))
	}
	if one != "" {
		fmt.Fprintf(a.stderr, "to see what is behind one: swarm show %s --turn %s\n", answer.Run, one)
	}
}

// printSwarmEnd writes one line about how the run ended and what it took, and what to type next.
func (a *app) printSwarmEnd(p view.Picture) {
	parts := []string{term.Plural(max(len(p.Tasks)-1, 0), "agent"), term.Plural(p.Iterations(), "iteration")}
	if !p.Ended.IsZero() {
		parts = append(parts, term.Duration(p.Elapsed(p.Ended)))
	}
	for _, part := range []string{term.SomeTokens(p.Usage), term.CoordinationShare(&p), term.Dollars(p.Usage)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if p.Reason == string(p.Status) {
		p.Reason = "" // it only repeats the status
	}
	fmt.Fprintf(a.stderr, "\nrun %s %s%s · %s\n", p.ID, p.Status, excerpt.Reason(term.Escape(p.Reason)), strings.Join(parts, " · "))
	a.remedies(a.stderr, p)
	switch {
	case p.Status == swarm.Interrupted:
		fmt.Fprintf(a.stderr, "to resume it: %s\n", p.ResumeCommand())
	case p.Exit == swarm.ExitBudget && !p.Replay:
		fmt.Fprintf(a.stderr, "to see why: swarm show %s · to ask again with a larger budget: swarm solve \"…\" --set budget.calls=N (or tokens, usd, wall)\n", p.ID)
	case p.Status == swarm.Failed && !p.Replay:
		fmt.Fprintf(a.stderr, "to see why: swarm show %s · to ask again: swarm solve \"…\"\n", p.ID)
	case p.Status == swarm.Failed:
		fmt.Fprintf(a.stderr, "to see why: swarm show %s\n", p.ID)
	case a.answerTo != "":
		fmt.Fprintf(a.stderr, "the answer: %s\n", a.answerTo)
	}
}
