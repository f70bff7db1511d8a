package snapshot

import (
	"os"
	"path/filepath"

	"swarm"
)

// Which repository a folder is in is found out once, and kept in the store: who moves it away, breaks it or puts another one in its place
// is not followed there.

func placeOf(store, dir string) string {
	return filepath.Join(store, string(swarm.HashOf([]byte(resolved(dir)))[:12])+".top")
}

// remembered is the top of the repository that a folder was in when it was first recorded, or "".
func remembered(store, dir string) string {
	top, _ := os.ReadFile(placeOf(store, dir)) // without it nothing was recorded yet
	return string(top)
}

func remember(store, dir, top string) error {
	if remembered(store, dir) != "" {
		return nil
	}
	if err := place(placeOf(store, dir), top); err != nil {
		return failed("the changes of the run cannot be recorded", err)
	}
	return nil
}

// another says that the repository is not what it was.
func another(top string, err error) error {
	return &swarm.Error{Kind: swarm.Other, Msg: "the git repository in " + top + " is not what it was: it was moved, broken or led elsewhere", Err: err,
		Hint: "see what has become of " + filepath.Join(top, ".git")}
}
