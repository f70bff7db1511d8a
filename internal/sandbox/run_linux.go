package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarm"
)

// Exit codes of the stages, as shells use them.
const (
	exitNoSandbox = 125
	exitNoProgram = 127
)

// Invoked reports whether the arguments are those of a stage.
func Invoked(args []string) bool {
	return len(args) > 1 && (args[1] == outerCommand || args[1] == innerCommand)
}

// Main runs a stage: the process is one, and nothing else. It returns the exit code.
func Main(args []string) int {
	if len(args) < 5 {
		return complain("the arguments of a sandbox are missing")
	}
	// Bubblewrap dies with the thread that started it, and rights are given up by thread.
	runtime.LockOSThread()
	if args[1] == innerCommand {
		return runInside(args[2], args[3], args[4:])
	}
	var p policy
	if err := json.Unmarshal([]byte(args[2]), &p); err != nil {
		return complain("the arguments of a sandbox cannot be read: %v", err)
	}
	return p.runOutside(args[3], args[4:])
}

func complain(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "swarm: "+format+"\n", args...)
	return exitNoSandbox
}

// maxTries is how often a sandbox is built. A socket that is to be hidden may vanish in between, and
// then bubblewrap finds no place for its mount.
const maxTries = 3

// runOutside builds the sandbox, runs the program in it and returns its exit code.
func (p *policy) runOutside(path string, argv []string) int {
	go p.endWithParent()
	// The program gets the signals of its process group itself. Bubblewrap inherits this, so it does
	// not end before the program has ended.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// A program that is used for the first time would make its folders in the home folder, which it
	// cannot write. Without them it would forget its sessions.
	for _, folder := range absolute(p.Login, os.Getenv("HOME"), os.Getenv("HOME")) {
		_ = os.MkdirAll(folder, 0o700) // where it cannot be made, the program says so
	}
	if p.Bwrap == "" {
		if err := p.prepareLandlock(); err != nil {
			return complain("the sandbox could not be started: %v", err)
		}
		defer p.cleanLandlock()
	}
	for range maxTries {
		code, started, err := p.runOnce(path, argv)
		if err != nil {
			return complain("the sandbox could not be started: %v", err)
		}
		if started {
			return code
		}
	}
	return complain("the sandbox could not be built")
}

// endWithParent ends this process, and so the sandbox, when the driver is gone.
func (p *policy) endWithParent() {
	fd, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		return
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n > 0 {
			if p.Bwrap == "" {
				p.cleanLandlock()
			}
			os.Exit(128 + int(syscall.SIGKILL))
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// An inside is what the inner stage is told.
type inside struct {
	Doors []string `json:"doors,omitempty"` // addresses to listen on
	Proxy bool     `json:"proxy,omitempty"` // listen for a proxy too
	Alone bool     `json:"alone,omitempty"` // there is no network: proxies of the machine are not reached
	Temp  string   `json:"temp,omitempty"`  // becomes TMPDIR; "" = TMPDIR is writable
	// Landlock is what the stage has to confine itself to; nil = bubblewrap has.
	Landlock *policy `json:"landlock,omitempty"`
}

// runOnce starts the inner stage once, and waits for its end. started says whether it was reached.
func (p *policy) runOnce(path string, argv []string) (code int, started bool, err error) {
	m := thisMachine(os.Getenv("HOME"))
	in := inside{Alone: !p.Online}
	var line []string
	var empty int
	if p.Bwrap == "" {
		in.Landlock, in.Temp = p, p.Temp
	} else {
		line, empty = p.bwrapArguments(m)
		line = append(slices.Insert(line, 0, p.Bwrap), "--")
		if !p.mayWriteTemp(m) {
			in.Temp = "/tmp"
		}
	}
	if !p.Online {
		in.Doors, in.Proxy = p.doors(os.Getenv("SWARM_URL")), len(p.Hosts) > 0
	}
	told, err := json.Marshal(in)
	if err != nil {
		return 0, false, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	ours, err := connOf(pair[0])
	if err != nil {
		return 0, false, err
	}
	defer ours.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, false, err
	}
	defer null.Close()
	line = slices.Concat(line, []string{p.Self, innerCommand, string(told), path}, argv)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	for range empty {
		cmd.ExtraFiles = append(cmd.ExtraFiles, null)
	}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return 0, false, err
	}
	listeners, err := receiveListeners(ours)
	if started = err == nil; started {
		p.serve(in, listeners)
	}
	err = cmd.Wait()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		if status := exited.Sys().(syscall.WaitStatus); status.Signaled() {
			return 128 + int(status.Signal()), started, nil
		}
		return exited.ExitCode(), started, nil
	}
	return 0, started, err
}

// serve carries the connections that the program makes. It returns at once.
func (p *policy) serve(in inside, listeners []net.Listener) {
	for i, l := range listeners {
		if l == nil {
			continue
		}
		if i < len(in.Doors) {
			go serveDoor(l, in.Doors[i])
			continue
		}
		server := &http.Server{Handler: newProxy(p.rules()), ReadHeaderTimeout: relayDial, ErrorLog: nil}
		go func() { _ = server.Serve(l) }()
	}
}

// connOf makes a connection of a socket.
func connOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// mayWriteTemp reports whether the program's TMPDIR is one that it may write.
func (p *policy) mayWriteTemp(m machine) bool {
	dir := os.Getenv("TMPDIR")
	if dir == "" {
		return true
	}
	real, _, ok := m.look(dir)
	if !ok {
		return false
	}
	byPath := map[string]mount{}
	for _, one := range p.mounts(m) {
		byPath[one.path] = one
	}
	if _, own := byPath[real]; own {
		return byPath[real].mode == writable || byPath[real].mode == private
	}
	return modeOf(byPath, real) == writable // below a private folder it does not exist
}

// thisMachine looks at the real file system.
func thisMachine(home string) machine {
	look := func(path string) (string, bool, bool) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", false, false
		}
		info, err := os.Stat(real)
		return real, err == nil && info.IsDir(), err == nil
	}
	list := func(dir string) (paths []string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
		return paths
	}
	return machine{home, unixSockets(), look, list}
}

// unixSockets returns the paths of the sockets that processes of this network namespace listen on.
func unixSockets() (paths []string) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		// Num RefCount Protocol Flags Type St Inode Path
		fields := strings.SplitN(strings.Join(strings.Fields(lines.Text()), " "), " ", 8)
		if len(fields) == 8 && strings.HasPrefix(fields[7], "/") && !seen[fields[7]] {
			seen[fields[7]] = true
			paths = append(paths, fields[7])
		}
	}
	return paths
}

// checkTime is the timeout of the check.
const checkTime = 10 * time.Second

// machineSupport finds out once what this machine offers, by starting a program in a sandbox.
var machineSupport = sync.OnceValue(func() support {
	why := "bubblewrap (bwrap) is not installed"
	path, err := exec.LookPath("bwrap")
	if err == nil {
		if err = tryBwrap(path); err == nil {
			return support{bwrap: path}
		}
		why = fmt.Sprintf("bubblewrap (%s) does not work here: %v", path, err)
	}
	version := landlockVersion()
	if version >= landlockScopes {
		return support{without: why}
	}
	return support{err: swarm.Errorf(swarm.NotFound, "`sandbox: os` cannot be had on this machine: %s, and the kernel's Landlock is %s",
		why, landlockName(version)).
		WithHint("%s; in a container, allow user namespaces; Landlock needs Linux 6.12", installBwrap)}
})

func tryBwrap(path string) error {
	ctx, stop := context.WithTimeout(context.Background(), checkTime)
	defer stop()
	args := append(slices.Clone(namespaces), "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--remount-ro", "/proc", "--tmpfs", "/tmp", "--", "/bin/true")
	said, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if text := strings.TrimSpace(string(said)); err != nil && text != "" {
		return errors.New(text)
	}
	return err
}
