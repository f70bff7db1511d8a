package process

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"swarm"
)

// A Job is a program to run, with its input, its environment and the receivers of its output.
type Job struct {
	Path  string
	Argv  []string
	Dir   string
	Env   []string // made by an [Environment], so it has the marks of Run and Turn
	Input *string  // standard input, closed after it; nil = none
	Talk  bool     // standard input stays open after Input: the caller writes more while the program runs
	Grace time.Duration
	Run   swarm.RunID
	Turn  string // the marks of its processes
	// Wait calls Stdout and Stderr with the program's output, never concurrently. No piece cuts a
	// rune in two. Backpressure: during a call the program's further output stays in its pipes.
	// nil = no call.
	Stdout, Stderr func(piece string)
}

// DefaultGrace is the time between SIGTERM and SIGKILL. Children that outlive their program have
// the same time to end by themselves.
const DefaultGrace = 2 * time.Second

// A Process is a running program with all processes that it starts, in its process group or
// outside.
//
// On Linux the goroutine that calls Wait owns the pipes and both streams, so they need no mutex.
// Elsewhere each stream has its own reading goroutine. Other goroutines use only group and stdin.
type Process struct {
	job    Job
	number int64  // of the job, counted by this process; also a mark
	token  string // of the agent, in the program's environment; "" = none
	group  group
	stdin  *os.File      // when Talk; without pidfds also while input is left to write
	fed    chan struct{} // closed when stdin has all of Input, or the program does not read it
	stdout stream
	stderr stream
	pipes  // by platform: reads the output and notices the end of the process
}

// maxStderr is the number of bytes kept of a program's standard error.
const maxStderr = 8 << 10

// jobs counts the jobs of this process. A job's number is the count at its start.
var jobs atomic.Int64

// Start starts the process. The caller must call Wait soon, because only Wait reads the output.
// Until then a program that writes more than a pipe holds is blocked.
func (j Job) Start() (*Process, error) {
	if j.Grace <= 0 {
		j.Grace = DefaultGrace
	}
	p := &Process{job: j, number: jobs.Add(1), fed: make(chan struct{})}
	p.token, _ = Lookup(j.Env, envToken)
	p.stdout.live, p.stderr.live, p.stderr.tail.Max = j.Stdout, j.Stderr, maxStderr
	if err := p.start(append(slices.Clip(j.Env), p.mark())); err != nil {
		return nil, err
	}
	return p, nil
}

// mark is the variable that only processes of this job have.
func (p *Process) mark() string { return envJob + "=" + strconv.FormatInt(p.number, 10) }

// feed writes the rest of the input to standard input. A program that does not read it has not
// failed, so errors are ignored.
func (p *Process) feed(rest string) {
	_, _ = io.WriteString(p.stdin, rest)
	close(p.fed)
	if !p.job.Talk {
		p.stdin.Close()
	}
}

// Write writes to the standard input of a Talk program. It waits until all of Input is written.
func (p *Process) Write(b []byte) (int, error) {
	<-p.fed
	return p.stdin.Write(b)
}

// CloseInput closes the standard input of a Talk program.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Stdout returns the end of the program's output and its total length. It is complete when Wait has
// returned.
func (p *Process) Stdout() *Tail { return &p.stdout.tail }

// Stderr returns the end of the program's standard error. It is complete when Wait has returned.
func (p *Process) Stderr() *Tail { return &p.stderr.tail }

// PID is the id of the process, and of its group.
func (p *Process) PID() int { return p.group.id }

// Wait reads the program's output until no process of the program is left. It returns how the
// program ended, and whether ctx ended before it did. When ctx ends, Wait ends the processes.
func (p *Process) Wait(ctx context.Context) (status syscall.WaitStatus, cut bool, err error) {
	// The signals come from another goroutine. This one may be inside a Stdout call or a system
	// call, and learns of the end when the process ends.
	stop := context.AfterFunc(ctx, func() { p.group.end(p.job.Grace) })
	status, err = p.await()
	cut = ctx.Err() != nil
	if p.stdin != nil {
		p.stdin.Close()
	}
	p.endChildren(cut)
	stop()
	p.group.forget()
	return status, cut, err
}

// ExitCode converts a status to one number, as shells do: 128 plus the signal if a signal ended the
// program.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// endChildren waits for the children that the program left behind. They may hold its pipes or just
// live on. After the grace period it kills them.
func (p *Process) endChildren(cut bool) {
	late := time.Now().Add(p.job.Grace)
	if cut {
		// A child that was being forked while the group got its SIGTERM may have missed the signal.
		p.group.signal(syscall.SIGTERM)
		if p.readUntil(late, p.group.empty) {
			p.endLeftovers(time.Until(late)) // those outside of the group get SIGTERM now
		}
	} else if p.readUntil(late, p.pipesClosed) && p.readUntil(late, p.group.empty) {
		p.endLeftovers(p.job.Grace)
		return
	}
	if p.group.signal(syscall.SIGKILL) {
		p.readUntil(time.Now().Add(p.job.Grace), p.group.empty)
	}
	// A child with its own session has left the group. It may hold the pipes, and its grace period
	// is over.
	p.endLeftovers(0)
	if !p.readUntil(time.Now().Add(p.job.Grace), p.pipesClosed) {
		p.abandon()
	}
}

// readUntil reads output until done returns true. It returns false if the deadline comes first. It
// reads all the while, because an ending process may block on its last output.
func (p *Process) readUntil(deadline time.Time, done func() bool) bool {
	for pause := time.Millisecond; !done(); pause = min(2*pause, 50*time.Millisecond) {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		p.poll(min(pause, left))
	}
	return true
}

// A group is a process group. After it is known to be empty, the kernel may reuse its id, so gone
// stops all further signals. mu guards gone and kill.
type group struct {
	id   int
	mu   sync.Mutex
	gone bool
	kill *time.Timer
}

// end sends SIGTERM to the group, and SIGKILL after the grace period. SIGCONT wakes stopped
// processes, so that they get the signal.
func (g *group) end(grace time.Duration) {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		g.kill = time.AfterFunc(grace, func() { g.signal(syscall.SIGKILL) })
	}
}

// signal sends s to every process of the group. It returns false if there is none.
func (g *group) signal(s syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone && errors.Is(syscall.Kill(-g.id, s), syscall.ESRCH) {
		g.gone = true
	}
	return !g.gone
}

// empty reports that no process is left in the group. The leader must have been waited for. Dead
// processes stay in a group until their parent waits for them; for adopted orphans that is this
// process.
func (g *group) empty() bool {
	if !g.signal(0) {
		return true
	}
	waitForGroup(g.id)
	return !g.signal(0)
}

// forget stops all further signals, because the group's id may be reused from now on.
func (g *group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	if g.kill != nil {
		g.kill.Stop()
	}
}
