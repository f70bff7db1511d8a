package snapshot

import (
	"bytes"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// changeOf is which file it is, and when it was changed, as the system knows it: whoever writes to it cannot set that.
func changeOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, time.Now() // which tells nothing
	}
	return s.Ino, time.Unix(s.Ctimespec.Unix())
}

// pathOf is where an open file is, or "".
func pathOf(f *os.File) string {
	var path [1024]byte // as long as a path can be
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETPATH, uintptr(unsafe.Pointer(&path))); errno != 0 {
		return ""
	}
	before, _, _ := bytes.Cut(path[:], []byte{0})
	return string(before)
}
