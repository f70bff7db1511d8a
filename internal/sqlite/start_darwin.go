package sqlite

import "golang.org/x/sys/unix"

// processStart returns when a process began, in microseconds. Together with the pid it identifies a
// process for good.
func processStart(pid int) (int64, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	start := info.Proc.P_starttime
	return start.Sec*1e6 + int64(start.Usec), nil
}
