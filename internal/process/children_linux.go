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
)

// What a program leaves behind is found by descent. This process is a subreaper: when the parent of one of its descendants
// dies, the descendant becomes a child of this process, whatever session, group or environment it has made for itself. So at
// the end of a program its leftovers are among our own children, one short list, and those below them come up as their parents
// are ended.
//
// Who may wait for whom:
//   - The process that a Job has started is waited for by its Wait, and by nobody else.
//   - An orphan is waited for here, when somebody looks for orphans, or with its group.
//   - Everything else is another's child: what os/exec has started elsewhere in this program, and children that this process
//     had before its first Job. Others start children in our own process group, Jobs do not, and orphans were never in it.
//
// Processes are waited for only while mu is held. That keeps the kernel's list of our children reliable while it is read, and
// the numbers in it ours: a number is given to another process only after somebody has waited for its owner.
//
// Nothing of this is on disk. If this process is killed, its orphans go to the next subreaper above, or to init, and the next
// command finds them by the marks in their environment: [Reap].

// children are the processes that this process has to wait for.
type children struct {
	once     sync.Once
	list     int          // the kernel's, of the children of our first thread, to which orphans are given; -1 = it has none
	others   map[int]bool // that were children of this process before
	mu       sync.Mutex
	jobs     map[int64]*Process // by number, from before their processes are made until their leftovers are looked for
	leaders  map[int]*Process   // by process number, until they are waited for
	starting int                // how many processes are just being made, so that leaders does not have them
	orphans  map[int]*orphan
}

var family children

// An orphan is a descendant of a program whose parent has died.
type orphan struct {
	job   int64  // whose it is, by its group or its environment; 0 = neither tells
	run   string // the same; it may be known when the job is not
	last  int64  // the newest job when it was first seen; later ones have not started it
	sure  bool   // it is no process that is just being made by a Job
	spare bool   // it is not ours to end, or cannot be ended
}

// begin notes a job whose process is about to be made.
func (c *children) begin(p *Process) {
	c.once.Do(c.setUp)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[p.number] = p
	c.starting++
}

// setUp makes this process the parent of its orphaned descendants.
func (c *children) setUp() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it, only what stays in its group is found
	var err error
	if c.list, err = unix.Open("/proc/self/task/"+strconv.Itoa(os.Getpid())+"/children", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		c.list = -1
	}
	c.others, c.jobs, c.leaders, c.orphans = map[int]bool{}, map[int64]*Process{}, map[int]*Process{}, map[int]*orphan{}
	for _, pid := range c.pids() { // a shell that became this program had started them
		c.others[pid] = true
	}
}

// began notes the process that was made, or that none could be.
func (c *children) began(p *Process, pid int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting--
	if err != nil {
		delete(c.jobs, p.number)
		return
	}
	p.group.id = pid
	c.leaders[pid] = p
	delete(c.orphans, pid) // seen before we knew whose it is
}

// wait waits for the process of a job, which has ended.
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
		p.listen(time.Millisecond) // the kernel has told the end of it, and is about to let it be waited for
	}
}

// waitForGroup waits for the dead of a group that are this process's children. The group's leader has been waited for.
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

// endLeftovers ends what the program left behind outside of its group.
func (p *Process) endLeftovers(grace time.Duration) {
	family.mu.Lock()
	delete(family.jobs, p.number)
	family.mu.Unlock()
	family.end(grace, func(o *orphan) bool { return o.job == p.number || o.job == 0 && family.free(o, "") })
}

// Clear ends what the programs of a run have left behind that this process has started. This process drives the run, and is
// through with it: the programs of another driver are spared.
func Clear(runID string) (ended int) {
	// Mostly there is no child at all, and one call says so.
	if errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD) || jobs.Load() == 0 {
		return 0
	}
	return family.end(DefaultGrace, family.of(runID))
}

// Kill ends the processes of a run at once, without asking. This process drives it.
func Kill(runID string) {
	if jobs.Load() == 0 {
		return
	}
	_, _ = retire(0, func() []int {
		found := family.find(family.of(runID))
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

// end ends orphans, and notes which cannot be ended, so that the next one does not wait for them, too.
func (c *children) end(grace time.Duration, mine func(*orphan) bool) (ended int) {
	ended, left := retire(grace, func() []int { return c.find(mine) }, c.signal)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pid := range left {
		if o := c.orphans[pid]; o != nil {
			o.spare = true
		}
	}
	return ended
}

// find waits for orphans that have died, and lists the living ones that somebody looks for; mine is called with mu held.
func (c *children) find(mine func(*orphan) bool) (found []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// One that died after the list was read may have had children, which are ours since: then the list is read again.
	for again := true; again; {
		again, found = false, nil
		for _, pid := range c.pids() {
			if c.leaders[pid] != nil || c.others[pid] {
				continue
			}
			o := c.orphans[pid]
			if o == nil {
				if o = c.adopt(pid); o == nil {
					continue
				}
				c.orphans[pid] = o
			}
			// The process of a Job that is just being made is in the list before it is among the leaders, and may even have
			// ended. Its status is for its Wait.
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

// adopt finds out whose orphan a child is; nil = it is no orphan.
func (c *children) adopt(pid int) *orphan {
	group, err := syscall.Getpgid(pid)
	if err != nil || group == syscall.Getpgrp() {
		return nil
	}
	o := &orphan{last: jobs.Load()}
	for _, p := range c.jobs {
		if p.group.id == group {
			o.job, o.run = p.number, p.job.Run
			return o
		}
	}
	if env := environOf(pid); holdsVariable(env, byThisProcess()) {
		o.run = variable(env, envRun)
		o.job, _ = strconv.ParseInt(variable(env, envJob), 10, 64)
	} else {
		o.spare = os.Getpid() == 1 // then orphans come from anywhere in the container
	}
	return o
}

// of says of an orphan whether it is a run's, as far as can be known.
func (c *children) of(runID string) func(*orphan) bool {
	return func(o *orphan) bool { return o.run == runID || o.run == "" && c.free(o, runID) }
}

// free says that no job is left that may have started an orphan of which the job is not known; those of the run `but` do not
// count. So one that hides its environment lives until the jobs have ended that ran when it was first seen.
func (c *children) free(o *orphan, but string) bool {
	for number, p := range c.jobs {
		if number <= o.last && (o.run == "" || o.run == p.job.Run) && (but == "" || but != p.job.Run) {
			return false
		}
	}
	return true
}

// signal reaches a process that was found, if it has not been waited for since: the process of a job, with its group, or an orphan.
func (c *children) signal(pid int, s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaders[pid] != nil {
		_ = syscall.Kill(-pid, s)
	} else if o := c.orphans[pid]; o != nil && errors.Is(syscall.Kill(pid, s), syscall.EPERM) {
		o.spare = true // it has become another user's
	}
}

// pids are the children of our first thread: the kernel gives orphans to that, and others may be there too.
func (c *children) pids() (pids []int) {
	if c.list < 0 {
		self := os.Getpid()
		return slices.DeleteFunc(processes(), func(pid int) bool { return statOf(pid).parent != self })
	}
	var text [512]byte
	pid := 0
	for at := 0; ; {
		n, err := unix.Pread(c.list, text[:], int64(at))
		for _, b := range text[:max(n, 0)] { // numbers, each with a space behind it
			if b != ' ' {
				pid = 10*pid + int(b-'0')
				continue
			}
			pids, pid = append(pids, pid), 0
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case n < len(text): // which is less than the kernel's own buffer, so there is no more
			return pids
		default:
			at += n
		}
	}
}
