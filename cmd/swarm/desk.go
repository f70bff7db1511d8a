package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/excerpt"
	"swarm/internal/term"
)

func (a *app) deskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "desk",
		Short: "Work with agents that only read and write files",
		Long: `A desk is a folder through which an agent works. It reads inbox/instructions.md, writes outbox/, and says
in status.json how far it is: pending, running, completed or failed. So a shell script, a notebook, a
person with an editor or a program in any language can be a teammate.

These commands need no compose file. They work on any folder that follows the protocol.`,
		Example: "  swarm desk new notes --template writer --objective 'Say what is new'\n" +
			"  swarm desk run notes -- claude -p 'Do what SKILL.md says'\n  swarm desk collect notes",
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.deskNewCommand(), a.deskRunCommand(), a.deskStatusCommand(), a.deskCollectCommand(),
		a.deskFixCommand(), a.deskDissolveCommand(), a.deskValidateCommand())
	return cmd
}

// completeDesks offers folders.
func completeDesks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeDesk offers folders for the first argument only.
func completeDesk(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func (a *app) deskStatusCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "status [DESK…]",
		Short: "Show what desks say of themselves",
		Long: `Show the state and the progress of desks; without arguments, of those in this folder, or else of this
folder's newest run. DESK is a folder, or a task of that run that had a desk. A status.json that is just
being written is not an error: the last good state counts.

With -f, print each change until all have ended, and exit with 1 if one failed. With --json, the result
is an array; with -f, one object a line for each change.`,
		Example:           "  swarm desk status\n  swarm desk status -f notes report\n  swarm desk status --json",
		ValidArgsFunction: completeDesks,
		RunE: func(cmd *cobra.Command, args []string) error {
			desks, err := openDesks(args, a.findDesk)
			if err == nil && len(args) == 0 && len(desks) == 0 {
				desks, err = a.openNewestDesks()
			}
			if err != nil {
				return err
			}
			defer closeDesks(desks)
			if follow && (len(desks) > 0 || a.json) {
				return a.followDesks(desks)
			}
			return a.listDesks(cmd.Context(), desks)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print each change until all have ended")
	return cmd
}

// openDesks opens the desks that the user names, or all in this folder.
func openDesks(names []string, open func(name string) (*desk.Desk, error)) (desks []*desk.Desk, err error) {
	named := len(names) > 0
	if !named {
		if names, err = filepath.Glob("*/" + desk.Inbox); err != nil {
			return nil, err
		}
		for i := range names {
			names[i] = filepath.Dir(names[i])
		}
		if _, err := os.Lstat(desk.Inbox); err == nil {
			names = append(names, ".")
		}
	}
	for _, name := range names {
		d, err := open(name)
		if err != nil && named {
			closeDesks(desks)
			return nil, err
		}
		if err == nil {
			desks = append(desks, d)
		}
	}
	return desks, nil
}

// openNewestDesks opens the desks of the newest run of this folder. Those that are gone are left out.
func (a *app) openNewestDesks() (desks []*desk.Desk, err error) {
	run, dirs, err := a.newestDesks()
	if err != nil {
		return nil, err
	}
	for _, task := range slices.Sorted(maps.Keys(dirs)) {
		if d, err := desk.OpenInRun(dirs[task]); err == nil {
			desks = append(desks, d)
		}
	}
	if len(desks) > 0 && !a.json {
		fmt.Fprintf(a.stdout, "desks of the run %s\n", run)
	}
	return desks, nil
}

func closeDesks(desks []*desk.Desk) {
	for _, d := range desks {
		d.Close()
	}
}

// A deskReport is the JSON form of a desk's status.
type deskReport struct {
	Desk    string       `json:"desk"`
	Path    string       `json:"path"`
	Status  *desk.Status `json:"status"` // null = none could be read yet
	Writing bool         `json:"writing,omitempty"`
	Problem *problem     `json:"problem,omitempty"`
}

func reportOf(d *desk.Desk, r desk.Reading) deskReport {
	report := deskReport{Desk: d.Name(), Path: d.Path(), Writing: r.Writing}
	if r.Status.State != "" {
		report.Status = &r.Status
	}
	if e := problemOfReading(r); e != nil {
		p := problemOf(e)
		report.Problem = &p
	}
	return report
}

// problemOfReading is what is wrong with a status.
func problemOfReading(r desk.Reading) *swarm.Error {
	if r.Violation != nil {
		return r.Violation
	}
	return r.Unread
}

// deskWords tells a status to people.
func deskWords(r desk.Reading) (state, progress, wrong string) {
	state, progress = string(r.Status.State), r.Status.Progress.String()
	if state == "" {
		state = "unreadable"
	}
	switch e := problemOfReading(r); {
	case e != nil:
		wrong = filepath.Base(e.File) + ": " + e.Text()
	case r.Status.State == desk.Failed && r.Status.Error != nil:
		wrong = r.Status.Error.String()
	}
	return state, progress, wrong
}

func (a *app) listDesks(ctx context.Context, desks []*desk.Desk) error {
	reports := []deskReport{}
	table := term.NewTable("DESK", "STATE", "PROGRESS", "STARTED", "PROBLEM")
	for _, d := range desks {
		r := d.Status(ctx)
		reports = append(reports, reportOf(d, r))
		state, progress, wrong := deskWords(r)
		table.Row(d.Name(), state, progress, ago(r.Status.Started, time.Now()), wrong)
	}
	switch {
	case a.json:
		return a.print(reports)
	case len(desks) == 0:
		fmt.Fprintln(a.stdout, "there is no desk in this folder; to make one: swarm desk new NAME")
		return nil
	}
	return a.table(table)
}

// followDesks prints the changes of desks until each has ended.
func (a *app) followDesks(desks []*desk.Desk) error {
	ctx, end := leaveSignals()
	defer end()
	w := desk.NewWatcher(desk.WatchOptions{})
	defer w.Close()
	var printing sync.Mutex
	var all sync.WaitGroup
	ends := make([]desk.Reading, len(desks))
	errs := make([]error, len(desks))
	for i, d := range desks {
		all.Go(func() {
			ends[i], errs[i] = w.Follow(ctx, d, desk.Status{}, nil, func(r desk.Reading) {
				printing.Lock()
				defer printing.Unlock()
				a.tellDesk(a.stdout, d, r)
			})
		})
	}
	all.Wait()
	for _, r := range ends {
		if r.Status.State == desk.Failed || r.Violation != nil {
			a.exit = swarm.ExitFailed
		}
	}
	return errors.Join(errs...)
}

// tellDesk prints one change of a desk.
func (a *app) tellDesk(to io.Writer, d *desk.Desk, r desk.Reading) {
	if a.json {
		_ = a.print(reportOf(d, r)) // a person or program that has left gets no more
		return
	}
	state, progress, wrong := deskWords(r)
	line := d.Name() + "  " + state
	for _, more := range []string{progress, excerpt.OneLine(wrong)} {
		if more != "" {
			line += "  " + more
		}
	}
	fmt.Fprintln(to, term.Escape(line))
}

func (a *app) deskValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate DIR…",
		Short: "Check that a folder follows the protocol of desks",
		Long: `Check folders against the protocol: the folders and files that must be there, the sections of
instructions.md, the fields of status.json, the paths in dependencies.json, and, of a completed desk, that
it has a summary and a deliverable. Nothing is changed, and links are not followed.

Exits with 2 on errors, and with 0 when there are only warnings.`,
		Example:           "  swarm desk validate notes\n  swarm desk validate notes --json",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeDesks,
		RunE: func(_ *cobra.Command, args []string) error {
			var errs, warnings []*swarm.Error
			for _, dir := range args {
				e, w := desk.Validate(dir)
				errs, warnings = append(errs, e...), append(warnings, w...)
			}
			if len(errs) > 0 {
				a.exit = swarm.ExitBadInput
			}
			if a.json {
				return a.print(struct {
					Errors   []problem `json:"errors"`
					Warnings []problem `json:"warnings"`
				}{problems(errs), problems(warnings)})
			}
			a.listProblems("error", errs)
			a.listProblems("warning", warnings)
			count := "no errors"
			if len(errs) > 0 {
				count = term.Plural(len(errs), "error")
			}
			fmt.Fprintf(a.stdout, "%s: %s, %s\n", term.Escape(strings.Join(args, ", ")), count, term.Plural(len(warnings), "warning"))
			return nil
		},
	}
}
