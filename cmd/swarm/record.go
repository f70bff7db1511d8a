package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/recording"
	"swarm/internal/run"
)

func (a *app) recordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "record [RUN] FILE",
		Short: "Write the recording of a run, for --replay",
		Long: `Write the recording of a run that has ended or was interrupted, from its log. It is the same file that
--record writes when its command ends, and that a killed command cannot write.

` + newestRun,
		Example: "  swarm record run.cassette\n  swarm up --replay run.cassette",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			_, l, err := a.openReader(args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			path, err := recordTo(args[1])
			if err != nil {
				return err
			}
			return l.Record(path)
		},
	}
}

// record writes the recording of a run that this process leaves. The path is checked again, because
// another file may have appeared there during the run. Without a path it does nothing.
func record(r *run.Run, path string) error {
	if path == "" {
		return nil
	}
	path, err := recordTo(path)
	if err == nil {
		err = r.Record(path)
	}
	if err != nil {
		return swarm.Errorf(swarm.KindOf(err), "%w", err).WithHint("write the recording elsewhere: swarm record %s FILE", r.ID)
	}
	return nil
}

// recordTo checks that the recording can be written and replaces no other kind of file. It returns the absolute path.
func recordTo(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", swarm.Errorf(swarm.BadInput, "%s: %w", path, err)
	}
	if there, err := os.Lstat(abs); err == nil && (there.Size() > 0 || !there.Mode().IsRegular()) && !recording.Is(abs) {
		return "", swarm.Errorf(swarm.BadInput, "%s: the file exists and is not a recording", path).WithHint("choose another name, or remove it first")
	}
	probe, err := os.CreateTemp(filepath.Dir(abs), ".cassette-*")
	if err != nil {
		return "", swarm.Errorf(swarm.BadInput, "%s: %w", path, swarm.WithoutPath(err)).WithHint("choose an existing folder that you can write to")
	}
	probe.Close()
	os.Remove(probe.Name())
	return abs, nil
}
