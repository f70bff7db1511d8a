package main

import (
	"fmt"
	"path/filepath"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/term"
	"swarm/internal/view"
)

// showDesks writes where turns were done by files, what was delivered and which success criteria are
// met.
func (a *app) showDesks(run swarm.RunID, turns []view.Turn) error {
	table := term.NewTable("TURN", "STATE", "FILES", "CRITERIA", "DESK").Right(2)
	some := false
	for i := range turns {
		d := turns[i].Desk
		if d == nil {
			continue
		}
		some = true
		state, files, criteria := "", "", ""
		if d.Status != nil {
			state = d.Status.State
			if step := view.DeskStep(*d.Status); step != "" && d.Delivered == nil {
				state += ", " + step
			}
		}
		if c := d.Delivered; c != nil {
			met := 0
			for _, criterion := range c.Criteria {
				if criterion.Met {
					met++
				}
			}
			state, files = c.State, fmt.Sprint(len(c.Files))
			if len(c.Criteria) > 0 {
				criteria = fmt.Sprintf("%d of %d met", met, len(c.Criteria))
			}
		}
		table.Row(string(turns[i].ID), state, files, criteria, deskNow(run, d.Dir))
	}
	if !some {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return a.table(table)
}

// printDesk writes the desk of a turn with its deliverables and the success criteria.
func (a *app) printDesk(run swarm.RunID, d *view.Desk) {
	if d == nil {
		return
	}
	fmt.Fprintf(a.stdout, "  desk %s\n", term.Escape(deskNow(run, d.Dir)))
	if d.Status != nil {
		fmt.Fprintf(a.stdout, "  %s\n", term.Escape(view.DescribeDesk(*d.Status)))
	}
	if d.Delivered == nil {
		return
	}
	for _, f := range d.Delivered.Files {
		where := f.Ref
		if where == "" {
			where = "in the desk, because it is large"
		}
		fmt.Fprintf(a.stdout, "  delivered %s · %s · %s · SHA-256 %s · %s\n", term.Escape(f.Path), f.Kind, term.Bytes(f.Bytes), f.SHA256[:12], where)
	}
	for _, c := range d.Delivered.Criteria {
		fmt.Fprintf(a.stdout, "  %s %s\n", tickBox(c.Met), term.Escape(c.Text))
	}
	for _, text := range d.Delivered.Problems {
		fmt.Fprintf(a.stdout, "  broke the protocol: %s\n", term.Escape(text))
	}
}

// deskNow says where a desk is now. A later run that uses the same desk folder has archived it.
func deskNow(run swarm.RunID, dir string) string {
	desks := filepath.Dir(dir)
	if last := desk.LastRun(desks); last != "" && last != run {
		return fmt.Sprintf("archived in %s: the run %s uses this folder now", filepath.Join(desks, "_archive"), last)
	}
	return dir
}

func tickBox(met bool) string {
	if met {
		return "[x]"
	}
	return "[ ]"
}
