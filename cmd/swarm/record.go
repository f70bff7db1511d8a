package main

import (
	"os"
	"path/filepath"

	"swarm"
	"swarm/internal/recording"
)

// recordTo checks, before the run starts, that the recording can be written and replaces no other
// kind of file. It returns the absolute path.
func recordTo(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", swarm.Errorf(swarm.BadInput, "--record %s: %w", path, err)
	}
	if there, err := os.Lstat(abs); err == nil && (there.Size() > 0 || !there.Mode().IsRegular()) && !recording.Is(abs) {
		return "", swarm.Errorf(swarm.BadInput, "--record %s: the file exists and is not a recording", path).WithHint("choose another name, or remove it first")
	}
	probe, err := os.CreateTemp(filepath.Dir(abs), ".cassette-*")
	if err != nil {
		return "", swarm.Errorf(swarm.BadInput, "--record %s: %w", path, swarm.WithoutPath(err)).WithHint("choose an existing folder that you can write to")
	}
	probe.Close()
	os.Remove(probe.Name())
	return abs, nil
}
