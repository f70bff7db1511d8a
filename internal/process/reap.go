package process

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

// Reap ends the processes of a run that a killed swarm, or one that has lost the run, has left behind: those whose environment
// names the run and this driver, the process that started them. Other drivers of the run, and processes that this one runs
// under, are spared. It returns how many there were.
func Reap(runID string, driver int) (ended int) {
	if runID == "" {
		return 0
	}
	return endMarked(DefaultGrace, envRun+"="+runID, envDriver+"="+strconv.Itoa(driver))
}

// OfRun are the processes that bear the mark of a run, without this one and those that it runs under.
func OfRun(runID string) []int { return marked(envRun + "=" + runID) }

// endMarked ends the processes whose environment holds all of the marks.
func endMarked(grace time.Duration, marks ...string) (ended int) {
	ended, _ = retire(grace, func() []int { return marked(marks...) }, func(pid int, s syscall.Signal) {
		// A handle on the process is taken first, so that its number cannot become another's after it was looked at.
		if p, err := os.FindProcess(pid); err == nil {
			if isMarked(pid, marks) {
				_ = p.Signal(s)
			}
			_ = p.Release()
		}
	})
	return ended
}

// retire asks the processes that are found to end, until none is, and kills them when they have had their grace; 0 = they have
// had it. It returns how many were found, and those that cannot be ended.
func retire(grace time.Duration, find func() []int, signal func(pid int, s syscall.Signal)) (ended int, left []int) {
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
				signal(pid, syscall.SIGCONT) // a stopped one is woken, so that it can hear
			}
			asked[pid] = true
		}
		time.Sleep(pause)
	}
}
