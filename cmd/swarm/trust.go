package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/statedir"
	"swarm/internal/term"
)

func (a *app) trustCommand() *cobra.Command {
	var (
		src          source
		list, revoke bool
	)
	cmd := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Confirm what a compose file does with your keys",
		Long: `List what a compose file would do that needs your confirmation, and confirm it. The file is
swarm/swarm.yaml, if no other is named. In a terminal you are asked once.

A file needs confirmation to hand a key of a model's vendor, or of a well-known service, to a program or
a server other than the vendor's own. It is needed once for each file, key and destination. Without it,
commands that start the file's agents ask, or end with exit code 2 where no person can answer.`,
		Example: "  swarm trust\n  swarm trust team.yaml --list\n  swarm trust --revoke",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				src.file = args[0]
			}
			c, err := a.control()
			if err != nil {
				return err
			}
			file, all, err := c.Confirmations(src.request(a, nil))
			switch {
			case revoke && (err == nil || file != ""):
				return a.revoke(c, file)
			case err != nil:
				return err
			case list:
				return a.printConfirmations(src.file, all)
			}
			return a.trust(c, src.file, all)
		},
	}
	f := cmd.Flags()
	f.VarP((*something)(&src.file), "file", "f", "the compose `file`, as other commands name it")
	f.StringArrayVar(&src.set, "set", nil, "change a `value` of the compose file, as in providers.local.base_url=URL")
	f.Var((*something)(&src.provider), "provider", "the `provider` of agents that name none (or SWARM_PROVIDER)")
	f.BoolVar(&list, "list", false, "list only, and confirm nothing")
	f.BoolVar(&revoke, "revoke", false, "forget everything that was confirmed about the file")
	cmd.MarkFlagsMutuallyExclusive("list", "revoke")
	return cmd
}

// trust confirms what a file asks. In a terminal the person sees it first and is asked once.
func (a *app) trust(c *control.Control, name string, all []control.Confirmation) error {
	open := 0
	for _, q := range all {
		if !q.Confirmed {
			open++
		}
	}
	if open > 0 && a.typed() {
		if err := a.printConfirmations(name, all); err != nil {
			return err
		}
		if !a.yes("confirm what is open (" + fmt.Sprint(open) + "), for this file and from now on?") {
			return swarm.Errorf(swarm.Unconfirmed, "nothing was confirmed")
		}
	}
	for i := range all {
		if !all[i].Confirmed {
			if err := control.Confirm(c.Home, all[i]); err != nil {
				return err
			}
			all[i].Confirmed = true
		}
	}
	return a.printConfirmations(name, all)
}

func (a *app) revoke(c *control.Control, file string) error {
	n, err := control.Revoke(c.Home, file)
	if err != nil {
		return err
	}
	if a.json {
		return a.print(map[string]any{"file": file, "revoked": n})
	}
	_, err = fmt.Fprintf(a.stdout, "revoked %s of %s\n", term.Plural(n, "confirmation"), term.Escape(file))
	return err
}

func (a *app) printConfirmations(name string, all []control.Confirmation) error {
	if a.json {
		if all == nil {
			all = []control.Confirmation{}
		}
		return a.print(all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.stdout, "there is nothing to confirm")
		return err
	}
	for _, q := range all {
		state := "open"
		if q.Confirmed {
			state = "confirmed"
		}
		note := ""
		if q.Idle {
			note = " (not set now)"
		}
		fmt.Fprintf(a.stdout, "%-10s %s%s\n", state, term.Escape(q.Text), note)
	}
	return nil
}

// asker asks the person at the terminal about a question. It is nil if there is no terminal, or if an
// agent has started this program.
func (a *app) asker(h *statedir.Home) control.Asker {
	if !a.typed() || control.FindCaller(h, swarm.HowTerminal).Agent {
		return nil
	}
	return func(q control.Confirmation) bool {
		fmt.Fprintf(a.stderr, "%s: %s\n", term.Escape(q.File), term.Escape(q.Text))
		return a.yes("confirm it, for this file and from now on?")
	}
}

// yes asks a question in the terminal. Anything but y or yes is a no. It reads byte by byte, so that
// the next line is left for others.
func (a *app) yes(question string) bool {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	var answer strings.Builder
	for one := make([]byte, 1); answer.Len() < 100; {
		n, err := a.stdin.Read(one)
		if n == 1 && one[0] == '\n' {
			break
		}
		answer.Write(one[:n])
		if err != nil {
			fmt.Fprintln(a.stderr) // Ctrl-D ends no line
			break
		}
	}
	switch strings.ToLower(strings.TrimSpace(answer.String())) {
	case "y", "yes":
		return true
	}
	return false
}

// unconfirmed returns warnings about what a person has not confirmed yet.
func (a *app) unconfirmed(o compose.Options) (warnings []*swarm.Error) {
	c, err := a.control()
	if err != nil {
		return nil
	}
	return c.Unconfirmed(o)
}
