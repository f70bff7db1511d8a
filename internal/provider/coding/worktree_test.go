package coding

import (
	"os"
	"path/filepath"
	"testing"
)

// A folder .git that is no repository, as a cut clone leaves it, does not count.
func TestWorktree(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "repo", "a", "b")
	for _, folder := range []string{inner, filepath.Join(dir, "repo", ".git"), filepath.Join(dir, "repo", "a", ".git")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "repo", ".git", "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := worktree(inner); got != filepath.Join(dir, "repo") {
		t.Errorf("got %s", got)
	}
	if err := os.WriteFile(filepath.Join(inner, ".git"), nil, 0o600); err != nil { // of git worktree
		t.Fatal(err)
	}
	if got := worktree(inner); got != inner {
		t.Errorf("got %s", got)
	}
}
