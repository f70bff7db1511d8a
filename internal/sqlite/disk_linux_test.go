package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarm"
)

func TestAFullDiskFailsAppendsUntilThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=400k"); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 100_000), 0o600))
	path := filepath.Join(dir, "run.db")
	l, err := Create(path)
	must(t, err)
	n, err := fill(l)
	if !errors.Is(err, syscall.ENOSPC) || swarm.KindOf(err) != swarm.Storage || !strings.Contains(err.Error(), "full") {
		t.Errorf("on a full disk: %v", err)
	}
	if es, err := l.Read(0, n+10); err != nil || len(es) != n {
		t.Errorf("%d events of %d can be read (%v)", len(es), n, err)
	}
	must(t, os.Remove(ballast))
	if _, err := l.Append(context.Background(), small(n)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	l.Close()
	l, err = Open(path)
	must(t, err)
	defer l.Close()
	if es, err := l.Read(0, n+10); err != nil || len(es) != n+1 {
		t.Errorf("%d events of %d are there (%v)", len(es), n+1, err)
	}
}

// seal makes a folder one that cannot be written: for root, who may write everywhere, by a mount.
func seal(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		must(t, os.Chmod(dir, 0o500))
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
		return
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("no folder can be made read-only for root: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("no folder can be made read-only for root: %v", err)
	}
}

func fdatasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
