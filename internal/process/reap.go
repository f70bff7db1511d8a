package process

import (
	"os"
	"syscall"
	"time"
)

// Reap ends the processes that a killed swarm has left behind: those whose environment says that they belong to the run. It
// spares this process and those that it runs under. It asks first, makes them end after a moment, and returns how many there
// were. Nobody may drive the run: abandoned is asked after processes were found and before they are ended, so that those of a
// driver that has just begun are spared; nil = this process drives it.
func Reap(runID string, abandoned func() bool) (killed int) {
	if runID == "" {
		return 0
	}
	asked := map[int]bool{}
	patience := time.Now().Add(DefaultGrace)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		found := OfRun(runID)
		if len(found) == 0 || abandoned != nil && !abandoned() {
			return len(asked)
		}
		late := time.Now().After(patience)
		if late && time.Now().After(patience.Add(DefaultGrace)) {
			return len(asked) // what is left cannot be ended by us
		}
		for _, pid := range found {
			switch {
			case late:
				endOne(pid, syscall.SIGKILL, envRun+"="+runID)
			case !asked[pid]:
				endOne(pid, syscall.SIGTERM, envRun+"="+runID)
				endOne(pid, syscall.SIGCONT, envRun+"="+runID)
			}
			asked[pid] = true
		}
		time.Sleep(pause)
	}
}

// OfRun are the processes that bear the mark of a run, without this one and those that it runs under.
func OfRun(runID string) []int { return marked(envRun + "=" + runID) }

// Kill ends the processes of a run at once, without asking. This process drives it.
func Kill(runID string) {
	if runID != "" {
		endMarked(envRun+"="+runID, byThisProcess())
	}
}

// endMarked ends at once the processes whose environment holds all of the marks, until none is found.
func endMarked(marks ...string) {
	for range 10 { // a process that forks faster than this is a bomb, and not ours to defuse
		found := marked(marks...)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			endOne(pid, syscall.SIGKILL, marks...)
		}
		time.Sleep(time.Millisecond)
	}
}

// endOne signals a process if it still is the one that was found: a handle on it is taken first, so that its number cannot
// become another's in between.
func endOne(pid int, s syscall.Signal, marks ...string) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	if isMarked(pid, marks) {
		_ = p.Signal(s)
	}
}
