package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// On Linux one goroutine runs a program. It waits in one poll(2) for output, for room in the
// program's standard input, and for the end of the process, which a pidfd reports. So there is no
// goroutine per pipe, and a silent program has no buffer.

// pipes are the file descriptors that lead to a running program; -1 = closed. After Start only the
// goroutine in Wait uses them.
type pipes struct {
	exit     int    // readable once the process has ended: a pidfd, or a pipe that closeOnExit closes
	in       int    // standard input, until rest is written
	out, err int    // standard output and error
	rest     string // input that is not written yet
}

// pidfds reports whether the kernel has pidfds. Linux has them since 5.3, but a sandbox may forbid
// them.
var pidfds = sync.OnceValue(func() bool {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
})

// start opens the pipes and starts the process.
func (p *Process) start(env []string) error {
	p.pipes = pipes{exit: -1, in: -1, out: -1, err: -1}
	theirs, ended, err := p.open()
	if err == nil {
		sys := &syscall.SysProcAttr{Setsid: true}
		if ended < 0 {
			sys.PidFD = &p.exit
		}
		attr := &syscall.ProcAttr{
			Dir: p.job.Dir, Env: env, Sys: sys,
			Files: []uintptr{uintptr(theirs[0]), uintptr(theirs[1]), uintptr(theirs[2])},
		}
		var pid int
		if g := family.registerJob(p); g != nil {
			sys.UseCgroupFD, sys.CgroupFD = true, g.fd
		}
		p.limitMark().do(func() {
			pid, _, err = syscall.StartProcess(p.job.Path, p.job.Argv, attr)
			if err != nil && sys.UseCgroupFD {
				// The cgroup may be the reason: another driver has taken the run over and removed it, or
				// a sandbox forbids it. The errors are those of a program that cannot be started.
				sys.UseCgroupFD = false
				pid, _, err = syscall.StartProcess(p.job.Path, p.job.Argv, attr)
			}
		})
		family.registerProcess(p, pid, err)
	}
	closeAll(&theirs[0], &theirs[1], &theirs[2])
	if err != nil {
		closeAll(&p.exit, &p.in, &p.out, &p.err, &ended)
		if p.stdin != nil {
			p.stdin.Close()
		}
		return &os.PathError{Op: "fork/exec", Path: p.job.Path, Err: err}
	}
	if ended >= 0 {
		go closeOnExit(p.group.id, ended)
	}
	switch {
	case !p.job.Talk:
	case p.rest == "":
		close(p.fed)
	default:
		go p.feed(p.rest)
	}
	return nil
}

// open opens the pipes, and writes as much of the input as the pipe holds. Most prompts fit, so
// most programs need no POLLOUT. theirs are the program's ends. Without pidfds, p.exit is a pipe of
// our own and ended is its other end.
func (p *Process) open() (theirs [3]int, ended int, err error) {
	theirs, ended = [3]int{-1, -1, -1}, -1
	var in int
	if p.job.Input == nil && !p.job.Talk {
		theirs[0], err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	} else if err = pipe(&theirs[0], &in); err == nil {
		p.in = in
		err = unix.SetNonblock(in, true)
	}
	if err == nil {
		err = pipe(&p.out, &theirs[1])
	}
	if err == nil {
		err = pipe(&p.err, &theirs[2])
	}
	if err == nil && !pidfds() {
		err = pipe(&p.exit, &ended)
	}
	if err != nil {
		return theirs, ended, err
	}
	if p.job.Input != nil {
		p.rest = *p.job.Input
	}
	if p.job.Talk {
		p.stdin, p.in = os.NewFile(uintptr(p.in), "|1"), -1
		return theirs, ended, nil
	}
	p.write()
	return theirs, ended, nil
}

func pipe(read, write *int) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	*read, *write = fds[0], fds[1]
	return nil
}

// closeAll closes open descriptors and marks them as closed, so that a second call does no harm.
func closeAll(fds ...*int) {
	for _, fd := range fds {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

// closeOnExit closes a pipe when the process has ended. It does not reap the process:
// [children.wait] does.
func closeOnExit(pid, pipe int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}
	closeAll(&pipe)
}

// await reads output until the process has ended, and returns its status.
func (p *Process) await() (syscall.WaitStatus, error) {
	for p.exit >= 0 {
		p.poll(-1)
	}
	closeAll(&p.in)
	return family.wait(p)
}

// poll waits for output, for room for input or for the end of the process, at most this long;
// negative = without limit. It reads the output before it handles the end, so no output is lost.
func (p *Process) poll(atMost time.Duration) {
	fds := [...]unix.PollFd{
		{Fd: int32(p.out), Events: unix.POLLIN}, {Fd: int32(p.err), Events: unix.POLLIN},
		{Fd: int32(p.in), Events: unix.POLLOUT}, {Fd: int32(p.exit), Events: unix.POLLIN}, // poll(2) skips negative descriptors
	}
	timeout := -1
	if atMost >= 0 {
		timeout = int((atMost + time.Millisecond - 1) / time.Millisecond)
	}
	if n, err := unix.Poll(fds[:], timeout); err != nil || n == 0 {
		return // a signal or the timeout: the caller polls again
	}
	if fds[0].Revents != 0 {
		p.stdout.read(&p.out, fds[0].Revents)
	}
	if fds[1].Revents != 0 {
		p.stderr.read(&p.err, fds[1].Revents)
	}
	if fds[2].Revents != 0 {
		p.write()
	}
	if fds[3].Revents != 0 {
		closeAll(&p.exit)
	}
}

// read reads once from a pipe. poll(2) has reported seen for it, so the read never blocks.
func (s *stream) read(fd *int, seen int16) {
	if seen&unix.POLLIN == 0 { // the other end is closed and the pipe is empty
		s.end(fd)
		return
	}
	buf := chunks.Get().(*chunk)
	defer chunks.Put(buf)
	n, err := unix.Read(*fd, s.next(buf))
	switch {
	case errors.Is(err, unix.EINTR):
	case n <= 0:
		s.end(fd)
	default:
		s.deliver(buf, n)
	}
}

// end closes the pipe and delivers the rest of the stream.
func (s *stream) end(fd *int) {
	closeAll(fd)
	s.flush()
}

// write writes as much of the input as the pipe holds. A program that does not read its input has
// not failed, so errors end the input silently.
func (p *Process) write() {
	for p.rest != "" {
		n, err := unix.Write(p.in, []byte(p.rest[:min(len(p.rest), len(chunk{}))]))
		switch {
		case err == nil:
			p.rest = p.rest[n:]
		case errors.Is(err, unix.EAGAIN):
			return
		case !errors.Is(err, unix.EINTR):
			p.rest = ""
		}
	}
	closeAll(&p.in)
}

// pipesClosed reports that both output pipes have ended.
func (p *Process) pipesClosed() bool { return p.out < 0 && p.err < 0 }

// abandon stops reading although a process that cannot be ended still holds the pipes.
func (p *Process) abandon() {
	p.stdout.end(&p.out)
	p.stderr.end(&p.err)
}
