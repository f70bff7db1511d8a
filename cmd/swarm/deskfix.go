package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/term"
)

func (a *app) deskFixCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "fix DESK [-- COMMAND…]",
		Short: "Open the desk of a worker that failed, to correct what is wrong",
		Long: `Show why a worker failed, what it left in outbox/ and outbox/partial/, and what to type next. In a
terminal, then open inbox/instructions.md in $VISUAL or $EDITOR, or a shell in the folder if neither is set.
With a command, run it there instead, with the desk's path in SWARM_DESK.

DESK is a folder, or a task of this folder's newest run that had a desk.

Afterwards the inbox is checked, and counts as it is now. Nothing is run again by itself: use
swarm desk run, or swarm retry RUN --from TASK for the desk of a run.`,
		Example:           "  swarm desk fix report\n  swarm desk fix report -- cp \"$PWD/data.csv\" inbox/\n  swarm desk fix report --show",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeDesk,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at != 1 && len(args) > 1 {
				return swarm.Errorf(swarm.BadInput, "name one desk, and the command after --").
					WithHint("swarm desk fix %s -- %s", args[0], strings.Join(args[1:], " "))
			}
			d, err := a.findDesk(args[0])
			if err != nil {
				return err
			}
			defer d.Close()
			return a.fixDesk(cmd.Context(), d, args[1:], show)
		},
	}
	cmd.Flags().BoolVar(&show, "show", false, "only show it; open nothing")
	return cmd
}

// fixDesk shows why a desk failed, and has a person or a command correct it.
func (a *app) fixDesk(ctx context.Context, d *desk.Desk, command []string, show bool) error {
	unlock, err := d.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	c, err := a.collectDesk(ctx, d, false)
	if err != nil {
		return err
	}
	why := c.Failure()
	switch state := c.Status.State; {
	case why == nil:
		return swarm.Errorf(swarm.BadInput, "the desk %s has not failed: it is completed", d.Name()).
			WithHint("see what it has: swarm desk collect %s", shownDesk(d))
	case len(c.Violations) == 0 && state == desk.Pending:
		return swarm.Errorf(swarm.BadInput, "the desk %s has not failed: no worker has started yet", d.Name()).
			WithHint("edit its inbox, then: swarm desk run %s", shownDesk(d))
	case len(c.Violations) == 0 && state == desk.Running:
		return swarm.Errorf(swarm.BadInput, "the desk %s has not failed: its worker is running", d.Name()).
			WithHint("watch it: swarm desk status -f %s; if the worker is lost: swarm desk run --again %s", shownDesk(d), shownDesk(d))
	}
	if !a.json {
		a.showFailure(d, c, why)
	}
	if len(command) == 0 && !show && a.typed() {
		command = a.opener()
	}
	if len(command) > 0 {
		if err := a.openDesk(d, command); err != nil {
			return err
		}
	}
	wrong := a.checkFixed(d)
	if wrong != nil && len(command) > 0 {
		return wrong
	}
	if !show && wrong == nil { // edits of the person count, those made now and those made later by hand
		manifest, err := d.Record()
		if err == nil {
			err = a.keepInputs(d, manifest)
		}
		if err != nil && len(command) > 0 {
			return err
		}
		if c, err = a.collectDesk(ctx, d, false); err != nil {
			return err
		}
	}
	next := a.nextAfterFix(d, c)
	if wrong != nil { // a retry could not copy this inbox, so its inputs are not recorded
		next = "correct " + wrong.Error() + "; then swarm desk fix " + shownDesk(d)
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "\nnext: %s\n", term.Escape(next))
		return nil
	}
	return a.print(struct {
		Desk        string        `json:"desk"`
		Path        string        `json:"path"`
		Failure     *desk.Failure `json:"failure"`
		Violations  []problem     `json:"violations"`
		ErrorReport string        `json:"error_report"`
		Files       []desk.File   `json:"files"`
		Next        string        `json:"next"`
	}{d.Name(), d.Path(), why, problems(c.Violations), c.ErrorReport, c.Files, next})
}

// showFailure tells a person what went wrong, and where.
func (a *app) showFailure(d *desk.Desk, c *desk.Collection, why *desk.Failure) {
	fmt.Fprintf(a.stdout, "%s failed: %s\n", d.Name(), a.foreign([]byte(why.String())))
	if n := d.Attempts(); n > 0 {
		fmt.Fprintf(a.stdout, "%s failed before; %s says why\n", term.Plural(n, "attempt"), desk.InstructionsFile)
	}
	if report := strings.TrimSpace(c.ErrorReport); report != "" {
		fmt.Fprintf(a.stdout, "\n%s:\n", desk.ErrorReportFile)
		for line := range strings.SplitSeq(a.foreign([]byte(report)), "\n") {
			fmt.Fprintln(a.stdout, strings.TrimRight("  "+line, " "))
		}
	}
	show := func(head string, want func(desk.FileKind) bool) {
		files := slices.DeleteFunc(slices.Clone(c.Files), func(f desk.File) bool { return !want(f.Kind) })
		if len(files) == 0 {
			return
		}
		fmt.Fprintf(a.stdout, "\n%s:\n", head)
		for _, f := range files {
			fmt.Fprintf(a.stdout, "  %s  %s\n", term.Escape(f.Path), term.Bytes(f.Size))
		}
	}
	show("it left", func(k desk.FileKind) bool { return k != desk.PartialWork && k != desk.ErrorReport })
	show("earlier attempts left", func(k desk.FileKind) bool { return k == desk.PartialWork })
	fmt.Fprintf(a.stdout, "\nits inputs: %s\n", term.Escape(filepath.Join(shownDesk(d), desk.Inbox)))
}

// opener is what opens a desk for a person: their editor with the instructions, or a shell.
func (a *app) opener() []string {
	if editor := editorCommand(); len(editor) > 0 {
		return append(editor, desk.InstructionsFile)
	}
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "sh"
	}
	fmt.Fprintln(a.stdout, "\nhere is a shell in its folder; exit ends it")
	return []string{shell}
}

// openDesk runs a program of the person in the folder of the desk. It is not the worker: it has the whole
// environment, and may change the inbox.
func (a *app) openDesk(d *desk.Desk, command []string) error {
	program := exec.Command(command[0], command[1:]...) //nolint:gosec // the person names it
	program.Dir = d.Path()
	program.Env = append(os.Environ(), "SWARM_DESK="+d.Path())
	program.Stdin, program.Stdout, program.Stderr = a.stdin, a.stderr, a.stderr
	if a.onTerminal() && !a.json {
		program.Stdout = a.stdout
	}
	if err := program.Run(); err != nil {
		return swarm.Errorf(swarm.BadInput, "%s: %w", command[0], err).WithHint("the desk stays failed; correct it, and try again")
	}
	return nil
}

// nextAfterFix is what a person types when the desk is corrected.
func (a *app) nextAfterFix(d *desk.Desk, c *desk.Collection) string {
	if run, task, ok := a.runOf(d); ok {
		return "swarm retry " + run + " --from " + task
	}
	switch {
	case c.Failure() == nil:
		return "swarm desk collect " + shownDesk(d)
	case c.Status.State == desk.Failed:
		return "swarm desk run " + shownDesk(d) + " -- COMMAND"
	}
	return "swarm desk run --again " + shownDesk(d) + " -- COMMAND"
}

// checkFixed checks the inbox that a person has corrected. A retry copies the inbox of a run's desk
// to a new desk, so large files are refused there.
func (a *app) checkFixed(d *desk.Desk) error {
	errs, _ := checkInbox(d)
	odd, large := d.CheckInputs()
	errs = append(errs, odd...)
	if _, _, ok := a.runOf(d); ok {
		errs = append(errs, large...)
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// runOf returns the run and the task that a desk belongs to. The desks of a run lie in the state folder, or
// in the folder that its compose file names.
func (a *app) runOf(d *desk.Desk) (run, task string, ok bool) {
	h, err := a.home()
	if err != nil {
		return "", "", false
	}
	task, desks := d.Name(), filepath.Dir(d.Path())
	id := swarm.RunID(filepath.Base(filepath.Dir(desks)))
	if h.DesksPath(id) == desks {
		return string(id), task, true
	}
	if id = desk.LastRun(desks); !h.Exists(id) {
		return "", "", false
	}
	opened, err := a.desksOf(id)
	return string(id), task, err == nil && sameFolder(opened[task], d.Path())
}

// desksOf returns the folders of a run's desks, by task.
func (a *app) desksOf(id swarm.RunID) (map[string]string, error) {
	c, err := a.control()
	if err != nil {
		return nil, err
	}
	l, err := c.OpenReader(id)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.Desks()
}

// sameFolder reports whether two paths lead to the same folder.
func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// findDesk opens the desk that a person names: by its folder, or else by its task in the newest run of this
// folder.
func (a *app) findDesk(name string) (*desk.Desk, error) {
	d, missing := desk.Open(name)
	if missing == nil || name == "" || filepath.Base(name) != name || name == "." || name == ".." {
		return d, missing
	}
	newest, desks, err := a.newestDesks()
	if err != nil {
		return nil, err
	}
	if newest == "" {
		return nil, missing
	}
	if dir := desks[name]; dir != "" {
		return desk.OpenInRun(dir)
	}
	if len(desks) == 0 || swarm.KindOf(missing) != swarm.NotFound {
		return nil, missing
	}
	names := slices.Sorted(maps.Keys(desks))
	return nil, swarm.Errorf(swarm.NotFound, "there is no folder %s, and run %s has no desk of that name", name, newest).
		WithHint("%s", swarm.DidYouMean(name, names))
}

// newestDesks returns the newest run of this folder, and the folders of its desks by task; "" = this folder
// has no run.
func (a *app) newestDesks() (id swarm.RunID, desks map[string]string, err error) {
	c, err := a.control()
	if err != nil {
		return "", nil, err
	}
	ref, err := c.Newest()
	if err != nil {
		return "", nil, err
	}
	newest, err := c.Find(ref)
	if err != nil {
		return "", nil, nil //nolint:nilerr // this folder has no run
	}
	desks, err = a.desksOf(newest.ID)
	return newest.ID, desks, err
}
