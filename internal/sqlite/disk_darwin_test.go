package sqlite

import (
	"os"
	"testing"
)

// seal makes a folder one that cannot be written.
func seal(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("no folder can be made read-only for root")
	}
	must(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
}

func fdatasync(f *os.File) error { return f.Sync() }
