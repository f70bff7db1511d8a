package process

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"swarm"
)

// Reap ends the orphaned processes of a run whose driver was killed or has lost the run. These are
// the processes in the cgroup of the run and that driver, which was made in folder, and processes
// whose marks name both. Programs of other drivers, this process and its ancestors are spared. It
// returns how many processes it found, and whether none is left.
func Reap(runID swarm.RunID, driver int, folder string) (ended int, all bool) {
	if runID == "" {
		return 0, true
	}
	marks := marksOf(runID, driver)
	ended = cgroupOf(folder, runID, driver).end(DefaultGrace) + endMarked(DefaultGrace, marks)
	spared := slices.ContainsFunc(selfAndAbove(), func(pid int) bool { return isMarked(pid, marks) })
	return ended, !spared && cgroupOf(folder, runID, driver) == nil
}

// EndMarked ends the processes whose environment holds all of these variables, NAME=VALUE, without this
// process and its ancestors. It returns how many it found.
func EndMarked(variables ...string) (ended int) {
	return endMarked(DefaultGrace, markSet{env: variables})
}

// HasOrphans reports that a driver of a run has ended, and that processes which it started have not.
func HasOrphans(runID swarm.RunID, driver int) bool {
	return errors.Is(syscall.Kill(driver, 0), syscall.ESRCH) && len(marked(marksOf(runID, driver))) > 0
}

// marksOf selects the processes that a driver started for a run.
func marksOf(runID swarm.RunID, driver int) markSet {
	return markSet{[]string{envRun + "=" + string(runID), envDriver + "=" + strconv.Itoa(driver)}, limitMarkOf(runID, driver)}
}

// OfRun returns the pids of the processes that bear the mark of a run, without this process and its
// ancestors.
func OfRun(runID swarm.RunID) []int {
	return marked(markSet{env: []string{envRun + "=" + string(runID)}})
}

// A markSet selects processes. Those count whose environment holds all of env, and those with the
// limit.
type markSet struct {
	env   []string
	limit limitMark // of a run and its driver; 0 = none
}

// endMarked ends the processes that bear the marks.
func endMarked(grace time.Duration, marks markSet) (ended int) {
	ended, _ = terminate(grace, time.Sleep, func() []int { return marked(marks) }, func(pid int, s syscall.Signal) {
		signalIf(pid, s, func(pid int) bool { return isMarked(pid, marks) })
	})
	return ended
}

// signalIf sends a signal to a process if it is still the one that is meant. The handle comes before
// the check, so that the pid cannot be reused between check and signal.
func signalIf(pid int, s syscall.Signal, meant func(pid int) bool) {
	if p, err := os.FindProcess(pid); err == nil {
		if meant(pid) {
			_ = p.Signal(s)
		}
		_ = p.Release()
	}
}

// terminate sends SIGTERM to the processes that find returns, until it returns none. After the
// grace period it sends SIGKILL; grace 0 means at once. It returns how many processes it signalled,
// and which it could not end. Between two searches it calls wait.
func terminate(grace time.Duration, wait func(time.Duration), find func() []int, signal func(pid int, s syscall.Signal)) (ended int, left []int) {
	asked := map[int]bool{}
	patience := time.Now().Add(grace)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		found := find()
		late := !time.Now().Before(patience)
		if len(found) == 0 || late && time.Now().After(patience.Add(DefaultGrace)) {
			return len(asked), found
		}
		for _, pid := range found {
			switch {
			case late:
				signal(pid, syscall.SIGKILL)
			case !asked[pid]:
				signal(pid, syscall.SIGTERM)
				signal(pid, syscall.SIGCONT) // wakes a stopped process, so that it gets SIGTERM
			}
			asked[pid] = true
		}
		wait(pause)
	}
}
