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
)

// A Job is a program to run.
type Job struct {
	Path      string
	Argv      []string
	Dir       string
	Env       []string // with the marks of Run and Turn in it: an [Environment] makes it
	Input     *string  // for standard input, which ends after it; nil = nothing there to read
	Talk      bool     // standard input stays open after Input: more is written to it while the program runs
	Grace     time.Duration
	Run, Turn string // what marks its processes
	// Stdout and Stderr are called by Wait, one at a time, with the program's output, in pieces that do not cut a rune in two.
	// While a call lasts, the output of the program waits in its pipes. nil = no call is made.
	Stdout, Stderr func(piece string)
}

// DefaultGrace is how long processes have to end after they were asked to, and how long the children that a program leaves
// behind have after the program has ended.
const DefaultGrace = 2 * time.Second

// A Process is a running program, with everything that it starts: a process group, and what has left that group.
type Process struct {
	job    Job
	number int64 // of the job, in this process; its processes have it in their environment
	group  group
	stdin  *os.File      // of a program that is talked to; elsewhere than on Linux also of one whose input is not yet written
	fed    chan struct{} // closed when all of the input was written to stdin, or the program does not read it
	stdout stream
	stderr stream
	wires  // the platform's part: how the output is read, and how the end of the process is noticed
}

// maxStderr is how much is kept of what a program wrote to standard error.
const maxStderr = 8 << 10

// jobs counts the programs that this process has started. The number of the newest one is the highest.
var jobs atomic.Int64

// Start makes the process. Its output is read by Wait, which must be called, and soon: a program that writes more than a pipe
// holds waits for it.
func (j Job) Start() (*Process, error) {
	if j.Grace <= 0 {
		j.Grace = DefaultGrace
	}
	p := &Process{job: j, number: jobs.Add(1), fed: make(chan struct{})}
	p.stdout.live, p.stderr.live, p.stderr.tail.Max = j.Stdout, j.Stderr, maxStderr
	if err := p.start(append(slices.Clip(j.Env), p.mark())); err != nil {
		return nil, err
	}
	return p, nil
}

// mark is the variable that only processes of this job have.
func (p *Process) mark() string { return envJob + "=" + strconv.FormatInt(p.number, 10) }

// feed writes the rest of the input to standard input. A program that does not read it has not failed.
func (p *Process) feed(rest string) {
	_, _ = io.WriteString(p.stdin, rest)
	close(p.fed)
	if !p.job.Talk {
		p.stdin.Close()
	}
}

// Write says more to a program that is talked to, after its input.
func (p *Process) Write(b []byte) (int, error) {
	<-p.fed
	return p.stdin.Write(b)
}

// CloseInput ends the standard input of a program that is talked to.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Stdout is the end of what the program has said, and how much that was. It is whole when Wait has returned.
func (p *Process) Stdout() *Tail { return &p.stdout.tail }

// Stderr is the end of what the program has written to standard error.
func (p *Process) Stderr() *Tail { return &p.stderr.tail }

// PID is the process's number, and its group's.
func (p *Process) PID() int { return p.group.id }

// Wait passes on the program's output until nothing is left of the process, and says how it ended and whether ctx ended before
// it did; when ctx ends, so does the process.
func (p *Process) Wait(ctx context.Context) (status syscall.WaitStatus, cut bool, err error) {
	// The signals come from another goroutine: this one may be inside of a listener, or of the kernel, and hears of the end by
	// the end of the process.
	stop := context.AfterFunc(ctx, func() { p.group.end(p.job.Grace) })
	status, err = p.await()
	cut = ctx.Err() != nil
	if p.stdin != nil {
		p.stdin.Close()
	}
	p.settle(cut)
	stop()
	p.group.forget()
	return status, cut, err
}

// ExitCode is a status in one number, as shells say it: 128 more than the signal for a program that a signal has ended.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// settle waits for the children that the program left behind, which hold its pipes or just live on. They have the grace period.
func (p *Process) settle(cut bool) {
	late := time.Now().Add(p.job.Grace)
	if cut {
		// A child that was just being forked when the group was asked to end may not have heard.
		p.group.signal(syscall.SIGTERM)
		p.until(late, p.group.empty)
	} else if p.until(late, p.silent) && p.until(late, p.group.empty) {
		p.endLeftovers(p.job.Grace)
		return
	}
	if p.group.signal(syscall.SIGKILL) {
		p.until(time.Now().Add(p.job.Grace), p.group.empty)
	}
	// A child with a session of its own has left the group. It may hold the pipes, and has had its time.
	p.endLeftovers(0)
	if !p.until(time.Now().Add(p.job.Grace), p.silent) {
		p.abandon()
	}
}

// until passes on the output until something is so; false = it was late before. The output is read all the while, because a
// process that is to end may have to write what it has to say first.
func (p *Process) until(late time.Time, so func() bool) bool {
	for pause := time.Millisecond; !so(); pause = min(2*pause, 50*time.Millisecond) {
		left := time.Until(late)
		if left <= 0 {
			return false
		}
		p.listen(min(pause, left))
	}
	return true
}

// A group is a process group. Once it is known to be empty its number may be another's, and is not used any more.
type group struct {
	id   int
	mu   sync.Mutex
	gone bool
	kill *time.Timer
}

// end asks the group to end, and makes it after the grace period. A stopped process is woken, so that it can hear.
func (g *group) end(grace time.Duration) {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		g.kill = time.AfterFunc(grace, func() { g.signal(syscall.SIGKILL) })
	}
}

// signal reaches every process of the group; false = there is none.
func (g *group) signal(s syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone && errors.Is(syscall.Kill(-g.id, s), syscall.ESRCH) {
		g.gone = true
	}
	return !g.gone
}

// empty says that no process is in the group any more. Its leader must have been waited for. The dead stay in a group until
// their parent waits for them; for orphans that is this process, where it adopts them.
func (g *group) empty() bool {
	if !g.signal(0) {
		return true
	}
	waitForGroup(g.id)
	return !g.signal(0)
}

// forget makes sure that no signal is sent any more.
func (g *group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	if g.kill != nil {
		g.kill.Stop()
	}
}
