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
	return retire(func() []int { return OfRun(runID) }, DefaultGrace, abandoned, envRun+"="+runID)
}

// Clear ends what the programs of a run have left behind that this process has started. It drives the run, and is through with
// it: whoever has taken it over is spared.
func Clear(runID string) (ended int) {
	marks := []string{envRun + "=" + runID, byThisProcess()}
	return retire(func() []int { return marked(marks...) }, DefaultGrace, nil, marks...)
}

// retire asks the processes that are found to end, until none is, and makes them when they have had their grace. They bear the
// marks.
func retire(find func() []int, grace time.Duration, abandoned func() bool, marks ...string) (ended int) {
	asked := map[int]bool{}
	patience := time.Now().Add(grace)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		found := find()
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
				endOne(pid, syscall.SIGKILL, marks...)
			case !asked[pid]:
				endOne(pid, syscall.SIGTERM, marks...)
				endOne(pid, syscall.SIGCONT, marks...)
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

// endMarked ends at once the processes whose environment holds all of the marks, until none is found. One that was killed may be
// seen for a while yet, on a busy machine: it is waited for, and does not count as one more.
func endMarked(marks ...string) {
	killed := map[int]bool{}
	patience := time.Now().Add(dying)
	for waves := 0; waves < 10 && time.Now().Before(patience); { // a process that forks faster than this is a bomb, and not ours to defuse
		found := marked(marks...)
		if len(found) == 0 {
			return
		}
		more := false
		for _, pid := range found {
			more = more || !killed[pid]
			killed[pid] = true
			endOne(pid, syscall.SIGKILL, marks...)
		}
		if more {
			waves++
		}
		time.Sleep(time.Millisecond)
	}
}

// dying is for how long those that were killed are waited for.
const dying = 2 * time.Second

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
