package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/term"
)

func (a *app) deskDissolveCommand() *cobra.Command {
	var archive, force bool
	cmd := &cobra.Command{
		Use:   "dissolve DESK…",
		Short: "Delete desks, or move them to _archive/",
		Long: `Delete desks with all that is in them. With --archive, move them to _archive/ beside them. A desk whose
worker is running, and a folder that is no desk, are refused.`,
		Example:           "  swarm desk dissolve notes --archive\n  swarm desk dissolve notes report",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeDesks,
		RunE: func(cmd *cobra.Command, args []string) error {
			desks, err := openDesks(args, desk.Open)
			if err != nil {
				return err
			}
			defer closeDesks(desks)
			for i, d := range desks {
				state := d.Status(cmd.Context()).Status.State
				unlock, err := d.Lock()
				if err != nil {
					return err
				}
				defer unlock()
				if !force && (state == "" || state == desk.Running) {
					what := "its worker is running"
					if state == "" {
						what = "its status.json cannot be read"
					}
					return swarm.Errorf(swarm.BadInput, "the desk %s stays: %s", args[i], what).
						WithHint("see swarm desk status %s; to delete it all the same: swarm desk dissolve --force %s", args[i], args[i])
				}
			}
			gone := []dissolved{}
			for i, d := range desks {
				it := dissolved{Desk: d.Name(), Path: d.Path()}
				if it.Archived, err = a.dissolve(d, args[i], archive); err != nil {
					return err
				}
				gone = append(gone, it)
			}
			if a.json {
				return a.print(gone)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&archive, "archive", false, "move them to _archive/ beside them")
	cmd.Flags().BoolVar(&force, "force", false, "also those whose worker is running, or whose status cannot be read")
	return cmd
}

// A dissolved is the JSON form of a desk that was deleted or archived.
type dissolved struct {
	Desk     string `json:"desk"`
	Path     string `json:"path"`
	Archived string `json:"archived,omitempty"` // its new path
}

// dissolve deletes a desk, or archives it under its name and the first free number. It returns the path in
// the archive.
func (a *app) dissolve(d *desk.Desk, name string, archive bool) (to string, err error) {
	what, was := "deleted", d.Path()
	if archive {
		base := d.Name()
		for n := 1; ; n++ {
			to, err = d.Archive(fmt.Sprintf("%s.%d", base, n))
			if errors.Is(err, os.ErrExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			what = "now " + filepath.Join(filepath.Dir(filepath.Clean(name)), filepath.Base(filepath.Dir(to)), filepath.Base(to))
			break
		}
	} else if err := d.Remove(); err != nil {
		return to, err
	}
	h, err := a.home()
	if err != nil {
		return to, err
	}
	if err := h.ForgetDeskInputs(was); err != nil {
		return to, err
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "the desk %s is %s\n", term.Escape(name), term.Escape(what))
	}
	return to, nil
}
