package snapshot

import (
	"os"
	"path/filepath"

	"swarm"
)

// The store keeps which repository a folder was in at its first snapshot. So an agent that moves or
// breaks the repository, or puts another in its place, gets an error instead of an empty diff.

// locationFile is the file of the store that holds the repository of a folder.
func locationFile(store, dir string) string {
	return filepath.Join(store, string(swarm.HashOf([]byte(resolved(dir)))[:12])+".top")
}

// remembered returns the top of the repository that a folder was in at its first snapshot, or "".
func remembered(store, dir string) string {
	top, _ := os.ReadFile(locationFile(store, dir)) // without the file, nothing was recorded yet
	return string(top)
}

func remember(store, dir, top string) error {
	if remembered(store, dir) != "" {
		return nil
	}
	if err := writeAtomically(locationFile(store, dir), top); err != nil {
		return failed("the changes of the run cannot be recorded", err)
	}
	return nil
}

// repositoryChanged returns the error for a repository that is not the same as at the first
// snapshot.
func repositoryChanged(top string, err error) error {
	return &swarm.Error{
		Kind: swarm.Other, Err: err,
		Msg:  "the git repository in " + top + " is not what it was: it was moved, broken or led elsewhere",
		Hint: "see what has become of " + filepath.Join(top, ".git"),
	}
}
