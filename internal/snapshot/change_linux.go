package snapshot

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// changeOf is which file it is, and when it was changed, as the system knows it: whoever writes to it cannot set that.
func changeOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, time.Now() // which tells nothing
	}
	return s.Ino, time.Unix(s.Ctim.Unix())
}

// pathOf is where an open file is, or "".
func pathOf(f *os.File) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return path
}
