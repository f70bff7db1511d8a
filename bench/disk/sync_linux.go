package disk

import (
	"os"
	"syscall"
)

func sync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
