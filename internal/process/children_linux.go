package process

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarm"
)

// Leftovers of a program are found by descent. This process is a subreaper. When the parent of a
// descendant dies, the kernel makes the descendant a child of this process, whatever session, group
// or environment it has. So the leftovers of an ended program are among our own children, which is
// one short list. Processes below them come up as their parents are ended.
//
// Each child has one owner that may wait for it:
//   - Process.Wait waits for the process that its Job started. No other code does.
//   - This file waits for orphans, either when it searches for orphans or with their group.
//   - Other children belong to other code: os/exec elsewhere in this program, or the program that
//     ran in this process before exec. Their owners start them in our own process group. Jobs never
//     use that group, and orphans were never in it.
//
// Invariant: a process is waited for only while mu is held. So the kernel's list of children does
// not shrink while it is read. The pids in it stay valid too, because the kernel reuses a pid only
// after its process was waited for.
//
// Nothing of this is on disk. If this process is killed, its orphans go to the next subreaper
// above, or to init. The next command finds them by their cgroup and their marks: [Reap].

// children is the table of processes that this process has to wait for. mu guards all fields below
// it; list and others never change after setUp. Contain may fill folders before it.
type children struct {
	once     sync.Once
	list     int          // open file: the kernel's list of our first thread's children; -1 = unsupported
	others   map[int]bool // children of this process from before its first Job; never touched
	mu       sync.Mutex
	jobs     map[int64]*Process        // by job number, from before the start until its leftovers are searched for
	leaders  map[int]*Process          // by pid, until they are waited for
	starting int                       // count of processes being started, which leaders does not hold yet
	started  sync.Cond                 // a process has been started, or its start has failed
	orphans  map[int]*orphan           // by pid
	runs     map[limitMark]swarm.RunID // whose jobs this process has started, by the mark of their processes
	folders  map[swarm.RunID]string    // where the cgroup of a run is to be made; see Contain
	cgroups  map[swarm.RunID]*cgroup   // which have been made
}

var family children

// An orphan is a descendant of a program whose parent has died.
type orphan struct {
	job   int64       // the job that started it, by its marks or its group; 0 = unknown
	run   swarm.RunID // the job's run; it may be known when the job is not
	last  int64       // the newest job when it was first seen; later jobs did not start it
	sure  bool        // it is certainly not a process that a Job is just starting
	spare bool        // it is not ours to end, or it cannot be ended
}

// registerJob adds a job whose process is about to be started, and returns the cgroup for it; nil =
// none. The entry comes first because the process may end, or leave orphans, before StartProcess
// returns.
func (c *children) registerJob(p *Process) *cgroup {
	c.once.Do(c.setUp)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[p.number] = p
	c.runs[p.limitMark().driver()] = p.job.Run
	c.starting++
	return c.cgroup(p.job.Run)
}

// setUp makes this process the parent of its orphaned descendants. It runs once, before the first
// Job.
func (c *children) setUp() {
	c.started.L = &c.mu
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // otherwise only processes that stay in their group are found
	var err error
	file := "/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"
	if c.list, err = unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		c.list = -1
	}
	c.others, c.orphans = map[int]bool{}, map[int]*orphan{}
	c.jobs, c.leaders, c.runs = map[int64]*Process{}, map[int]*Process{}, map[limitMark]swarm.RunID{}
	for _, pid := range c.pids() { // a shell that became this program by exec started them
		c.others[pid] = true
	}
}

// registerProcess adds the process of a job, or removes the job if its start failed.
func (c *children) registerProcess(p *Process, pid int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting--
	c.started.Broadcast()
	if err != nil {
		delete(c.jobs, p.number)
		return
	}
	p.group.id = pid
	c.leaders[pid] = p
	delete(c.orphans, pid) // a search saw it before its pid was known
}

// wait reaps the process of a job after it has ended, and returns its status.
func (c *children) wait(p *Process) (status syscall.WaitStatus, err error) {
	for {
		c.mu.Lock()
		pid, err := syscall.Wait4(p.group.id, &status, syscall.WNOHANG, nil)
		if pid != 0 && !errors.Is(err, syscall.EINTR) {
			delete(c.leaders, p.group.id)
			c.mu.Unlock()
			return status, err
		}
		c.mu.Unlock()
		p.poll(time.Millisecond) // the pidfd reports the end slightly before the kernel lets us wait
	}
}

// waitForGroup reaps the dead processes of a group that are children of this process. The group's
// leader has been waited for already.
func waitForGroup(id int) {
	family.mu.Lock()
	defer family.mu.Unlock()
	for {
		pid, err := syscall.Wait4(-id, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
		delete(family.orphans, pid)
	}
}

// limitMark is the mark of the processes of this job.
func (p *Process) limitMark() limitMark {
	return limitMarkOf(p.job.Run, os.Getpid()) | limitMark(p.number&(1<<jobBits-1))
}

// endLeftovers ends the processes that the program left behind outside of its group. It reads their
// output meanwhile.
func (p *Process) endLeftovers(grace time.Duration) {
	family.mu.Lock()
	delete(family.jobs, p.number)
	family.mu.Unlock()
	number := p.limitMark().job()
	mine := func(o *orphan) bool { return o.job == number || o.job == 0 && family.unclaimed(o, "") }
	family.end(p.job.Run, grace, p.poll, mine)
}

// killFrozen kills the orphans that mine selects while no program of the run can start a process. So
// a process that starts its successor and exits, again and again, cannot outrun the search. The
// run's other programs stop for that moment. Without a cgroup there is nothing to freeze.
func (c *children) killFrozen(runID swarm.RunID, mine func(*orphan) bool) {
	c.mu.Lock()
	g := c.cgroups[runID]
	c.mu.Unlock()
	if g == nil {
		return
	}
	defer g.freeze()()
	for patience := time.Now().Add(DefaultGrace); time.Now().Before(patience); time.Sleep(time.Millisecond) {
		found := c.find(mine) // a successor becomes our child when its parent is dead
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			c.signal(pid, syscall.SIGKILL)
		}
	}
}

// Clear ends the processes that a run's programs left behind, if this process started them. The
// caller drives the run and has finished with it. Programs of another driver are spared.
func Clear(runID swarm.RunID) (ended int) {
	// Most processes have no child at all, and one system call tells so.
	childless := errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD)
	if childless || jobs.Load() == 0 {
		return 0
	}
	return family.end(runID, DefaultGrace, time.Sleep, family.ofRun(runID))
}

// Kill ends the processes of a run at once, without a grace period. The caller drives the run.
func Kill(runID swarm.RunID) {
	if jobs.Load() == 0 {
		return
	}
	family.mu.Lock()
	family.cgroups[runID].kill()
	family.mu.Unlock()
	_, _ = terminate(0, time.Sleep, func() []int {
		found := family.find(family.ofRun(runID))
		family.mu.Lock()
		defer family.mu.Unlock()
		for pid, p := range family.leaders {
			if p.job.Run == runID {
				found = append(found, pid)
			}
		}
		return found
	}, family.signal)
}

// end ends the orphans of a run that mine selects. It marks those that cannot be ended, so that the
// next search does not wait for them again.
func (c *children) end(runID swarm.RunID, grace time.Duration, wait func(time.Duration), mine func(*orphan) bool) (ended int) {
	ended, left := terminate(grace, wait, func() []int { return c.find(mine) }, c.signal)
	if len(left) > 0 {
		c.killFrozen(runID, mine)
		left = c.find(mine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pid := range left {
		if o := c.orphans[pid]; o != nil {
			o.spare = true
		}
	}
	return ended
}

// find reaps dead orphans and returns the pids of living ones that mine selects. It calls mine with
// mu held.
func (c *children) find(mine func(*orphan) bool) (found []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// An orphan that died after the list was read may have had children, which are ours now. So
	// after each death the list is read again.
	for again := true; again; {
		again, found = false, nil
		for _, pid := range c.pids() {
			if c.leaders[pid] != nil || c.others[pid] {
				continue
			}
			o := c.orphans[pid]
			if o == nil {
				if o = c.identify(pid); o == nil {
					continue
				}
				c.orphans[pid] = o
			}
			// A process that a Job is just starting is in the kernel's list before it is in
			// leaders, and it may even have ended. Its status belongs to its Wait, so it is not
			// reaped here.
			o.sure = o.sure || c.starting == 0
			if o.sure {
				if dead, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); dead == pid {
					delete(c.orphans, pid)
					again = true
					continue
				}
			}
			if !o.spare && mine(o) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// reap waits for dead orphans.
func (c *children) reap() { c.find(func(*orphan) bool { return false }) }

// identify finds out which job an unknown child belongs to. It returns nil if the child is not an
// orphan.
func (c *children) identify(pid int) *orphan {
	group, err := syscall.Getpgid(pid)
	if err != nil || group == syscall.Getpgrp() {
		return nil
	}
	o := &orphan{last: jobs.Load()}
	if mark := readLimitMark(pid); c.runs[mark.driver()] != "" {
		o.job, o.run = mark.job(), c.runs[mark.driver()]
		return o
	}
	for _, p := range c.jobs {
		if p.group.id == group {
			o.job, o.run = p.number, p.job.Run
			return o
		}
	}
	if env := environOf(pid); holdsVariable(env, byThisProcess()) {
		o.run = swarm.RunID(variable(env, envRun))
		o.job, _ = strconv.ParseInt(variable(env, envJob), 10, 64)
	} else {
		o.spare = os.Getpid() == 1 // as pid 1, we get orphans from anywhere in the container
	}
	return o
}

// ofRun returns a filter for the orphans of a run, as far as that can be known.
func (c *children) ofRun(runID swarm.RunID) func(*orphan) bool {
	return func(o *orphan) bool { return o.run == runID || o.run == "" && c.unclaimed(o, runID) }
}

// unclaimed reports that no running job can have started an orphan whose job is unknown. Jobs of
// the run `except` don't count. So an orphan that hides its environment lives until all jobs have
// ended that ran when it was first seen.
func (c *children) unclaimed(o *orphan, except swarm.RunID) bool {
	for number, p := range c.jobs {
		if number <= o.last && (o.run == "" || o.run == p.job.Run) && (except == "" || except != p.job.Run) {
			return false
		}
	}
	return true
}

// signal sends a signal to a process that find returned, unless it was reaped since. A job's
// process gets it together with its group.
func (c *children) signal(pid int, s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaders[pid] != nil {
		_ = syscall.Kill(-pid, s)
	} else if o := c.orphans[pid]; o != nil && errors.Is(syscall.Kill(pid, s), syscall.EPERM) {
		o.spare = true // it belongs to another user now
	}
}

// pids returns the children of our first thread. The kernel gives orphans to that thread; it may
// have other children too.
func (c *children) pids() (pids []int) {
	if c.list < 0 {
		self := os.Getpid()
		return slices.DeleteFunc(processes(), func(pid int) bool { return statOf(pid).parent != self })
	}
	var text [512]byte
	pid := 0
	for at := 0; ; {
		n, err := unix.Pread(c.list, text[:], int64(at))
		for _, b := range text[:max(n, 0)] { // pids, each followed by a space
			if b != ' ' {
				pid = 10*pid + int(b-'0')
				continue
			}
			pids, pid = append(pids, pid), 0
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case n < len(text): // the kernel's own buffer is larger, so this was the last piece
			return pids
		default:
			at += n
		}
	}
}
