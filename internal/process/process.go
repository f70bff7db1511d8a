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
	// Stdout and Stderr are called, one at a time, with what the program says, in pieces that do not cut a rune in two.
	// nil = nobody listens.
	Stdout, Stderr func(piece string)
}

// DefaultGrace is how long processes have to end after they were asked to, and what a program leaves behind after it has ended.
const DefaultGrace = 2 * time.Second

// A Process is a running program, with everything that it starts: a process group.
type Process struct {
	job    Job
	marks  []string // what its processes bear, and no others
	proc   *os.Process
	group  group
	stdin  *os.File // not closed yet: what is left of the input is still being written to it, or it is kept open; nil = neither
	stdout stream
	stderr stream
	open   int           // how many of the two are not known to have ended
	closed chan struct{} // a value for each that has
	fed    chan struct{} // closed when all of the input was written, or nobody reads it
}

// maxStderr is how much is kept of what a program wrote to standard error.
const maxStderr = 8 << 10

// jobs counts what this process has started.
var jobs atomic.Int64

// Start makes the process.
func (j Job) Start() (*Process, error) {
	if j.Grace <= 0 {
		j.Grace = DefaultGrace
	}
	std, err := openPipes(j.Input != nil || j.Talk)
	if err != nil {
		return nil, err
	}
	defer std.closeTheirs()
	input := std[0].ours
	rest := ""
	if j.Input != nil {
		rest = writeSome(input, *j.Input)
	}
	number := envJob + "=" + strconv.FormatInt(jobs.Add(1), 10)
	proc, err := os.StartProcess(j.Path, j.Argv, &os.ProcAttr{
		Dir: j.Dir, Env: append(slices.Clip(j.Env), number), Files: []*os.File{std[0].theirs, std[1].theirs, std[2].theirs}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		std.closeOurs()
		return nil, err
	}
	p := &Process{job: j, marks: []string{envRun + "=" + j.Run, envTurn + "=" + j.Turn, byThisProcess(), number}, proc: proc, group: group{id: proc.Pid}, open: 2, closed: make(chan struct{}, 2), fed: make(chan struct{})}
	if rest == "" && !j.Talk {
		input.Close()
		close(p.fed)
	} else {
		p.stdin = input
		go p.feed(rest)
	}
	var one sync.Mutex
	p.stdout = stream{from: std[1].ours, live: j.Stdout, one: &one}
	p.stderr = stream{from: std[2].ours, live: j.Stderr, one: &one, tail: Tail{Max: maxStderr}}
	go p.stdout.read(p.closed)
	go p.stderr.read(p.closed)
	return p, nil
}

// feed writes the input's rest. A program that does not want to read it has not failed.
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

// Wait waits until nothing is left of the process, and says how it ended and whether ctx ended before it did; when ctx ends, so
// does the process.
func (p *Process) Wait(ctx context.Context) (state *os.ProcessState, cut bool, err error) {
	stop := context.AfterFunc(ctx, func() { p.group.end(p.job.Grace) })
	state, err = p.proc.Wait()
	cut = ctx.Err() != nil
	if p.stdin != nil {
		p.stdin.Close()
	}
	p.settle(cut)
	stop()
	p.group.forget()
	return state, cut, err
}

// settle waits for what the program left behind: children that hold its pipes or just live on. They have the grace period.
func (p *Process) settle(cut bool) {
	late := time.NewTimer(p.job.Grace)
	defer late.Stop()
	if cut {
		// One that was just being forked when the group was asked to end may not have heard.
		p.group.signal(syscall.SIGTERM)
		p.group.empties(late.C)
	} else if p.ends(late.C) && p.group.empties(late.C) {
		retire(func() []int { return markedAfter(p.group.id, p.marks...) }, p.job.Grace, nil, p.marks...)
		return
	}
	if p.group.signal(syscall.SIGKILL) {
		dying := time.NewTimer(p.job.Grace)
		defer dying.Stop()
		p.group.empties(dying.C)
	}
	// A child with a session of its own has left the group, but not its environment. Looking at every process is slow; here
	// something was seen to be left, or nothing may be.
	endMarked(p.marks...)
	last := time.NewTimer(p.job.Grace)
	defer last.Stop()
	if !p.ends(last.C) {
		p.stdout.abandon()
		p.stderr.abandon()
		p.ends(nil)
	}
}

// ends waits until both streams have ended; false if it is late before.
func (p *Process) ends(late <-chan time.Time) bool {
	for p.open > 0 {
		select {
		case <-p.closed:
			p.open--
		case <-late:
			return false
		}
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

// empties waits until no living process is in the group; false if it is late before. Its leader must have been waited for.
func (g *group) empties(late <-chan time.Time) bool {
	for pause := time.Millisecond; g.signal(0); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-late:
			return false
		case <-time.After(pause):
		}
		// The dead stay in a group until whoever orphans go to has looked at them. That may be this process; and where it is
		// another, some take their time, and some, in containers, never do.
		_, _ = syscall.Wait4(-g.id, nil, syscall.WNOHANG, nil)
		// Looked at twice: one may have forked and died while the list was read.
		if !groupLives(g.id) && !groupLives(g.id) {
			g.forget()
		}
	}
	return true
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
