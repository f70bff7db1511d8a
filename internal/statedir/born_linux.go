package statedir

import (
	"time"

	"golang.org/x/sys/unix"
)

// born returns when a file was made, which nobody can change later; false if there is no such file,
// or the file system does not know.
func born(path string) (time.Time, bool) {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &s)
	if err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, false
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)), true
}
