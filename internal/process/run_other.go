//go:build unix && !linux

package process

import (
	"os"
	"sync"
	"syscall"
	"time"

	"swarm"
)

// pipes are the files that lead to a running program. The goroutine in Wait owns open; one goroutine
// per stream reads.
type pipes struct {
	proc   *os.Process
	files  [2]*os.File   // standard output and error
	one    sync.Mutex    // held during a Stdout or Stderr call, so that they never run concurrently
	open   int           // number of streams that have not ended
	closed chan struct{} // gets a value for each stream that ends
}

// start opens the pipes and starts the process, with one goroutine per stream.
func (p *Process) start(env []string) (err error) {
	var theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // closing a nil file only returns an error
		}
		if err != nil {
			p.stdin.Close()
			p.files[0].Close()
			p.files[1].Close()
		}
	}()
	if p.job.Input == nil && !p.job.Talk {
		theirs[0], err = os.Open(os.DevNull)
	} else {
		theirs[0], p.stdin, err = os.Pipe()
	}
	for i := 0; i < len(p.files) && err == nil; i++ {
		p.files[i], theirs[i+1], err = os.Pipe()
	}
	if err != nil {
		return err
	}
	p.proc, err = os.StartProcess(p.job.Path, p.job.Argv, &os.ProcAttr{
		Dir: p.job.Dir, Env: env, Files: theirs[:], Sys: &syscall.SysProcAttr{Setsid: true},
	})
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
	p.open, p.closed = len(p.files), make(chan struct{}, len(p.files))
	go p.read(p.files[0], &p.stdout)
	go p.read(p.files[1], &p.stderr)
	return nil
}

// read reads a stream until it ends.
func (p *Process) read(from *os.File, s *stream) {
	buf := chunks.Get().(*chunk)
	for {
		n, err := from.Read(s.next(buf))
		p.one.Lock()
		s.deliver(buf, n)
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

// await waits until the process has ended, and returns its status.
func (p *Process) await() (status syscall.WaitStatus, err error) {
	state, err := p.proc.Wait()
	if err == nil {
		status = state.Sys().(syscall.WaitStatus)
	}
	return status, err
}

// poll waits until a stream has ended, at most this long.
func (p *Process) poll(atMost time.Duration) {
	select {
	case <-p.closed:
		p.open--
	case <-time.After(atMost):
	}
}

// pipesClosed reports that both streams have ended.
func (p *Process) pipesClosed() bool { return p.open == 0 }

// abandon stops reading although a process that cannot be ended still holds the pipes.
func (p *Process) abandon() {
	for _, f := range p.files {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	for ; p.open > 0; p.open-- {
		<-p.closed
	}
}

// endLeftovers ends the processes that the program left behind outside of its group. A search by ps
// takes as long as a turn, so it runs only when leftovers were noticed. The others end with the
// run.
func (p *Process) endLeftovers(grace time.Duration) {
	if grace == 0 {
		endMarked(0, markSet{env: []string{envRun + "=" + string(p.job.Run), envTurn + "=" + p.job.Turn, byThisProcess(), p.mark()}})
	}
}

// waitForGroup reaps a dead process of a group, if it is a child of this process.
func waitForGroup(id int) { _, _ = syscall.Wait4(-id, nil, syscall.WNOHANG, nil) }

// Clear ends the processes that a run's programs left behind, if this process started them. The
// caller drives the run and has finished with it. Programs of another driver are spared.
func Clear(runID swarm.RunID) (ended int) {
	return endMarked(DefaultGrace, markSet{env: []string{envRun + "=" + string(runID), byThisProcess()}})
}

// Kill ends the processes of a run at once, without a grace period. The caller drives the run.
func Kill(runID swarm.RunID) {
	if runID != "" {
		endMarked(0, markSet{env: []string{envRun + "=" + string(runID), byThisProcess()}})
	}
}
