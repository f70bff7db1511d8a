package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/process"
	"swarm/internal/term"
)

// deskRunID is the run of workers that are in none.
const deskRunID swarm.RunID = "desk"

// A deskRun is one attempt at a desk.
type deskRun struct {
	*desk.Desk
	command []string // nil = an external worker
	env     []string // NAME or NAME=VALUE
	again   bool
	timeout time.Duration

	unfinished *desk.Unfinished // a worker of the last attempt that may still be at work; nil = none
}

func (a *app) deskRunCommand() *cobra.Command {
	r := deskRun{}
	cmd := &cobra.Command{
		Use:   "run DESK [-- COMMAND…]",
		Short: "Run a command at a desk, or wait for an external worker",
		Long: `Start a command in the folder of the desk, with its path in SWARM_DESK, and collect the outbox when it has
ended. Paths in its arguments are relative to the desk: write "$PWD/worker.sh" for a file of this folder. Without a command, wait for an external worker: a person, or a program on this or another machine.
In both cases, status.json says how far the work is.

First wait for the desks beside this one that inbox/dependencies.json names, and copy their outputs. A
desk that failed gets another attempt: its outbox moves to outbox/partial/, and the instructions say why
it failed.

A worker that ends without a final state, completes without summary.md and a deliverable, or changes its
inbox has failed. Exits with 0 if the worker completed, and with 1 if it failed.`,
		Example: "  swarm desk run notes -- python3 \"$PWD/worker.py\"\n" +
			"  swarm desk run notes --env ANTHROPIC_API_KEY -- claude -p 'Do what SKILL.md says'\n  swarm desk run notes --timeout 1h",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeDesk,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.ArgsLenAtDash()
			if at < 0 {
				at = len(args)
			}
			if cmd.ArgsLenAtDash() == len(args) {
				return swarm.Errorf(swarm.BadInput, "there is no command after --").
					WithHint("swarm desk run %s -- COMMAND; without --, it waits for an external worker", args[0])
			}
			if r.timeout < 0 {
				return swarm.Errorf(swarm.BadInput, "--timeout %v is negative", r.timeout).WithHint("write --timeout 10m, or leave it out")
			}
			if at != 1 || len(args) > 1 && args[1] == "" {
				return swarm.Errorf(swarm.BadInput, "name one desk, and the command after --").
					WithHint("swarm desk run %s -- %s", args[0], strings.Join(args[1:], " "))
			}
			d, err := desk.Open(args[0])
			if err != nil {
				return err
			}
			defer d.Close()
			r.Desk, r.command = d, args[1:]
			return a.runDesk(&r)
		},
	}
	cmd.Flags().BoolVar(&r.again, "again", false, "another attempt, also at a desk that is completed or running")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 0, "the most that the worker may take, such as 10m; 0 is no limit")
	cmd.Flags().StringArrayVar(&r.env, "env", nil, "give the command a variable: `NAME`, or NAME=VALUE; keys of vendors are not passed on by themselves")
	return cmd
}

func (a *app) runDesk(r *deskRun) error {
	unlock, err := r.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, end := leaveSignals()
	defer end()
	if r.timeout > 0 {
		late := swarm.Errorf(swarm.TimedOut, "the worker took longer than %v", r.timeout).WithHint("give it more with --timeout")
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.timeout, late)
		defer stop()
	}
	errs, warnings := checkInbox(r.Desk)
	if len(errs) > 0 {
		return errs[0]
	}
	if !a.json {
		a.listProblems("warning", warnings)
	}
	if len(r.command) > 0 { // a command that cannot be started changes nothing
		if _, err := r.job(); err != nil {
			return err
		}
	}
	kept, ok := a.keptInputs(r.Desk)
	r.unfinished = r.Unfinished(kept.Unfinished)
	begun, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	var changed []*swarm.Error // before this command began
	if begun && ok {
		changed = r.Verify(kept)
	}
	w := desk.NewWatcher(desk.WatchOptions{})
	defer w.Close()
	large, err := a.awaitOthers(ctx, w, r.Desk)
	if err == nil {
		err = r.NameInputs(large)
	}
	if err != nil {
		return err
	}
	manifest, err := r.Record()
	if err != nil {
		return err
	}
	manifest.References, manifest.Unfinished = large, r.unfinished
	if err := a.keepInputs(r.Desk, manifest); err != nil {
		return err
	}
	attempt, err := a.attempt(w, r, manifest)
	if err != nil {
		return err
	}
	attempt.Violations = changed
	c, err := r.Do(ctx, attempt)
	if err != nil {
		return err
	}
	if err := a.printCollection(r.Desk, c); err != nil {
		return err
	}
	if why := c.Failure(); why != nil && why.Type == desk.AgentExited && !a.json {
		if arg := r.misplaced(); arg != "" {
			fmt.Fprintf(a.stderr, "hint: the command runs in %s, and %s is not there: write %s\n",
				term.Escape(shownDesk(r.Desk)), term.Escape(arg), term.Escape(fromHere(arg)))
		}
	}
	return nil
}

// misplaced returns an argument of the command that is a file of this folder and not of the desk; "" =
// there is none. The command runs in the desk, and does not find that file.
func (r *deskRun) misplaced() string {
	for _, arg := range r.command[min(1, len(r.command)):] {
		if filepath.IsAbs(arg) {
			continue
		}
		_, here := os.Stat(arg)
		if _, there := os.Stat(filepath.Join(r.Path(), arg)); here == nil && errors.Is(there, fs.ErrNotExist) {
			return arg
		}
	}
	return ""
}

// fromHere is a path as a person types it so that it means the same in every folder.
func fromHere(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return fmt.Sprintf(`"$PWD/%s"`, filepath.Clean(path))
}

// checkInbox returns what keeps a worker from starting, and what a person should know before.
func checkInbox(d *desk.Desk) (errs, warnings []*swarm.Error) {
	errs, warnings = desk.Validate(shownDesk(d))
	inbox := filepath.Join(shownDesk(d), desk.Inbox)
	elsewhere := func(e *swarm.Error) bool { return !strings.HasPrefix(e.File, inbox) }
	return slices.DeleteFunc(errs, elsewhere), slices.DeleteFunc(warnings, elsewhere)
}

// prepare makes the desk pending, if it may be worked at. begun says that an external worker has
// begun already.
func (r *deskRun) prepare(ctx context.Context) (begun bool, err error) {
	now := r.Status(ctx)
	state := now.Status.State
	switch {
	case state == desk.Pending && now.Violation == nil:
		if len(r.command) > 0 {
			r.endOrphans()
		}
		return false, nil
	case len(r.command) == 0 && !r.again && (state == desk.Running || state == desk.Completed):
		return true, nil
	case state != desk.Failed && !r.again:
		what := string(state)
		if what == "" {
			what = "unreadable"
		}
		return false, swarm.Errorf(swarm.BadInput, "the desk %s is %s", r.Name(), what).
			WithHint("for another attempt: swarm desk run --again %s", shownDesk(r.Desk))
	}
	r.endOrphans()
	why := desk.Failure{Message: "a person asked for another attempt"}
	if state == desk.Failed && now.Status.Error != nil {
		why = *now.Status.Error
	}
	return false, r.Reset(r.Attempts()+1, why)
}

// endOrphans ends the worker of an earlier command that was killed. The caller has the lock of the desk, so
// no other command has started it.
func (r *deskRun) endOrphans() {
	process.EndMarked("SWARM_RUN_ID="+string(deskRunID), "SWARM_DESK="+r.Path())
}

// awaitOthers waits for the desks that this desk depends on, and copies their outputs. It returns
// the outputs that are too large to copy.
func (a *app) awaitOthers(ctx context.Context, w *desk.Watcher, d *desk.Desk) (large []desk.Recorded, err error) {
	deps, err := d.Dependencies()
	if err != nil {
		return nil, err
	}
	if err := d.CheckDeadlock(); err != nil {
		return nil, err
	}
	others := map[string]*desk.Desk{}
	for _, name := range deps.Names() {
		other, err := desk.Open(filepath.Join(filepath.Dir(d.Path()), name))
		if err != nil {
			return nil, swarm.Errorf(swarm.KindOf(err), "%s waits for the desk %s, which cannot be opened: %w", d.Name(), name, err).
				WithHint("swarm desk new %s, or correct %s", filepath.Join(filepath.Dir(shownDesk(d)), name), filepath.Join(shownDesk(d), desk.DependenciesFile))
		}
		defer other.Close()
		others[name] = other
		if state := other.Status(ctx).Status.State; !state.Final() && !a.json {
			fmt.Fprintf(a.stderr, "%s  waits for %s\n", d.Name(), name)
		}
		end, err := w.Follow(ctx, other, desk.Status{}, nil, nil)
		if err != nil {
			return nil, err
		}
		if end.Violation != nil || end.Status.State != desk.Completed {
			_, _, why := deskWords(end)
			return nil, swarm.Errorf(swarm.WaitFailed, "%s, which %s waits for, failed: %s", name, d.Name(), why).
				WithHint("swarm desk run %s, and then this again", other.Path())
		}
	}
	for _, dep := range deps.DependsOn {
		more, err := d.Receive(dep, others[dep.Agent])
		if err != nil {
			return nil, err
		}
		large = append(large, more...)
	}
	return large, nil
}

// attempt starts the worker's program, if there is one.
func (a *app) attempt(w *desk.Watcher, r *deskRun, m desk.Manifest) (desk.Attempt, error) {
	at := desk.Attempt{Watcher: w, Manifest: m, Resumed: len(r.command) == 0}
	at.Tell = func(now desk.Reading) {
		if !a.json && now.Status.State != desk.Pending {
			a.tellDesk(a.stderr, r.Desk, now)
		}
	}
	at.Notice = func(reason, hint string) {
		if hint != "" {
			reason += " (" + hint + ")"
		}
		fmt.Fprintln(a.stderr, "notice: "+term.Escape(reason))
	}
	if len(r.command) == 0 {
		if !a.json {
			fmt.Fprintf(a.stderr, "%s  waits for an external worker at %s\n", r.Name(), r.Path())
		}
		return at, nil
	}
	job, err := r.job()
	if err != nil {
		return at, err
	}
	say := func(piece string) { fmt.Fprint(a.stderr, term.Escape(piece)) }
	job.Stdout, job.Stderr = say, say
	p, err := job.Start()
	if err != nil {
		return at, process.Program{Name: r.command[0], Provider: "desk"}.StartError(r.Path(), err)
	}
	at.Work = func(ctx context.Context) string {
		status, _, err := p.Wait(ctx)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("exit code %d", process.ExitCode(status))
	}
	return at, nil
}

// job is the program of the worker.
func (r *deskRun) job() (process.Job, error) {
	path, err := exec.LookPath(r.command[0])
	if errors.Is(err, fs.ErrPermission) {
		return process.Job{}, swarm.Errorf(swarm.NotFound, "the program %q may not be executed", r.command[0]).
			WithHint("chmod +x %s, or name what runs it first: swarm desk run %s -- sh %s", r.command[0], shownDesk(r.Desk), fromHere(r.command[0]))
	}
	if err != nil {
		return process.Job{}, swarm.Errorf(swarm.NotFound, "there is no program %q: %w", r.command[0], err).
			WithHint("correct its path, which is relative to this folder; the command itself runs in %s", r.Path())
	}
	if path, err = filepath.Abs(path); err != nil {
		return process.Job{}, err
	}
	added := map[string]string{"SWARM_DESK": r.Path()}
	for _, variable := range r.env {
		name, value, found := strings.Cut(variable, "=")
		if !found {
			if value, found = os.LookupEnv(name); !found {
				return process.Job{}, swarm.Errorf(swarm.BadInput, "--env %s: the variable is not set", name).
					WithHint("export %s=…, or write --env %s=…", name, name)
			}
		}
		added[name] = value
	}
	environment, err := process.NewEnvironment(nil, added)
	if err != nil {
		return process.Job{}, err
	}
	mark := process.Mark{Run: deskRunID, Task: r.Name(), Agent: swarm.AgentOf(r.Name()), Turn: rand.Text(), Iteration: 1, Attempt: r.Attempts() + 1}
	env, err := environment.Of(mark, nil, r.Path())
	if err != nil {
		return process.Job{}, err
	}
	return process.Job{Path: path, Argv: r.command, Dir: r.Path(), Env: env, Run: mark.Run, Turn: mark.Turn}, nil
}

// shownDesk is the path of a desk as a person types it.
func shownDesk(d *desk.Desk) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, d.Path()); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return d.Path()
}
