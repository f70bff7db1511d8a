//go:build unix && !linux

package process

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// wires are what leads to a running program.
type wires struct {
	proc   *os.Process
	pipes  [2]*os.File   // its output and errors
	one    sync.Mutex    // the listener is called once at a time
	open   int           // how many of the two are not known to have ended
	closed chan struct{} // a value for each that has
}

// start makes the pipes and the process, with a goroutine that reads each of its streams.
func (p *Process) start(env []string) (err error) {
	var theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // closing nil is an error that says so, and nothing else
		}
		if err != nil {
			p.stdin.Close()
			p.pipes[0].Close()
			p.pipes[1].Close()
		}
	}()
	if p.job.Input == nil && !p.job.Talk {
		theirs[0], err = os.Open(os.DevNull)
	} else {
		theirs[0], p.stdin, err = os.Pipe()
	}
	for i := 0; i < len(p.pipes) && err == nil; i++ {
		p.pipes[i], theirs[i+1], err = os.Pipe()
	}
	if err != nil {
		return err
	}
	p.proc, err = os.StartProcess(p.job.Path, p.job.Argv, &os.ProcAttr{Dir: p.job.Dir, Env: env, Files: theirs[:], Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		return err
	}
	p.group.id = p.proc.Pid
	if p.stdin != nil {
		rest := ""
		if p.job.Input != nil {
			rest = *p.job.Input
		}
		go p.feed(rest)
	}
	p.open, p.closed = len(p.pipes), make(chan struct{}, len(p.pipes))
	go p.read(p.pipes[0], &p.stdout)
	go p.read(p.pipes[1], &p.stderr)
	return nil
}

// read passes on a stream until it ends.
func (p *Process) read(from *os.File, s *stream) {
	buf := chunks.Get().(*chunk)
	for {
		n, err := from.Read(s.next(buf))
		p.one.Lock()
		s.take(buf, n)
		if err != nil {
			s.flush()
		}
		p.one.Unlock()
		if err != nil {
			break
		}
	}
	from.Close()
	chunks.Put(buf)
	p.closed <- struct{}{}
}

// await waits until the process has ended, and says how.
func (p *Process) await() (status syscall.WaitStatus, err error) {
	state, err := p.proc.Wait()
	if err == nil {
		status = state.Sys().(syscall.WaitStatus)
	}
	return status, err
}

// listen waits until a stream has ended, for at most so long.
func (p *Process) listen(atMost time.Duration) {
	select {
	case <-p.closed:
		p.open--
	case <-time.After(atMost):
	}
}

// silent says that both streams have ended.
func (p *Process) silent() bool { return p.open == 0 }

// abandon ends the reading, though a process that cannot be ended holds the other ends.
func (p *Process) abandon() {
	for _, f := range p.pipes {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	for ; p.open > 0; p.open-- {
		<-p.closed
	}
}

// endLeftovers ends what the program left behind outside of its group. Looking for it takes as long as a turn here, so it is
// done only when something was seen to be left; the rest ends with the run.
func (p *Process) endLeftovers(grace time.Duration) {
	if grace == 0 {
		endMarked(0, envRun+"="+p.job.Run, envTurn+"="+p.job.Turn, byThisProcess(), p.mark())
	}
}

// waitForGroup waits for the dead of a group that are this process's children.
func waitForGroup(id int) { _, _ = syscall.Wait4(-id, nil, syscall.WNOHANG, nil) }

// Clear ends what the programs of a run have left behind that this process has started. This process drives the run, and is
// through with it: the programs of another driver are spared.
func Clear(runID string) (ended int) {
	return endMarked(DefaultGrace, envRun+"="+runID, byThisProcess())
}

// Kill ends the processes of a run at once, without asking. This process drives it.
func Kill(runID string) {
	if runID != "" {
		endMarked(0, envRun+"="+runID, byThisProcess())
	}
}
