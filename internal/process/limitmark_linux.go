package process

import (
	"bytes"
	"hash/fnv"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"swarm"
)

// The marks in the environment get lost: `env -i` starts a program without them, and redis, nginx
// or postgres overwrite them with their title. So each program gets a second mark, as a resource
// limit: the soft RLIMIT_LOCKS. The kernel passes it on at fork and exec, and keeps it through
// setsid and a change of the user. Everybody can read it in /proc/PID/limits. It has no effect,
// because Linux has not enforced this limit since 2.4.25.
//
// A limitMark names a job: 35 bits are a hash of the run and its driver, 28 bits the job's number.
// So the next command knows the orphaned processes of a killed driver by its name alone, and
// nothing has to be on disk. A program can change its own limit on purpose; then descent, its group
// and its environment are what is left to find it by.
type limitMark uint64

const jobBits = 28

// The hard RLIMIT_LOCKS is a mark that a program cannot take off: the kernel lets only root raise
// it, and a namespace of the program's own does not make it root. So a driver lowers its own hard
// limit before it starts its first program, and all that it starts inherits it, also when the driver
// is killed. A limitMark is below each of these values.
//
// topLimit is the hard limit of the programs of a driver that a person started. Each driver within
// another lowers it by one. So it tells how many runs enclose a process, without the environment.
const topLimit = 1<<63 + maxDepth

// enclosing is the number of runs that enclose this process, by its hard limit. It is read at the
// start, before this process lowers its own limit.
var enclosing = func() int {
	var own unix.Rlimit
	switch err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); {
	case err != nil || own.Max == unix.RLIM_INFINITY:
		return 0
	case own.Max < 1<<63 || own.Max > topLimit: // lowered on purpose, or not by swarm
		return maxDepth + 1
	}
	return int(topLimit-own.Max) + 1
}()

// Inside reports that a program of a run started this process, at any depth. A lowered hard
// RLIMIT_LOCKS says so, whatever became of the environment, the parents and /proc.
func Inside() bool { return enclosing > 0 }

// limitMarkOf returns the mark of the processes that a driver starts for a run, without a job.
func limitMarkOf(run swarm.RunID, driver int) limitMark {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(run) + " " + strconv.Itoa(driver)))
	return limitMark(h.Sum64()<<1>>1) &^ (1<<jobBits - 1) // an infinite limit has all 64 bits
}

// driver is the part of a mark that all jobs of a run and a driver have in common.
func (m limitMark) driver() limitMark { return m &^ (1<<jobBits - 1) }

// job is the number of the job; 0 = there is no mark.
func (m limitMark) job() int64 { return int64(m & (1<<jobBits - 1)) }

// limits guards the soft RLIMIT_LOCKS of this process, which a started program inherits.
var limits sync.Mutex

// do calls start while programs that this process starts inherit the mark. This process itself keeps
// the mark of the run in which it was started, if any. Without permission for the limit, which a
// lowered hard limit takes away, the programs have the marks in their environment only.
func (m limitMark) do(start func()) {
	limits.Lock()
	defer limits.Unlock()
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &own) == nil {
		if top := topLimit - uint64(enclosing); own.Max > top {
			own.Cur, own.Max = min(own.Cur, top), top
			_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &own)
		}
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: uint64(m), Max: own.Max})
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_LOCKS, &own) }()
	}
	start()
}

// readLimitMark returns the mark of a process; 0 = it has none, or is gone. A driver has none of its
// own: its soft limit is as high as its hard one.
func readLimitMark(pid int) limitMark {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\nMax file locks"))
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if len(fields) == 0 {
		return 0
	}
	m, err := strconv.ParseUint(string(fields[0]), 10, 63)
	if err != nil { // "unlimited", or a driver's
		return 0
	}
	return limitMark(m)
}
