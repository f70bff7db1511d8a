package main

import (
	"os"
	"path/filepath"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
)

// recordTo makes sure, before anything starts, that a recording could be written, and that it takes the place of no other file.
func recordTo(path string) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "--record %s: %w", path, err)
	}
	if there, err := os.Lstat(abs); err == nil && (there.Size() > 0 || !there.Mode().IsRegular()) {
		if _, err := control.OpenCassette(abs); err != nil {
			return nil, swarm.Errorf(swarm.BadInput, "--record %s: there is something else than a recording", path).WithHint("choose another name, or remove it first")
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(abs), ".cassette-*")
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "--record %s: %w", path, swarm.WithoutPath(err)).WithHint("choose a folder that is there and may be written to")
	}
	probe.Close()
	os.Remove(probe.Name())
	return &recording{abs}, nil
}

type recording struct{ path string }

func (r *recording) write(of *run.Run) error { return of.Record(r.path) }
