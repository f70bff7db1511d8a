package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"swarm/internal/npmtest"
)

// A camp is where the climber starts: a home folder with secrets, a workspace, and what lies outside.
// Its files belong to one user.
type camp struct {
	*testing.T
	uid     int
	dir     string
	home    string
	work    string
	summit  summit
	visited [5]atomic.Int64 // by server: what reached it
}

const mark = "canary8d1c"

// TestSandboxScripts runs scripts in which agents are confined.
func TestSandboxScripts(t *testing.T) { runScripts(t, "sandbox", pathWithBwrap(t, os.Getenv("PATH"))) }

// TestRealSandboxScripts runs scripts in which a real coding agent is confined, where it is installed.
func TestRealSandboxScripts(t *testing.T) {
	runInBoth(t, "real-sandbox", pathWith(t, npmtest.Claude, "claude", npmtest.Codex, "codex"))
}

// TestRealMoreSandboxScripts are those whose programs take seconds to start.
func TestRealMoreSandboxScripts(t *testing.T) {
	runInBoth(t, "real-more-sandbox", pathWith(t, npmtest.Gemini, "gemini", npmtest.OpenCode, "opencode"))
}

// runInBoth runs scripts with bubblewrap and with Landlock.
func runInBoth(t *testing.T, folder, path string) {
	t.Run("bubblewrap", func(t *testing.T) { runScripts(t, folder, pathWithBwrap(t, path)) })
	t.Run("landlock", func(t *testing.T) { runScripts(t, folder, pathWithoutBwrap(t, path)) })
}

func pathWithBwrap(t *testing.T, path string) string {
	return filepath.Dir(npmtest.Bubblewrap(t)) + string(filepath.ListSeparator) + path
}

// TestLandlockScripts runs scripts in which agents are confined without bubblewrap.
func TestLandlockScripts(t *testing.T) {
	runScripts(t, "landlock", pathWithoutBwrap(t, os.Getenv("PATH")))
}

func pathWithoutBwrap(t *testing.T, path string) string {
	needLandlock(t)
	broken := t.TempDir()
	if err := breakBwrap(broken); err != nil {
		t.Fatal(err)
	}
	return broken + string(filepath.ListSeparator) + path
}

// needLandlock skips the test where the kernel's Landlock does not suffice.
func needLandlock(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it starts sandboxes, and -short does not")
	}
	if v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 || v < 6 {
		t.Skip("skipped: the kernel has no Landlock, or an old one")
	}
}

// breakBwrap puts a bubblewrap that does not work into a folder, which hides one that does.
func breakBwrap(dir string) error {
	return os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\necho no namespaces here >&2\nexit 1\n"), 0o755)
}

// otherUser is a user without rights.
const otherUser = 65534

// users are the users as whom the test can run.
func users() map[string]int {
	if os.Getuid() != 0 {
		return map[string]int{"user": os.Getuid()}
	}
	return map[string]int{"root": 0, "nobody": otherUser}
}

// eachSandbox runs a test with bubblewrap and with Landlock, as each user. bwrap is "" for Landlock.
func eachSandbox(t *testing.T, test func(t *testing.T, uid int, bwrap string)) {
	for name, uid := range users() {
		t.Run("bubblewrap/"+name, func(t *testing.T) { test(t, uid, npmtest.Bubblewrap(t)) })
		t.Run("landlock/"+name, func(t *testing.T) {
			needLandlock(t)
			test(t, uid, "")
		})
	}
}

// newCamp makes a camp in which bubblewrap is bwrap; "" = none works.
func newCamp(t *testing.T, uid int, bwrap string) *camp {
	t.Helper()
	// Not below /tmp: what lies there is hidden for another reason.
	dir, err := os.MkdirTemp("/var/lib", "swarm-test-") //nolint:usetesting // t.TempDir is below /tmp
	if err != nil {
		dir, err = os.MkdirTemp(os.Getenv("HOME"), "swarm-test-") //nolint:usetesting // the same
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeCamp(t, dir) })
	c := &camp{T: t, uid: uid, dir: dir, home: dir + "/home", work: dir + "/home/work"}
	for path, text := range map[string]string{
		"home/.ssh/id": mark, "home/.aws/credentials": mark, "home/.netrc": mark, "home/.claude/x": mark, "home/plans/x": mark,
		"home/.profile": "", "home/work/notes": "", "home/work/.git/hooks/pre-commit": "", "home/work/.git/config": "",
	} {
		path = filepath.Join(dir, path)
		c.must(os.MkdirAll(filepath.Dir(path), 0o755))
		c.must(os.WriteFile(path, []byte(text), 0o644))
	}
	c.must(os.Mkdir(dir+"/bin", 0o755))
	self, err := os.Executable()
	c.must(err)
	for name, from := range map[string]string{"swarm": self, "climber": self} {
		c.must(copyProgram(from, filepath.Join(dir, "bin", name)))
	}
	if bwrap == "" {
		c.must(breakBwrap(dir + "/bin"))
	} else {
		c.must(copyProgram(bwrap, dir+"/bin/bwrap"))
	}
	c.must(os.Chmod(dir, 0o755))
	c.must(filepath.Walk(c.home, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, -1)
	}))
	return c
}

// removeCamp deletes the camp, unless something is mounted below it. A mount may lead anywhere, and
// deleting through it would delete what it leads to.
func removeCamp(t *testing.T, dir string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), " "+dir+"/") {
		t.Errorf("%s is left: something may be mounted below it (%v)", dir, err)
		return
	}
	_ = os.RemoveAll(dir)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

func (c *camp) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// command makes a command of the camp's user.
func (c *camp) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.work
	cmd.Env = []string{
		"PATH=" + c.dir + "/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + c.home, "SWARM_HOME=" + c.home + "/state",
		"NO_COLOR=1", "GORACE=atexit_sleep_ms=0", "CANARY=" + mark,
	}
	if c.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.uid), Gid: uint32(c.uid)}}
	} else if c.uid == 0 {
		// What root mounts ends with its program, and is mounted for no other process.
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	return cmd
}

// serve counts what reaches a listener, and answers each line.
func (c *camp) serve(n int, l net.Listener) {
	c.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.visited[n].Add(1)
			go func() {
				defer conn.Close()
				line := make([]byte, 4096)
				if _, err := conn.Read(line); err == nil {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				}
			}()
		}
	}()
}

// open opens everything outside that the climber can reach for.
func (c *camp) open() {
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		c.must(err)
		return l
	}
	tcp, listed := listen("tcp", "127.0.0.1:0"), listen("tcp", "127.0.0.1:0")
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	c.must(err)
	c.Cleanup(func() { _ = udp.Close() })
	go func() {
		for buf := make([]byte, 100); ; {
			_, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			c.visited[1].Add(1)
			_, _ = udp.WriteTo([]byte("ok\n"), from)
		}
	}()
	datagram, err := net.ListenPacket("unixgram", c.home+"/log.sock")
	c.must(err)
	c.must(os.Chmod(c.home+"/log.sock", 0o777))
	c.Cleanup(func() { _ = datagram.Close() })
	go func() {
		for buf := make([]byte, 100); ; {
			if _, _, err := datagram.ReadFrom(buf); err != nil {
				return
			}
			c.visited[4].Add(1)
		}
	}()
	victim := c.command("sh", "-c", "echo up; exec sleep 1000 # "+mark)
	victim.Args[2] = "echo up; read end # " + mark
	hold, err := victim.StdinPipe()
	c.must(err)
	up, err := victim.StdoutPipe()
	c.must(err)
	c.must(victim.Start())
	c.Cleanup(func() { _ = hold.Close(); _ = victim.Wait() })
	_, err = up.Read(make([]byte, 3)) // its name is its own from now on
	c.must(err)
	shared, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o666|unix.IPC_CREAT)
	c.must(err)
	c.Cleanup(func() { _, _ = unix.SysvShmCtl(shared, unix.IPC_RMID, nil) })
	c.summit = summit{
		Home: c.home, State: c.home + "/state", Victim: victim.Process.Pid, Port: tcp.Addr().(*net.TCPAddr).Port,
		UDP: udp.LocalAddr().(*net.UDPAddr).Port, Listed: listed.Addr().(*net.TCPAddr).Port,
		Socket: c.home + "/docker.sock", Datagram: c.home + "/log.sock", Abstract: fmt.Sprintf("@swarm-test-%d-%d", os.Getpid(), c.uid), Shared: shared,
		Mark: mark,
	}
	path, abstract := listen("unix", c.summit.Socket), listen("unix", c.summit.Abstract)
	c.must(os.Chmod(c.summit.Socket, 0o777))
	c.serve(0, tcp)
	c.serve(2, path)
	c.serve(3, abstract)
	go func() { // not counted
		for {
			conn, err := listed.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 4096)); err == nil {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				}
			}()
		}
	}()
	c.Cleanup(func() { _ = listed.Close() })
	text, err := json.Marshal(c.summit)
	c.must(err)
	c.must(os.WriteFile(c.work+"/target.json", text, 0o644))
}

// up runs a team of one climber and another agent, and returns what the climber says.
func (c *camp) up(sandbox string) (out, works, broken []string) {
	c.Helper()
	file := "providers:\n  p:\n    kind: command\n    command: [climber]\n" + sandbox +
		"  q: {kind: command, command: [cat]}\n" +
		"agents:\n  climber: {provider: p}\n  other: {provider: q}\nedges: [climber -> other]\n" +
		"tasks:\n  climb: {agent: climber, prompt-string: Get out.}\n  rest: {agent: other, prompt-string: Rest., depends_on: climb}\n"
	c.must(os.WriteFile(c.work+"/c.yaml", []byte(file), 0o644))
	c.must(os.Chown(c.work+"/c.yaml", c.uid, -1))
	cmd := c.command(c.dir+"/bin/swarm", "up", "-f", "c.yaml", "--json")
	var said, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &stderr
	if err := cmd.Run(); err != nil {
		c.Fatalf("%v\n%s\n%s", err, said.String(), stderr.String())
	}
	text, err := c.command(c.dir+"/bin/swarm", "out", "@last", "climb").Output()
	c.must(err)
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch kind {
		case "out":
			out = append(out, rest)
		case "works":
			works = append(works, rest)
		case "broken":
			broken = append(broken, rest)
		}
	}
	slices.Sort(works)
	return out, works, broken
}

// traces are the marks that the climber has left outside.
func (c *camp) traces() (left []string) {
	for _, path := range []string{c.home + "/out-" + mark, c.home + "/state/out-" + mark, "/tmp/out-" + mark, "/dev/shm/out-" + mark} {
		if _, err := os.Stat(path); err == nil {
			left = append(left, path)
			_ = os.Remove(path)
		}
	}
	if text, _ := os.ReadFile(c.home + "/.profile"); len(text) > 0 {
		left = append(left, ".profile")
		c.must(os.WriteFile(c.home+"/.profile", nil, 0o644))
	}
	c.must(os.Chmod(c.home+"/.profile", 0o644))
	for i, name := range []string{"tcp", "udp", "unix", "abstract", "datagram"} {
		if c.visited[i].Swap(0) > 0 {
			left = append(left, name)
		}
	}
	return left
}

func TestNobodyClimbsOutOfASandbox(t *testing.T) {
	eachSandbox(t, func(t *testing.T, uid int, bwrap string) {
		c := newCamp(t, uid, bwrap)
		c.open()
		if uid != 0 { // as root the climber must never be free, whatever it tries
			t.Run("without a sandbox", func(t *testing.T) {
				out, _, _ := c.up("")
				for _, w := range ways {
					if w.control && !slices.Contains(out, w.name) && !strings.HasPrefix(w.name, "leave") {
						t.Errorf("the climber does not get out by: %s", w.name)
					}
				}
				if left := c.traces(); len(left) < 9 {
					t.Errorf("outside there is only %v", left)
				}
			})
		}
		const hide = "hide: [~/plans]"
		for _, s := range []struct {
			network      string
			left, closed []string
		}{
			{network: "none", closed: []string{"reach a listed server", "reach a server by a proxy"}},
			{network: fmt.Sprintf(`["127.0.0.1:%d"]`, c.summit.Listed)},
			{network: "all", left: []string{"tcp", "udp"}, closed: []string{"reach a server by a proxy"}},
		} {
			if bwrap == "" && s.network != "all" {
				continue // refused: see the script landlock
			}
			t.Run("network "+s.network, func(t *testing.T) {
				out, works, broken := c.up("    sandbox: {kind: os, " + hide + ", network: " + s.network + "}\n")
				for _, w := range ways {
					open := w.open == online && s.network == "all" || w.open == landlock && bwrap == ""
					if is := slices.Contains(out, w.name); is && !open {
						t.Errorf("the climber gets out: %s", w.name)
					} else if !is && open && w.control {
						t.Errorf("docs say that it is left open, and it is not: %s", w.name)
					}
				}
				if left := c.traces(); !slices.Equal(left, s.left) {
					t.Errorf("outside there is %v", left)
				}
				broken = slices.DeleteFunc(broken, func(what string) bool {
					return slices.ContainsFunc(s.closed, func(name string) bool { return strings.HasPrefix(what, name) })
				})
				if len(broken) > 0 || len(works)+len(s.closed) != 6 {
					t.Errorf("inside, %q do not work, and %q do", broken, works)
				}
			})
		}
	})
}

// A program in a sandbox ends with the driver, also when the driver is killed, and takes everything
// with it that it has started.
func TestASandboxEndsWithItsDriver(t *testing.T) {
	eachSandbox(t, func(t *testing.T, uid int, bwrap string) {
		c := newCamp(t, uid, bwrap)
		fifo := c.work + "/alive"
		c.must(unix.Mkfifo(fifo, 0o600))
		c.must(os.Chown(fifo, uid, -1))
		file := "providers:\n  p: {kind: command, sandbox: os, command: [sh, -c, \"exec > alive; echo up; setsid sleep 1000 & sleep 1000\"]}\n" +
			"tasks:\n  t: {prompt-string: Wait.}\n"
		c.must(os.WriteFile(c.work+"/c.yaml", []byte(file), 0o644))
		temp := c.home + "/temp" // where Landlock's way has its temporary files
		c.must(os.Mkdir(temp, 0o700))
		c.must(os.Chown(temp, uid, -1))
		driver := c.command(c.dir+"/bin/swarm", "up", "-f", "c.yaml")
		driver.Env = append(driver.Env, "TMPDIR="+temp)
		c.must(driver.Start())
		alive, err := os.Open(fifo) // when the program has opened it too
		c.must(err)
		defer alive.Close()
		_, err = alive.Read(make([]byte, 3))
		c.must(err)
		changes, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		c.must(err)
		defer func() { _ = unix.Close(changes) }()
		_, err = unix.InotifyAddWatch(changes, temp, unix.IN_DELETE)
		c.must(err)
		c.must(driver.Process.Kill())
		_ = driver.Wait()
		if _, err := io.ReadAll(alive); err != nil { // it ends when no process holds the other end
			t.Error(err)
		}
		for {
			left, err := filepath.Glob(temp + "/swarm-sandbox-*")
			c.must(err)
			if len(left) == 0 {
				break
			}
			_, err = unix.Read(changes, make([]byte, 4096)) // until one is deleted
			c.must(err)
		}
	})
}
