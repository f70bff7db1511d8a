package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The climber is an agent's program that tries to get out of its sandbox. A way that leads out is
// printed; the outside says what it saw of it.
//
// Every way is harmless if it succeeds, also for root: it touches files, folders and processes of the
// test only, opens what belongs to the machine for reading, and never mounts or unmounts anything
// that is not an empty folder of the test.

func init() { programs["climber"] = climb }

// A summit is what lies outside, for the climber to reach. It reads it from a file in its workspace.
type summit struct {
	Home     string // of the user: .ssh/id, .aws/credentials, .claude/x
	State    string // our state folder
	Victim   int    // a process of the same user
	Port     int    // of a server on the loopback interface that no list names
	UDP      int
	Listed   int    // of one that the list names
	Socket   string // a Unix socket outside of the workspace
	Datagram string // one for datagrams
	Abstract string // a Unix socket without a path
	Shared   int    // id of a System V shared memory segment
	Mark     string // a text that is in the secrets, and in the names of what the climber makes
}

// A way is one try to get out. control says that every user gets out by it without a sandbox. open
// says what leaves it open.
type way struct {
	name    string
	control bool
	open    opening
	try     func(t summit) error // nil = it led out
}

type opening int

const (
	never    opening = iota
	online           // with `network: all`
	landlock         // with Landlock instead of bubblewrap: docs/providers.md says so
)

var errClosed = errors.New("closed")

func readsMark(path string, t summit) error {
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), t.Mark) {
		err = errClosed
	}
	return err
}

// opens opens a file for writing, and writes nothing.
func opens(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func writes(path string) error { return os.WriteFile(path, []byte("out"), 0o644) }

func shell(t summit, script string) error {
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err == nil && !strings.Contains(string(out), t.Mark) {
		err = errClosed
	}
	return err
}

func dials(network, address string) error {
	c, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Write([]byte("out\n")); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = bufio.NewReader(c).ReadString('\n')
	return err
}

// readOK reads an answer, which must have the status 200.
func readOK(c net.Conn) error {
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errClosed
	}
	return nil
}

// tunnels asks the proxy of the sandbox for a connection.
func tunnels(address string) error {
	proxy := strings.TrimPrefix(os.Getenv("HTTPS_PROXY"), "http://")
	if proxy == "" {
		return errClosed
	}
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	return readOK(c)
}

var ways = []way{
	{"an inherited descriptor", false, never, func(t summit) error {
		fds, err := os.ReadDir("/proc/self/fd")
		for _, fd := range fds {
			// The Go runtime of the climber itself opens the others.
			to, _ := os.Readlink("/proc/self/fd/" + fd.Name())
			if n, _ := strconv.Atoi(fd.Name()); n > 2 && to != "" && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
				return nil
			}
		}
		return errors.Join(err, errClosed)
	}},
	{"read ~/.ssh", true, never, func(t summit) error { return readsMark(t.Home+"/.ssh/id", t) }},
	{"list ~/.ssh", true, never, func(t summit) error {
		names, err := os.ReadDir(t.Home + "/.ssh")
		if err == nil && len(names) == 0 {
			err = errClosed
		}
		return err
	}},
	{"read ~/.aws", true, never, func(t summit) error { return readsMark(t.Home+"/.aws/credentials", t) }},
	{"read a file of secrets", true, never, func(t summit) error { return readsMark(t.Home+"/.netrc", t) }},
	{"read another program's login", true, never, func(t summit) error { return readsMark(t.Home+"/.claude/x", t) }},
	{"read the state folder", true, never, func(t summit) error {
		names, err := os.ReadDir(t.State)
		if err == nil && len(names) == 0 {
			err = errClosed
		}
		return err
	}},
	{"read what hide names", true, never, func(t summit) error { return readsMark(t.Home+"/plans/x", t) }},
	{"write to the home folder", true, never, func(t summit) error { return writes(t.Home + "/out-" + t.Mark) }},
	{"change a start file", true, never, func(t summit) error {
		f, err := os.OpenFile(t.Home+"/.profile", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(t.Mark + "\n")
		return errors.Join(err, f.Close())
	}},
	{"change the mode of a file", true, landlock, func(t summit) error { return os.Chmod(t.Home+"/.profile", 0o640) }},
	{"change the compose file", true, landlock, func(t summit) error { return opens("c.yaml") }},
	{"change a hook of git", true, landlock, func(t summit) error { return opens(".git/hooks/pre-commit") }},
	{"move a file out", true, never, func(t summit) error {
		return errors.Join(writes("moved"), os.Rename("moved", t.Home+"/out-"+t.Mark))
	}},
	{"write to the state folder", true, never, func(t summit) error { return writes(t.State + "/out-" + t.Mark) }},
	{"write to /etc", false, never, func(t summit) error {
		fd, err := unix.Open("/etc", unix.O_TMPFILE|unix.O_WRONLY, 0o600) // a file without a name
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}},
	{"leave files in /tmp", true, never, func(t summit) error { return leaves("/tmp/out-" + t.Mark) }},
	{"leave files in /dev/shm", true, never, func(t summit) error { return leaves("/dev/shm/out-" + t.Mark) }},
	{"through a symbolic link", true, never, func(t summit) error {
		_ = os.Symlink(t.Home+"/.ssh", "way")
		return readsMark("way/id", t)
	}},
	{"through a link of a link of /proc", true, never, func(t summit) error {
		_ = os.Symlink("/proc/self/root"+t.Home, "way2")
		return readsMark("way2/.ssh/id", t)
	}},
	{"through /proc/self/root", true, never, func(t summit) error { return readsMark("/proc/self/root"+t.Home+"/.ssh/id", t) }},
	{"through /proc/1/root", false, never, func(t summit) error { return readsMark("/proc/1/root"+t.Home+"/.ssh/id", t) }},
	{"through the root of another process", true, never, func(t summit) error {
		return readsMark(fmt.Sprintf("/proc/%d/root%s/.ssh/id", t.Victim, t.Home), t)
	}},
	{"through a hard link", true, never, func(t summit) error { return os.Link(t.Home+"/.profile", "hard") }},
	{"by a mount", false, never, func(t summit) error { // of one empty folder on another
		err := unix.Mount("from", "onto", "", unix.MS_BIND, "")
		if err == nil {
			_ = unix.Unmount("onto", unix.MNT_DETACH)
		}
		return err
	}},
	{"by unmounting the mask", false, never, func(t summit) error {
		return errors.Join(unix.Unmount(t.Home+"/.ssh", unix.MNT_DETACH), readsMark(t.Home+"/.ssh/id", t))
	}},
	{"by unmounting the mask in namespaces of its own", false, never, func(t summit) error {
		return shell(t, "unshare -Urm sh -c 'umount -l "+t.Home+"/.ssh && cat "+t.Home+"/.ssh/id'")
	}},
	// Without a mapping of users, which a read-only /proc prevents: it has all capabilities nevertheless.
	{"by a user namespace", true, never, func(t summit) error { return shell(t, "unshare -U echo "+t.Mark) }},
	{"by remounting", false, never, func(t summit) error { // the mask, which is a mount in a sandbox only
		return unix.Mount("", t.Home+"/.ssh", "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}},
	{"by a chroot", false, never, func(t summit) error { return shell(t, "chroot / echo "+t.Mark) }},
	{"by joining the namespace of another process", false, never, func(t summit) error {
		return shell(t, fmt.Sprintf("nsenter -t %d -m cat %s/.ssh/id", t.Victim, t.Home))
	}},
	{"by a disk", false, never, func(t summit) error {
		for _, disk := range []string{"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mem", "/dev/kmsg"} {
			if f, err := os.Open(disk); err == nil {
				f.Close()
				return nil
			}
		}
		return errClosed
	}},
	{"see another process", true, landlock, func(t summit) error {
		return readsMark(fmt.Sprintf("/proc/%d/cmdline", t.Victim), t)
	}},
	{"read another process's environment", true, never, func(t summit) error {
		return readsMark(fmt.Sprintf("/proc/%d/environ", t.Victim), t)
	}},
	{"read the driver's environment", false, never, func(t summit) error {
		return readsMark("/proc/"+os.Getenv("SWARM_DRIVER")+"/environ", t)
	}},
	{"signal another process", true, never, func(t summit) error { return syscall.Kill(t.Victim, 0) }},
	{"signal the driver", true, never, func(t summit) error {
		pid, _ := strconv.Atoi(os.Getenv("SWARM_DRIVER"))
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && string(name) != "swarm\n" {
			err = errClosed
		}
		return errors.Join(err, syscall.Kill(pid, 0))
	}},
	{"trace another process", true, never, func(t summit) error {
		err := unix.PtraceSeize(t.Victim)
		if err == nil {
			_ = unix.PtraceDetach(t.Victim)
		}
		return err
	}},
	{"read another process's memory", false, never, func(t summit) error {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.Victim))
		if err == nil {
			f.Close()
		}
		return err
	}},
	{"change another process's limits", true, never, func(t summit) error {
		return unix.Prlimit(t.Victim, unix.RLIMIT_CORE, nil, &unix.Rlimit{})
	}},
	{"attach shared memory", true, never, func(t summit) error {
		_, err := unix.SysvShmAttach(t.Shared, 0, 0)
		return err
	}},
	{"open the terminal", false, never, func(t summit) error {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err == nil {
			f.Close()
		}
		return err
	}},
	{"change the kernel's settings", false, never, func(t summit) error { return opens("/proc/sys/kernel/core_pattern") }},
	{"press the kernel's keys", false, never, func(t summit) error { return opens("/proc/sysrq-trigger") }},
	{"read the keys of the session", true, never, func(t summit) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		return err
	}},
	{"gain rights by a program", true, never, func(t summit) error {
		status, err := os.ReadFile("/proc/self/status")
		if err == nil && strings.Contains(string(status), "NoNewPrivs:\t1") {
			err = errClosed
		}
		return err
	}},
	{"connect to a port of this machine", true, online, func(t summit) error { return dials("tcp", fmt.Sprint("127.0.0.1:", t.Port)) }},
	{"send a datagram to this machine", true, online, func(t summit) error { return dials("udp", fmt.Sprint("127.0.0.1:", t.UDP)) }},
	{"connect through the proxy", false, never, func(t summit) error { return tunnels(fmt.Sprint("127.0.0.1:", t.Port)) }},
	{"connect through the proxy by another name", false, never, func(t summit) error { return tunnels(fmt.Sprint("localhost:", t.Listed)) }},
	{"connect through the proxy to a host that is not listed", false, never, func(t summit) error { return tunnels("example.org:443") }},
	{"connect to a Unix socket", true, never, func(t summit) error { return dials("unix", t.Socket) }},
	{"connect to an abstract Unix socket", true, never, func(t summit) error { return dials("unix", t.Abstract) }},
	{"connect a pair of sockets to a Unix socket", true, never, func(t summit) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
		return errors.Join(unix.Connect(pair[0], &unix.SockaddrUnix{Name: t.Datagram}), unix.Sendto(pair[0], []byte("out"), 0, nil))
	}},
	{"connect to Docker", false, never, func(t summit) error {
		for _, path := range []string{"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"} {
			if c, err := net.Dial("unix", path); err == nil {
				c.Close()
				return nil
			}
		}
		return errClosed
	}},
	{"talk to the host of a virtual machine", false, never, func(t summit) error {
		fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}},
}

// leaves makes a file that the outside looks for.
func leaves(path string) error {
	if err := writes(path); err != nil {
		return err
	}
	return errClosed // whether it led out, the outside knows
}

func climb() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	var t summit
	text, err := os.ReadFile("target.json")
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err == nil {
		err = errors.Join(os.MkdirAll("from", 0o755), os.MkdirAll("onto", 0o755))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, w := range ways {
		if err := w.try(t); err == nil {
			fmt.Println("out:", w.name)
		}
	}
	for name, works := range map[string]error{
		"write in the workspace":    writes("written"),
		"write a temporary file":    writes(os.TempDir() + "/mine"),
		"read the machine":          readable("/etc/passwd"),
		"reach a listed server":     dials("tcp", fmt.Sprint("127.0.0.1:", t.Listed)),
		"reach a server by a proxy": getsByProxy(fmt.Sprintf("http://127.0.0.1:%d/", t.Listed)),
		"send a message":            exec.Command("swarm", "send", "@other", "hello").Run(),
	} {
		if works == nil {
			fmt.Println("works:", name)
		} else {
			fmt.Println("broken:", name, works)
		}
	}
}

func readable(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// getsByProxy sends a plain HTTP request to the proxy, as clients do that use http_proxy.
func getsByProxy(url string) error {
	proxy := strings.TrimPrefix(os.Getenv("http_proxy"), "http://")
	if proxy == "" {
		return errClosed
	}
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", url)
	return readOK(c)
}
