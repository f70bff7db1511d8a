package snapshot

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// changeOf returns the inode and the change time (ctime) of a file. Programs cannot set the ctime,
// so it reveals every write.
func changeOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, time.Now() // no information, so never equal
	}
	return s.Ino, time.Unix(s.Ctim.Unix())
}

// pathOf returns the path of an open file, or "".
func pathOf(f *os.File) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return path
}
