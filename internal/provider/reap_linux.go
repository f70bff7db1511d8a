package provider

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// marked are the processes whose environment holds all of the marks, without this one and those that it runs under.
func marked(marks ...string) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var found []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && isMarked(pid, marks) {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		return nil
	}
	above := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !above[pid]; pid = parent(pid) {
		above[pid] = true
	}
	left := found[:0]
	for _, pid := range found {
		if !above[pid] {
			left = append(left, pid)
		}
	}
	return left
}

func isMarked(pid int, marks []string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for _, mark := range marks {
		if !holdsVariable(env, mark) {
			return false
		}
	}
	return true
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

// parent is the process that started pid, or 0.
func parent(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses and may hold anything; the fourth is what is looked for.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}
