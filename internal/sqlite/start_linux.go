package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processStart returns when a process began, in ticks since the system was started. Together with
// the pid it identifies a process for good.
func processStart(pid int) (int64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in parentheses and may hold anything. The start is
	// field 22.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	return strconv.ParseInt(string(fields[19]), 10, 64)
}
