package provider

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A job is a program to run.
type job struct {
	path      string
	argv      []string
	dir       string
	env       []string
	input     *string // for standard input; nil = nothing there to read
	grace     time.Duration
	run, turn string // what marks its processes
}

// A process is a running program, with everything that it starts: a process group.
type process struct {
	job
	proc   *os.Process
	group  group
	stdin  *os.File // what is left of the input is still being written to it; nil = nothing is
	stdout stream
	stderr stream
	open   int           // how many of the two are not known to have ended
	closed chan struct{} // a value for each that has
}

// maxStderr is how much is kept of what a program wrote to standard error.
const maxStderr = 8 << 10

// start makes the process. What it says goes to live from then on.
func (j job) start(live func(Delta)) (*process, error) {
	std, err := openPipes(j.input != nil)
	if err != nil {
		return nil, err
	}
	defer std.closeTheirs()
	input := std[0].ours
	rest := ""
	if j.input != nil {
		rest = writeSome(input, *j.input)
	}
	proc, err := os.StartProcess(j.path, j.argv, &os.ProcAttr{
		Dir: j.dir, Env: j.env, Files: []*os.File{std[0].theirs, std[1].theirs, std[2].theirs}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		std.closeOurs()
		return nil, err
	}
	p := &process{job: j, proc: proc, group: group{id: proc.Pid}, open: 2, closed: make(chan struct{}, 2)}
	if rest == "" {
		input.Close()
	} else {
		p.stdin = input
		go p.feed(rest)
	}
	var one sync.Mutex
	p.stdout = stream{kind: DeltaText, from: std[1].ours, live: live, one: &one}
	p.stderr = stream{kind: DeltaStderr, from: std[2].ours, live: live, one: &one, tail: Tail{Max: maxStderr}}
	go p.stdout.read(p.closed)
	go p.stderr.read(p.closed)
	return p, nil
}

// feed writes the input's rest. A program that does not want to read it has not failed.
func (p *process) feed(rest string) {
	_, _ = io.WriteString(p.stdin, rest)
	p.stdin.Close()
}

// wait waits until nothing is left of the process, and says how it ended and whether ctx ended before it did.
func (p *process) wait(ctx context.Context) (state *os.ProcessState, cut bool, err error) {
	stop := context.AfterFunc(ctx, func() { p.group.end(p.grace) })
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
func (p *process) settle(cut bool) {
	late := time.NewTimer(p.grace)
	defer late.Stop()
	if cut {
		// One that was just being forked when the group was asked to end may not have heard.
		p.group.signal(syscall.SIGTERM)
		p.group.empties(late.C)
	} else if p.ends(late.C) && p.group.empties(late.C) {
		return
	}
	if p.group.signal(syscall.SIGKILL) {
		dying := time.NewTimer(p.grace)
		defer dying.Stop()
		p.group.empties(dying.C)
	}
	// A child with a session of its own has left the group, but not its environment. Looking at every process is slow, so this
	// is done only where something was seen to be left, or nothing may be.
	if cut || p.open > 0 {
		endMarked(envRun+"="+p.run, envTurn+"="+p.turn, byThisProcess())
	}
	last := time.NewTimer(p.grace)
	defer last.Stop()
	if !p.ends(last.C) {
		p.stdout.abandon()
		p.stderr.abandon()
		p.ends(nil)
	}
}

// ends waits until both streams have ended; false if it is late before.
func (p *process) ends(late <-chan time.Time) bool {
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
