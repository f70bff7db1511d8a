package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// marked returns the processes that bear the marks, without this process and its ancestors. A run
// may have started this process from one of its turns, so the ancestors may bear the mark too.
func marked(marks markSet) (found []int) {
	// A process may start its successor and exit between the listing and the look at it. So the list
	// is read again until nothing in it is new; on a busy machine something always is.
	seen := map[int]bool{}
	for range 10 {
		before := len(seen)
		for _, pid := range processes() {
			if !seen[pid] && isMarked(pid, marks) {
				found = append(found, pid)
			}
			seen[pid] = true
		}
		if len(seen) == before {
			break
		}
	}
	if len(found) == 0 {
		return nil
	}
	spared := selfAndAbove()
	return slices.DeleteFunc(found, func(pid int) bool { return slices.Contains(spared, pid) })
}

// selfAndAbove returns this process and its ancestors.
func selfAndAbove() []int {
	pids := []int{os.Getpid()}
	for _, id := range Ancestors(os.Getpid()) {
		pids = append(pids, id.PID)
	}
	return pids
}

func processes() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func isMarked(pid int, marks markSet) bool {
	if marks.limit != 0 && readLimitMark(pid).driver() == marks.limit {
		s := statOf(pid)
		return s.state != "Z" || s.threads > 1 // a dead process keeps its limits until its parent waits for it
	}
	env := environOf(pid)
	for _, mark := range marks.env {
		if !holdsVariable(env, mark) {
			return false
		}
	}
	return true
}

// environOf returns nothing for a process that is gone or belongs to another user. The environment
// is also empty for an instant during exec, so environOf tries again. Kernel threads, which are in
// no group, have none.
func environOf(pid int) []byte {
	for try := range 10 {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || len(env) > 0 {
			return env
		}
		s := statOf(pid)
		if s.group == 0 || try > 0 && s.state != "R" && s.state != "D" {
			return nil
		}
		time.Sleep(time.Duration(try) * 100 * time.Microsecond)
	}
	return nil
}

// variable returns the value of a variable in a list of NUL-terminated strings; "" = not set.
func variable(env []byte, name string) string {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// holdsVariable searches NAME=value in a list of NUL-terminated strings.
func holdsVariable(env []byte, variable string) bool {
	for from := 0; ; {
		at := bytes.Index(env[from:], []byte(variable))
		if at < 0 {
			return false
		}
		at += from
		end := at + len(variable)
		if (at == 0 || env[at-1] == 0) && (end == len(env) || env[end] == 0) {
			return true
		}
		from = end
	}
}

// A stat is the part of /proc/PID/stat that this package uses.
type stat struct {
	state         string // of the first thread, which may end before the others
	parent, group int
	threads       int
	started       uint64 // in clock ticks since boot
}

// statOf returns a zero stat for a process that is gone.
func statOf(pid int) (s stat) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s
	}
	// The second field is the program's name in parentheses, which may hold any character. The
	// fields that count come after it.
	const threads, startTime = 17, 19
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 3 {
		return s
	}
	s.state = fields[0]
	s.parent, _ = strconv.Atoi(fields[1])
	s.group, _ = strconv.Atoi(fields[2])
	if len(fields) > startTime {
		s.threads, _ = strconv.Atoi(fields[threads])
		s.started, _ = strconv.ParseUint(fields[startTime], 10, 64)
	}
	return s
}
