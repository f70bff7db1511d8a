package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/home"
	"swarm/internal/project"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/run"
	"swarm/internal/term"
)

// A source is where a plan comes from, as flags say it.
type source struct {
	dir      string // "" = the folder that the program was started in
	file     string
	set      []string
	provider string
	parallel int
	only     bool
	alone    bool // of a team: without edges each agent works alone
}

func (s *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.VarP((*something)(&s.file), "file", "f", "the compose `file` (default swarm/swarm.yaml)")
	f.StringArrayVar(&s.set, "set", nil, "change a value of the compose file, as in pipelines.main.iterations=5")
	f.Var((*something)(&s.provider), "provider", "`provider` of the agents that name none (or SWARM_PROVIDER)")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(providerkind.Presets(), cobra.ShellCompDirectiveNoFileComp))
	f.VarP((*jobs)(&s.parallel), "jobs", "j", "turns at once (default max_parallel, 16)")
}

// selection adds the flag of commands that some tasks of the file can be named to.
func (s *source) selection(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.only, "only", false, "only the named tasks, without what they depend on")
}

// something is a flag that cannot be empty. It is when it was meant to be taken from a variable that is not set, and without
// --replay agents would be started.
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

// jobs is a flag for how many turns run at once.
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

// options are what the compiler needs.
func (s *source) options(a *app, selected []string) (compose.Options, error) {
	o, _, err := s.read(a)
	o.Select = selected
	return o, err
}

// compile makes the plan without reading standard input: nothing is going to run.
func (s *source) compile(a *app, selected []string) (*compose.Bundle, error) {
	o, err := s.options(a, selected)
	if err != nil {
		return nil, err
	}
	o.Stdin = func() ([]byte, error) { return nil, nil }
	b, err := compose.Compile(o)
	if err == nil && len(b.Plan.Tasks) == 0 {
		return compose.CompileTeam(o) // the agents are what there is
	}
	return b, err
}

// read finds the project and reads its compose file. When only that is missing, everything else is filled in.
func (s *source) read(a *app) (compose.Options, *project.Project, error) {
	h, err := a.home()
	if err != nil {
		return compose.Options{}, nil, err
	}
	dir := s.dir
	if dir == "" {
		if dir, err = a.dir(); err != nil {
			return compose.Options{}, nil, err
		}
	}
	preferred := s.provider
	if preferred == "" {
		preferred = os.Getenv("SWARM_PROVIDER")
	}
	p := project.Open(dir, s.file, h.PromptPath())
	file, text, err := p.Compose()
	return compose.Options{File: file, Source: text, Prompts: p, Only: s.only, Set: s.set, Provider: preferred, MaxParallel: s.parallel, Dir: dir,
		Stdin: a.readStdin}, p, err
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
		Long: `Run the pipeline main, or the only one, or all tasks as one; or the pipeline or tasks that are named, with what they depend on.

Ctrl-C stops cleanly and the run can be resumed; twice kills.
Exits with 0 all done, 1 something failed, 2 bad input, 3 budget spent, 130 interrupted.`,
		Example: `  swarm up
  swarm up build test -j 4
  swarm up --set pipelines.main.iterations=5
  swarm up -d && swarm attach @last
  swarm up --record run.cassette`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if detach {
				return a.detach()
			}
			o, err := src.options(a, args)
			if err != nil {
				return err
			}
			b, err := composeWork(o)
			if err != nil {
				return err
			}
			a.warn(b.Warnings)
			return a.begin(begin{bundle: b, file: o.File, dir: o.Dir, args: os.Args[1:], record: record, replay: replay})
		},
	}
	src.flags(cmd)
	src.selection(cmd)
	f := cmd.Flags()
	f.BoolVarP(&detach, "detach", "d", false, "run in the background; 'swarm attach' looks in, 'swarm wait' waits")
	recordFlags(cmd, &record, &replay)
	return cmd
}

// composeWork makes the plan of something to do. A file of agents only is for those who tell them what to do.
func composeWork(o compose.Options) (*compose.Bundle, error) {
	b, err := compose.Compile(o)
	if err != nil || len(b.Plan.Tasks) > 0 {
		return b, err
	}
	e := &swarm.Error{Kind: swarm.BadInput, File: o.File, Msg: "this file has no tasks"}
	if len(b.Plan.Agents) == 0 {
		return nil, e.WithHint("write at least one: tasks: {hello: {prompt-string: \"Say hello.\"}}")
	}
	return nil, e.WithHint("give its agents something to do: swarm team \"…\", swarm run '@%s …' or swarm repl", b.Plan.Agents[0].Name)
}

func recordFlags(cmd *cobra.Command, record, replay *string) {
	cmd.Flags().Var((*something)(record), "record", "write the run to this `file`, to be replayed")
	cmd.Flags().Var((*something)(replay), "replay", "take the agents' answers from this `file`; no agent is started")
}

// warn shows what is doubtful and does not keep a run from starting.
func (a *app) warn(warnings []*swarm.Error) {
	if a.json {
		return
	}
	for _, w := range warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", term.Escape(w.Error()))
		if w.Hint != "" {
			fmt.Fprintf(a.stderr, "hint: %s\n", term.Escape(w.Hint))
		}
	}
}

// A begin is a run that is about to begin.
type begin struct {
	bundle         *compose.Bundle
	file, dir      string
	args           []string
	record, replay string
	cassette       *provider.Cassette // what replay names, when it was opened before
	id             string             // "" = one is made
	from           string             // the run that this one tries again
	kept           []swarm.Event      // and what it keeps of it
	asked          *swarm.Asked       // the message of another program by which it is begun
	quiet          bool               // only the last task's output is printed
	patience       patience           // zero = nobody looks
}

// begin starts a run and drives it to its end.
func (a *app) begin(b begin) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	b.patience = a.patience()
	o, err := b.options()
	if err != nil {
		return err
	}
	out, err := recordTo(b.record)
	if err != nil {
		return err
	}
	s := stopSignals()
	r, err := b.start(s.ctx, h)
	s.end()
	if err != nil {
		return err
	}
	defer r.Close()
	detached(r.ID)
	if !b.quiet && b.replay == "" {
		a.sayHolds(&b.bundle.Plan)
	}
	p, err := a.drive(h, r, o, b.quiet)
	if err == nil && b.quiet {
		err = a.printResult(r, p)
	}
	if out != nil {
		if err2 := out.write(r); err == nil {
			err = err2
		}
	}
	return err
}

// options are how it is driven. Without a recording its agents have to be there.
func (b *begin) options() (o run.Options, err error) {
	if o.Replay = b.cassette; b.replay != "" && o.Replay == nil {
		o.Replay, err = openCassette(b.replay)
	}
	if b.replay != "" {
		return o, err
	}
	return o, ready(b.bundle, b.dir, b.patience)
}

// start makes the run.
func (b *begin) start(ctx context.Context, h *home.Home) (*run.Run, error) {
	p := &b.bundle.Plan
	return run.Start(ctx, h, swarm.RunStart{ID: b.id, Kind: p.Kind, Name: p.Name, Dir: b.dir, File: b.file, Args: b.args, Version: version,
		Replay: b.replay != "", From: b.from, Asked: b.asked, Time: time.Now()}, p, b.bundle.Bodies, b.kept...)
}
