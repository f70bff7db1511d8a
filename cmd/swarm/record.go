package main

import (
	"os"
	"path/filepath"

	"swarm"
	"swarm/internal/run"
)

// recordTo makes sure, before anything starts, that a recording could be written.
func recordTo(path string) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "--record %s: %v", path, err)
	}
	probe, err := os.CreateTemp(filepath.Dir(abs), ".cassette-*")
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "--record %s: %v", path, err).WithHint("choose a folder that is there and may be written to")
	}
	probe.Close()
	os.Remove(probe.Name())
	return &recording{abs}, nil
}

type recording struct{ path string }

func (r *recording) write(of *run.Run) error { return of.Record(r.path) }
