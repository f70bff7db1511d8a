package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// On Linux one goroutine runs a program: it waits in one poll(2) for output, for room in the program's standard input, and for
// the end of the process, which a pidfd tells. There is no goroutine for each pipe, and no buffer while a program says nothing.

// wires are the file descriptors that lead to a running program; -1 = closed. Nobody but Wait uses them after Start.
type wires struct {
	exit     int    // can be read once the process has ended
	in       int    // its standard input, while rest is not written
	out, err int    // its standard output and error
	rest     string // of the input
}

// pidfds says whether the kernel tells the end of a process by a file descriptor: since Linux 5.3, where no sandbox forbids it.
var pidfds = sync.OnceValue(func() bool {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
})

// start makes the pipes and the process.
func (p *Process) start(env []string) error {
	p.wires = wires{exit: -1, in: -1, out: -1, err: -1}
	theirs, ended, err := p.open()
	if err == nil {
		sys := &syscall.SysProcAttr{Setpgid: true}
		if ended < 0 {
			sys.PidFD = &p.exit
		}
		family.begin(p)
		var pid int
		pid, _, err = syscall.StartProcess(p.job.Path, p.job.Argv, &syscall.ProcAttr{
			Dir: p.job.Dir, Env: env, Files: []uintptr{uintptr(theirs[0]), uintptr(theirs[1]), uintptr(theirs[2])}, Sys: sys,
		})
		family.began(p, pid, err)
	}
	shut(&theirs[0], &theirs[1], &theirs[2])
	if err != nil {
		shut(&p.exit, &p.in, &p.out, &p.err, &ended)
		if p.stdin != nil {
			p.stdin.Close()
		}
		return &os.PathError{Op: "fork/exec", Path: p.job.Path, Err: err}
	}
	if ended >= 0 {
		go tellEnd(p.group.id, ended)
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

// open makes the pipes, and writes as much of the input as its pipe has room for: most prompts fit. theirs are the program's
// ends. Without pidfds, p.exit is a pipe of our own, and ended is its other end.
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

func shut(fds ...*int) {
	for _, fd := range fds {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

// tellEnd closes a pipe when the process has ended. It leaves it to be waited for by [children.wait].
func tellEnd(pid, pipe int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}
	shut(&pipe)
}

// await passes on the output until the process has ended, and says how.
func (p *Process) await() (syscall.WaitStatus, error) {
	for p.exit >= 0 {
		p.listen(-1)
	}
	shut(&p.in)
	return family.wait(p)
}

// listen waits until there is output, room for input, or the process has ended, for at most so long; negative = for ever. It
// passes on the output, in the order in which the pipes have it, before it notices the end.
func (p *Process) listen(atMost time.Duration) {
	fds := [...]unix.PollFd{
		{Fd: int32(p.out), Events: unix.POLLIN}, {Fd: int32(p.err), Events: unix.POLLIN},
		{Fd: int32(p.in), Events: unix.POLLOUT}, {Fd: int32(p.exit), Events: unix.POLLIN}, // poll looks at no negative one
	}
	timeout := -1
	if atMost >= 0 {
		timeout = int((atMost + time.Millisecond - 1) / time.Millisecond)
	}
	if n, err := unix.Poll(fds[:], timeout); err != nil || n == 0 {
		return // a signal, or nothing: the caller asks again
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
		shut(&p.exit)
	}
}

// read takes what a pipe has, once poll has said what it has seen there, so that it never blocks.
func (s *stream) read(fd *int, seen int16) {
	if seen&unix.POLLIN == 0 { // the other end is closed, and nothing is left to be read
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
		s.take(buf, n)
	}
}

// end ends the reading of a stream.
func (s *stream) end(fd *int) {
	shut(fd)
	s.flush()
}

// write writes as much of the input as there is room for. A program that does not read it has not failed.
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
	shut(&p.in)
}

// silent says that both pipes have ended.
func (p *Process) silent() bool { return p.out < 0 && p.err < 0 }

// abandon ends the reading, though a process that cannot be ended holds the other ends.
func (p *Process) abandon() {
	p.stdout.end(&p.out)
	p.stderr.end(&p.err)
}
