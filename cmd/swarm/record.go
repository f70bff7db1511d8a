package main

import (
	"os"
	"path/filepath"
	"syscall"

	"swarm"
	"swarm/internal/provider"
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
		if _, err := openCassette(abs); err != nil {
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

// openCassette reads a recorded run. Opening does not wait, should there be a pipe.
func openCassette(file string) (*provider.Cassette, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the recorded run %s cannot be opened: %w", file, swarm.WithoutPath(err)).WithHint("make one with --record FILE")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no recorded run, nor any file", file).WithHint("make one with --record FILE")
	}
	return provider.OpenCassette(f)
}
