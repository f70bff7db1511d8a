package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

const refHelp = `REF is artifact://KIND/ID or contextpack://pack/ID. The short forms KIND/ID, or the beginning of ID,
work too. Artifacts of other runs are not searched.`

func (a *app) artifactCommand() *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:   "artifact",
		Short: "List and read the artifacts of a run",
		Long: `List and read the artifacts of a run: diffs, logs, reports and other texts that are too long for a
message.

` + whichRun,
		Example: "  swarm artifact ls\n  swarm artifact cat artifact://diff/3fa9c1d2e4b5a697\n  less $(swarm artifact open 3fa9)",
	}
	cmd.PersistentFlags().StringVar(&ref, "run", "", "the `run` of the artifact")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	cmd.AddCommand(a.artifactLsCommand(&ref), a.artifactCatCommand(&ref), a.artifactOpenCommand(&ref))
	return cmd
}

func (a *app) artifactLsCommand(ref *string) *cobra.Command {
	return &cobra.Command{
		Use:               "ls [RUN]",
		Short:             "List the artifacts of a run, with the agent and turn of each",
		Long:              "List the artifacts of a run, with the agent and turn of each. With --json the result is an array.\n\n" + whichRun,
		Example:           "  swarm artifact ls\n  swarm artifact ls @last --json | jq '.[].ref'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				if *ref, err = oneRun(args[0], *ref); err != nil {
					return err
				}
			}
			_, l, err := a.openMeant(*ref)
			if err != nil {
				return err
			}
			defer l.Close()
			all, err := artifacts(l)
			if err != nil {
				return err
			}
			return a.listArtifacts(l, all)
		},
	}
}

func (a *app) artifactCatCommand(ref *string) *cobra.Command {
	return &cobra.Command{
		Use:               "cat [RUN] REF",
		Short:             "Print an artifact, byte for byte",
		Long:              "Print an artifact, byte for byte. On a terminal, control characters are made visible.\n\n" + refHelp,
		Example:           "  swarm artifact cat artifact://report/3fa9c1d2e4b5a697\n  swarm artifact cat diff/3fa9 | git apply",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeArtifact,
		RunE: func(_ *cobra.Command, args []string) error {
			_, _, it, text, err := a.artifact(*ref, args)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.print(struct {
					view.Artifact
					Content string `json:"content"`
				}{it, string(text)})
			}
			return a.printForeign(text)
		},
	}
}

func (a *app) artifactOpenCommand(ref *string) *cobra.Command {
	return &cobra.Command{
		Use:   "open [RUN] REF",
		Short: "Copy an artifact to a file, and print its path",
		Long: `Copy an artifact to a file below the state folder, and print its path. Changing the copy does not
change the artifact, which is in the run's log.

` + refHelp,
		Example:           "  less $(swarm artifact open report/3fa9)\n  code $(swarm artifact open 3fa9)",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeArtifact,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, id, it, text, err := a.artifact(*ref, args)
			if err != nil {
				return err
			}
			path, err := copyArtifact(filepath.Join(dir, string(id)), it, text)
			switch {
			case err != nil:
				return &swarm.Error{Kind: swarm.Storage, Msg: "the copy cannot be written", Err: err}
			case a.json:
				return a.print(struct {
					view.Artifact
					Path string `json:"path"`
				}{it, path})
			}
			_, err = fmt.Fprintln(a.stdout, path)
			return err
		},
	}
}

// artifacts lists the artifacts of a run, in the order in which they were stored.
func artifacts(l *run.Reader) ([]view.Artifact, error) {
	d, err := l.Details()
	if err != nil {
		return nil, err
	}
	return artifactsOf(l.ID, d)
}

func artifactsOf(run swarm.RunID, d view.Details) ([]view.Artifact, error) {
	all := make([]view.Artifact, len(d.Artifacts))
	for i, raw := range d.Artifacts {
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return nil, swarm.Errorf(swarm.Storage, "an artifact of run %s cannot be read: %w", run, err)
		}
	}
	return all, nil
}

// storedTable is the table of artifacts in `swarm show`.
func storedTable(all []view.Artifact) *term.Table {
	t := term.NewTable("ARTIFACT", "BY", "TURN", "BYTES", "NAME").Right(3).Cut(4)
	for _, it := range all {
		t.Row(it.Ref, "@"+it.Agent, string(it.Turn), term.Bytes(it.Bytes), it.Name+view.PackNote(it.Artifact))
	}
	return t
}

func (a *app) listArtifacts(l *run.Reader, all []view.Artifact) error {
	switch {
	case a.json:
		return a.print(all)
	case len(all) == 0:
		_, err := fmt.Fprintf(a.stdout, "no artifacts in run %s\n", l.ID)
		return err
	}
	t := term.NewTable("REF", "KIND", "BYTES", "BY", "TURN", "STORED", "NAME").Right(2).Cut(6)
	for _, it := range all {
		t.Row(it.Ref, it.Kind, term.Bytes(it.Bytes), "@"+it.Agent, string(it.Turn), ago(it.Time, time.Now()), it.Name+view.PackNote(it.Artifact))
	}
	return a.table(t)
}

// artifact finds the artifact that a user names, in the run of --run or of the first of two arguments.
// It also returns its bytes, its run, and the folder for copies.
func (a *app) artifact(ref string, args []string) (dir string, id swarm.RunID, it view.Artifact, text []byte, err error) {
	name := args[len(args)-1]
	if len(args) > 1 {
		if ref, err = oneRun(args[0], ref); err != nil {
			return "", "", it, nil, err
		}
	}
	h, l, err := a.openMeant(ref)
	if err != nil {
		return "", "", it, nil, err
	}
	defer l.Close()
	all, err := artifacts(l)
	if err != nil {
		return "", "", it, nil, err
	}
	if it, err = chooseArtifact(l.ID, all, name); err != nil {
		return "", "", it, nil, err
	}
	text, err = l.Text(it.Hash)
	return h.ArtifactPath(), l.ID, it, text, err
}

func chooseArtifact(run swarm.RunID, all []view.Artifact, name string) (view.Artifact, error) {
	var found []view.Artifact
	for _, it := range all {
		_, rest, _ := strings.Cut(it.Ref, "://")
		_, id, _ := strings.Cut(rest, "/")
		switch {
		case it.Ref == name:
			return it, nil
		case name != "" && (strings.HasPrefix(it.Ref, name) || strings.HasPrefix(rest, name) || strings.HasPrefix(id, name)):
			found = append(found, it)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return view.Artifact{}, swarm.Errorf(swarm.BadInput, "%d artifacts of run %s begin with %s", len(found), run, swarm.Quote(name)).WithHint("write more of it; `swarm artifact ls` lists them")
	}
	return view.Artifact{}, swarm.Errorf(swarm.NotFound, "there is no artifact %s in run %s", swarm.Quote(name), run).WithHint("`swarm artifact ls` lists them; for another run, name it first: swarm artifact cat RUN REF")
}

// copyArtifact writes a copy that only this user can read. The copy keeps the extension of the
// artifact's name, because programs choose by it how to show a file. The rename at the end makes
// the copy appear whole or not at all.
func copyArtifact(dir string, it view.Artifact, text []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(it.Ref, "://")
	path := filepath.Join(dir, strings.ReplaceAll(rest, "/", "-")+ending(it.Name))
	f, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return "", err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return path, err
}

func ending(name string) string {
	end := filepath.Ext(name)
	if len(end) < 2 || len(end) > 10 || strings.ContainsFunc(end[1:], func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') }) {
		return ""
	}
	return end
}

// completeArtifact offers the references of artifacts, and runs before them.
func (a *app) completeArtifact(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	all := func(l *run.Reader) ([]string, error) { return refs(l, "") }
	if len(args) == 1 && namesRun(args[0]) {
		return a.offerOf(args[0], begun, all)
	}
	offers, how := a.offer(cmd, args, begun, all)
	runs, _ := a.completeRun(cmd, args, begun)
	return append(offers, runs...), how
}

// completePack offers the references of context packs.
func (a *app) completePack(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.offer(cmd, nil, begun, func(l *run.Reader) ([]string, error) { return refs(l, "contextpack") })
}

// refs lists references for completion. Without a kind it lists all.
func refs(l *run.Reader, kind string) (offers []string, err error) {
	all, err := artifacts(l)
	for _, it := range all {
		if kind == "" || it.Kind == kind {
			offers = append(offers, it.Ref+"\t"+it.Name)
		}
	}
	return offers, err
}
