package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// marked are the processes whose environment holds all of the marks, without this one and those that it runs under.
func marked(marks ...string) []int { return bearing(processes(), marks) }

// markedAfter are those of them that were started after a process of ours. Numbers are given in turn, so that few have to be
// looked at: every turn ends with this. Only one in which all numbers were given away once has more to look at than it knows;
// what it misses is ended with the run.
func markedAfter(pid int, marks ...string) []int {
	const few, rounds = 200, 20 // to ask for a few by number takes less than to list them all
	var found []int
	// One may have forked and died while others were looked at: until no number was given away meanwhile.
	for range rounds {
		last := newest()
		switch {
		case last < pid: // they have begun anew, or this system does not tell
			return marked(marks...)
		case last == pid:
			return found
		case last-pid > few:
			found = append(found, bearing(slices.DeleteFunc(processes(), func(n int) bool { return n <= pid }), marks)...)
		default:
			var later []int
			for n := pid + 1; n <= last; n++ {
				later = append(later, n)
			}
			found = append(found, bearing(later, marks)...)
		}
		pid = last
	}
	return found
}

// newest is the number that was given to a process last; 0 = nobody knows.
func newest() (pid int) {
	text, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); len(fields) > 0 {
		pid, _ = strconv.Atoi(fields[len(fields)-1])
	}
	return pid
}

func bearing(pids []int, marks []string) []int {
	var found []int
	for _, pid := range pids {
		if isMarked(pid, marks) {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		return nil
	}
	above := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !above[pid]; pid = statOf(pid).parent {
		above[pid] = true
	}
	return slices.DeleteFunc(found, func(pid int) bool { return above[pid] })
}

// groupLives says whether a process of the group is more than a dead one that nobody has waited for.
func groupLives(id int) bool {
	return slices.ContainsFunc(processes(), func(pid int) bool {
		s := statOf(pid)
		return s.group == id && s.state != "Z" && s.state != "X"
	})
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

func isMarked(pid int, marks []string) bool {
	env := environOf(pid)
	for _, mark := range marks {
		if !holdsVariable(env, mark) {
			return false
		}
	}
	return true
}

// environOf is empty for a process that is gone or not ours to look at. It is for an instant, too, while one becomes another
// program: then it is looked at again. The kernel's own are in no group.
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

// holdsVariable looks for NAME=value among strings that end in NUL.
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

// A stat is some of what the kernel tells of a process.
type stat struct {
	state         string
	parent, group int
}

// statOf is empty for a process that is gone.
func statOf(pid int) (s stat) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s
	}
	// The second field is the program's name in parentheses and may hold anything; what is looked for comes after it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 3 {
		return s
	}
	s.state = fields[0]
	s.parent, _ = strconv.Atoi(fields[1])
	s.group, _ = strconv.Atoi(fields[2])
	return s
}
