package snapshot

import (
	"bytes"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// changeOf returns the inode and the change time (ctime) of a file. Programs cannot set the ctime,
// so it reveals every write.
func changeOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, time.Now() // no information, so never equal
	}
	return s.Ino, time.Unix(s.Ctimespec.Unix())
}

// pathOf returns the path of an open file, or "".
func pathOf(f *os.File) string {
	var path [1024]byte // MAXPATHLEN
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETPATH, uintptr(unsafe.Pointer(&path)))
	if errno != 0 {
		return ""
	}
	before, _, _ := bytes.Cut(path[:], []byte{0})
	return string(before)
}
