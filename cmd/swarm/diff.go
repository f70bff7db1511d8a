package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/snapshot"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) diffCommand() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:   "diff [RUN] [-- PATH…]",
		Short: "Show what changed in the git tree during a run",
		Long: `Show what changed in the files of the git repository between the start and the end of the run. If
the run has not ended, compare with the files as they are now. Files that git ignores are left out.
Your repository is only read.

` + newestRun,
		Example: "  swarm diff\n  swarm diff @last --stat\n  swarm diff -- src",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths := args[1:]
			if dash := cmd.ArgsLenAtDash(); len(paths) > 0 && (dash < 0 || dash > 1) {
				return swarm.Errorf(swarm.BadInput, "%s is one argument too many", swarm.Quote(paths[0])).WithHint("paths come after --: swarm diff %s -- %s", args[0], strings.Join(paths, " "))
			}
			return a.diff(cmd, args[0], stat, paths)
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "print only the changed files, with line counts")
	return cmd
}

func (a *app) diff(cmd *cobra.Command, ref string, stat bool, paths []string) error {
	h, l, err := a.openReader(ref)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := l.Picture()
	if err != nil {
		return err
	}
	from, to := snapshots(p)
	if from.Hash == "" {
		e := swarm.Errorf(swarm.Other, "run %s has no record of a git tree", p.ID)
		if p.Replay {
			return e.WithHint("a replay starts no agents, so no tree is recorded")
		}
		e = e.WithHint("one is recorded when a run begins in a folder of a git repository")
		all, err := artifacts(l)
		if err == nil && slices.ContainsFunc(all, func(it view.Artifact) bool { return it.Kind == "diff" }) {
			e.Hint += fmt.Sprintf("; to see the diffs of its turns: swarm artifact ls %s", p.ID)
		}
		return e
	}
	paths = append([]string{"--"}, paths...)
	git := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := snapshot.Diff(cmd.Context(), p.Dir, h.TreePath(p.ID), from.Hash, to.Hash, &out, append(args, paths...)...)
		return out.String(), err
	}
	if a.json {
		return a.printChanges(p, from, to, stat, git)
	}
	if to.Hash == "" {
		fmt.Fprintf(a.stderr, "note: run %s is %s; these are the changes so far\n", p.ID, p.Status)
	}
	color, err := a.paints()
	if err != nil {
		return err
	}
	args := []string{"--color=never"}
	if stat {
		args = append(args, "--stat")
	}
	text, err := git(args...)
	if err != nil {
		return err
	}
	if color || a.onTerminal() { // programs get the patch unchanged, so that they can apply it
		text = term.Diff(text, color)
	}
	if text == "" {
		fmt.Fprintln(a.stderr, "nothing changed")
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}

// snapshots returns the recorded snapshots. The second one is empty when the run has not ended.
func snapshots(p view.Picture) (from, to swarm.Snapshot) {
	for _, t := range p.Snapshots {
		if t.When == "start" {
			from = t
		} else {
			to = t
		}
	}
	return from, to
}

type change struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// printChanges writes the changed files as JSON, and the patch too unless stat is set.
func (a *app) printChanges(p view.Picture, from, to swarm.Snapshot, stat bool, git func(...string) (string, error)) error {
	numbers, err := git("--numstat", "-z", "--no-renames")
	if err != nil {
		return err
	}
	changes := []change{}
	for line := range strings.SplitSeq(strings.TrimSuffix(numbers, "\x00"), "\x00") {
		parts := strings.SplitN(line, "\t", 3)
		if len(parts) < 3 {
			continue
		}
		c := change{Path: parts[2], Binary: parts[0] == "-"}
		c.Added, _ = strconv.Atoi(parts[0])
		c.Deleted, _ = strconv.Atoi(parts[1])
		changes = append(changes, c)
	}
	var text string
	if !stat {
		if text, err = git("--color=never"); err != nil {
			return err
		}
	}
	return a.print(struct {
		Run   swarm.RunID    `json:"run"`
		Start swarm.Snapshot `json:"start"`
		End   swarm.Snapshot `json:"end,omitzero"`
		Files []change       `json:"files"`
		Diff  string         `json:"diff,omitempty"`
	}{p.ID, from, to, changes, text})
}
