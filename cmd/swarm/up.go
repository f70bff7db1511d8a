package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/project"
	"swarm/internal/run"
	"swarm/internal/term"
)

// A source holds the flags that select and change what a plan is made from.
type source struct {
	file     string
	set      []string
	provider string
	parallel int
	only     bool
}

func (s *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.VarP((*something)(&s.file), "file", "f", "the compose `file` (default swarm/swarm.yaml)")
	f.StringArrayVar(&s.set, "set", nil, "change a `value` of the compose file, as in pipelines.main.iterations=5")
	f.Var((*something)(&s.provider), "provider", "the `provider` of agents that name none (or SWARM_PROVIDER)")
	f.VarP((*jobs)(&s.parallel), "jobs", "j", "run at most N turns at once (default max_parallel, 16)")
}

// selection adds the flag --only, for commands that take names of tasks.
func (s *source) selection(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.only, "only", false, "only the named tasks, without their dependencies")
}

// something is a flag that cannot be empty. An empty value usually comes from a shell variable that
// is not set. Ignoring an empty --replay would start the real agents.
type something string

func (s *something) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	*s = something(text)
	return nil
}

func (s *something) String() string { return string(*s) }

func (s *something) Type() string { return "string" }

// jobs is a flag for the number of turns at once.
type jobs int

func (j *jobs) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("it must be a whole number from 1 on")
	}
	*j = jobs(n)
	return nil
}

func (j *jobs) String() string { return "" }

func (j *jobs) Type() string { return "N" }

// request makes a request for a run from the flags.
func (s *source) request(a *app, selected []string) control.Request {
	return control.Request{File: s.file, Tasks: selected, Only: s.only, Set: s.set, Provider: s.provider, Jobs: s.parallel,
		ReadStdin: a.readStdin, Args: os.Args[1:]}
}

// options reads the compose file, and returns the options of the compiler.
func (s *source) options(a *app, selected []string) (compose.Options, error) {
	o, _, err := s.read(a, selected)
	return o, err
}

// compile makes the plan without reading standard input, for commands that start nothing.
func (s *source) compile(a *app, selected []string) (*compose.Bundle, error) {
	o, err := s.options(a, selected)
	if err != nil {
		return nil, err
	}
	o.Stdin = func() ([]byte, error) { return nil, nil }
	b, err := compose.Compile(o)
	if err == nil && len(b.Plan.Tasks) == 0 {
		return compose.CompileTeam(o) // the file has only agents
	}
	return b, err
}

// read finds the project and reads its compose file.
func (s *source) read(a *app, selected []string) (compose.Options, *project.Project, error) {
	c, err := a.control()
	if err != nil {
		return compose.Options{}, nil, err
	}
	return c.Compose(s.request(a, selected))
}

func (a *app) readStdin() ([]byte, error) { return project.ReadStdin(a.stdin) }

func (a *app) upCommand() *cobra.Command {
	var (
		src            source
		detach         bool
		record, replay string
	)
	cmd := &cobra.Command{
		Use:   "up [PIPELINE | TASK…]",
		Short: "Run a pipeline, or some of its tasks",
		Long: `Run a pipeline, or tasks with their dependencies. Without arguments, run the pipeline main, or the only
one, or else all tasks as one pipeline.

Ctrl-C stops the run cleanly, and swarm resume continues it. A second Ctrl-C kills it.
Exit codes: 0 all done, 1 something failed, 2 bad input, 3 budget spent, 130 interrupted.`,
		Example: `  swarm up
  swarm up build test -j 4
  swarm up --set pipelines.main.iterations=5
  swarm up -d && swarm attach @last
  swarm up --record run.cassette`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if detach {
				return a.detach("")
			}
			r := src.request(a, args)
			r.Replay = replay
			return a.plan(r, record)
		},
	}
	src.flags(cmd)
	src.selection(cmd)
	detachFlag(cmd, &detach)
	recordFlags(cmd, &record, &replay)
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

func recordFlags(cmd *cobra.Command, record, replay *string) {
	cmd.Flags().Var((*something)(record), "record", "record the run to this `file` when the command ends, for --replay")
	cmd.Flags().Var((*something)(replay), "replay", "take the agents' answers from this `file`; no agent is started")
}

// warn prints warnings, which do not keep a run from starting.
func (a *app) warn(warnings []*swarm.Error) {
	if a.json || a.quiet {
		return
	}
	for _, w := range warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", term.Escape(w.Error()))
		if w.Hint != "" {
			fmt.Fprintf(a.stderr, "hint: %s\n", term.Escape(w.Hint))
		}
	}
}

// plan compiles a request into a plan, and runs it.
func (a *app) plan(r control.Request, record string) error {
	c, err := a.control()
	if err != nil {
		return err
	}
	b, err := c.Plan(r)
	if err != nil {
		return err
	}
	a.warn(b.Bundle.Warnings)
	return a.begin(begin{Begin: b, record: record})
}

// A begin is a run to be started, and how to show it.
type begin struct {
	*control.Begin
	record string
}

// begin starts a run and drives it to its end.
func (a *app) begin(b begin) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	b.Waiting, b.Parent, b.Confirm = a.waiting(), control.FindCaller(h, swarm.HowTerminal).Parent(), a.asker(h)
	if err := b.Ready(h); err != nil {
		return err
	}
	rec, err := b.Recording()
	if err != nil {
		return err
	}
	if rec != nil && b.record != "" { // the log of a replay lacks the recorded timing
		return swarm.Errorf(swarm.BadInput, "a replay is recorded already").WithHint("copy it: cp %s %s", b.Replay, b.record)
	}
	if _, err := recordTo(b.record); err != nil {
		return err
	}
	if b.Engine != "" && a.open {
		return errNoWorkersPage
	}
	s := stopSignals()
	r, err := b.Start(s.ctx, h, version)
	s.end()
	if err != nil {
		return err
	}
	defer r.Close()
	away := isDetached()
	detached(r.ID)
	switch {
	case b.Engine != "" && away:
		return nil
	case b.Engine != "":
		return a.follow(h, r.ID, b.record)
	}
	if !a.quiet && b.Replay == "" {
		a.printConfinement(&b.Bundle.Plan)
		a.printFiles(&b.Bundle.Plan, b.Dir)
	}
	err = a.drive(h, r, run.Options{Engine: engineFor(rec)})
	return errors.Join(err, record(r, b.record))
}

// waiting reports to a person which providers the preflight check waits for.
func (a *app) waiting() control.ProgressReport {
	w := control.ProgressReport{After: time.Second}
	if a.onTerminal() {
		w.After = 200 * time.Millisecond
	}
	if !a.json {
		w.Say = func(names []string) {
			if len(names) > 0 {
				fmt.Fprintf(a.stderr, "checking %s …\n", strings.Join(names, ", "))
			}
		}
	}
	return w
}
