//go:build unix && !linux

package process

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
)

// marked returns the processes whose environment holds all of the marks, without this process and
// its parent. ps prints the environment of this user's processes after their arguments.
func marked(marks markSet) []int {
	out, err := exec.Command("ps", "-axEww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		pid, err := strconv.Atoi(words[0])
		if err == nil && !slices.Contains(selfAndAbove(), pid) && holdAll(words[1:], marks.env) {
			found = append(found, pid)
		}
	}
	return found
}

// selfAndAbove returns this process and its parent.
func selfAndAbove() []int { return []int{os.Getpid(), os.Getppid()} }

func isMarked(pid int, marks markSet) bool {
	out, err := exec.Command("ps", "-Eww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && holdAll(strings.Fields(string(out)), marks.env)
}

// Other systems have no RLIMIT_LOCKS.
const enclosing = 0

// Inside reports that a program of a run started this process. Only Linux tells.
func Inside() bool { return false }

// A limitMark needs /proc.
type limitMark int

func limitMarkOf(swarm.RunID, int) limitMark { return 0 }

// Contain does nothing: there are no cgroups.
func Contain(swarm.RunID) (folder string, release func()) { return "", func() {} }

type cgroup struct{}

func cgroupOf(string, swarm.RunID, int) *cgroup { return nil }

func (*cgroup) end(time.Duration) int { return 0 }

func holdAll(words, marks []string) bool {
	return !slices.ContainsFunc(marks, func(mark string) bool { return !slices.Contains(words, mark) })
}
