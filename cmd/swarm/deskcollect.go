package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/term"
)

func (a *app) deskCollectCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "collect DESK",
		Short: "Show what a worker has delivered, or copy it",
		Long: `DESK is a folder, or a task of this folder's newest run that had a desk.

Read the outbox of a desk and list its files with size and SHA-256, the success criteria that the summary
ticks, and the summary. workspace/ is left out. A completed desk without a summary or a deliverable, and
links, pipes and devices in the outbox break the protocol.

The inbox is compared with what it was when swarm desk new made it, or when swarm desk run or the turn of
a run began.

With -o, copy the files to a folder; nothing there is replaced. Exits with 1 if the worker has failed, has
not finished, or broke the protocol.`,
		Example:           "  swarm desk collect notes\n  swarm desk collect notes -o delivered\n  swarm desk collect notes --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeDesk,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.findDesk(args[0])
			if err != nil {
				return err
			}
			defer d.Close()
			c, err := a.collectDesk(cmd.Context(), d, true)
			if err != nil {
				return err
			}
			if out != "" {
				if err := d.Export(c, out); err != nil {
					return err
				}
			}
			return a.printCollection(d, c)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "copy the files to this `FOLDER`")
	return cmd
}

// collectDesk reads the outbox of a desk, and compares its inputs with what was kept of them. failed says
// whether those of a desk that has failed are compared too: a person may have begun to correct them.
func (a *app) collectDesk(ctx context.Context, d *desk.Desk, failed bool) (*desk.Collection, error) {
	reading := d.Status(ctx)
	o := desk.CollectOptions{Status: reading.Status}
	compare := failed || reading.Status.State != desk.Failed
	if kept, ok := a.inputsOf(d); ok && compare {
		o.Manifest = &kept
	}
	c, err := d.Collect(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Manifest == nil && compare {
		c.Warnings = append(c.Warnings, swarm.Errorf(swarm.BadInput, "changes of the inbox of %s cannot be found: "+
			"no command of this user created or ran the desk", d.Name()).WithHint("create desks with swarm desk new, or have swarm desk run wait for the worker"))
	}
	if e := problemOfReading(reading); e != nil {
		c.Violations = append(c.Violations, e)
	}
	return c, nil
}

// inputsOf is what the inputs of a desk must be: as a command kept them, or as the last attempt of a run
// found them. A person who corrects the desk of a run and then retries it makes both, in any order, so
// inputs that are as one of them are good.
func (a *app) inputsOf(d *desk.Desk) (m desk.Manifest, ok bool) {
	m, ok = a.keptInputs(d)
	if ok && len(d.Verify(m)) == 0 {
		return m, true
	}
	opened, found := a.openedInputs(d)
	if found && (!ok || len(d.Verify(opened)) == 0) {
		return opened, true
	}
	return m, ok
}

// openedInputs is what the inputs of a run's desk were when its last attempt began.
func (a *app) openedInputs(d *desk.Desk) (m desk.Manifest, ok bool) {
	id, _, ok := a.runOf(d)
	if !ok {
		return m, false
	}
	c, err := a.control()
	if err != nil {
		return m, false
	}
	l, err := c.OpenReader(swarm.RunID(id))
	if err != nil {
		return m, false
	}
	defer l.Close()
	text, err := l.DeskInputs(d.Name())
	return m, err == nil && text != nil && json.Unmarshal(text, &m) == nil
}

// keepInputs stores what the inputs of a desk are before the work begins.
func (a *app) keepInputs(d *desk.Desk, m desk.Manifest) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	return h.KeepDeskInputs(d.Path(), m)
}

// keptInputs is what the inputs were.
func (a *app) keptInputs(d *desk.Desk) (m desk.Manifest, ok bool) {
	h, err := a.home()
	return m, err == nil && h.DeskInputs(d.Path(), &m)
}

// printCollection prints what a worker has delivered, and sets the exit code.
func (a *app) printCollection(d *desk.Desk, c *desk.Collection) error {
	c.Files = append([]desk.File{}, c.Files...) // in JSON an array, never null
	why := c.Failure()
	if why != nil {
		a.exit = swarm.ExitFailed
	}
	if a.json {
		return a.print(struct {
			Desk string `json:"desk"`
			*desk.Collection
			Failure    *desk.Failure `json:"failure"`
			Violations []problem     `json:"violations"`
			Warnings   []problem     `json:"warnings"`
		}{d.Name(), c, why, problems(c.Violations), problems(c.Warnings)})
	}
	if len(c.Files) > 0 {
		table := term.NewTable("FILE", "KIND", "SIZE", "SHA-256").Right(2)
		for _, f := range c.Files {
			table.Row(f.Path, string(f.Kind), term.Bytes(f.Size), f.SHA256[:12])
		}
		if err := a.table(table); err != nil {
			return err
		}
	}
	for _, criterion := range c.Criteria {
		fmt.Fprintln(a.stdout, tickBox(criterion.Met), a.foreign([]byte(criterion.Text)))
	}
	if c.Summary != "" {
		fmt.Fprintf(a.stdout, "\n%s\n", strings.TrimRight(a.foreign([]byte(c.Summary)), "\n"))
	}
	a.listProblems("warning", c.Warnings)
	a.listProblems("error", c.Violations)
	if why != nil && len(c.Violations) == 0 {
		said, next := "failed: "+why.String(), nextAfter(d, why)
		switch c.Status.State {
		case desk.Pending:
			said, next = "is pending: no worker has started yet", "swarm desk run "+shownDesk(d)+" -- COMMAND"
		case desk.Running:
			said, next = "is running: its worker has not finished", "watch it: swarm desk status -f "+shownDesk(d)
		}
		fmt.Fprintf(a.stderr, "error: the desk %s %s\n", d.Name(), term.Escape(said))
		fmt.Fprintf(a.stderr, "hint: %s\n", term.Escape(next))
	}
	return nil
}

// nextAfter is what to do about a failure.
func nextAfter(d *desk.Desk, why *desk.Failure) string {
	if why.Recoverable {
		return "for another attempt: swarm desk run " + shownDesk(d) + " -- COMMAND"
	}
	return "correct what is wrong in its inbox: swarm desk fix " + shownDesk(d)
}
