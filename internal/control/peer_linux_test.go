package control

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("CONTROL_TEST_DIAL"); address != "" { // see peer
		switch os.Getenv("CONTROL_TEST_HIDE") {
		case "process":
			process.ForbidInspection()
		case "thread":
			dialInThread(address)
			os.Exit(0)
		}
		if conn, err := net.Dial("tcp", address); err == nil {
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = conn.Close()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// peer returns our end of a connection from a process that this one started.
func peer(t testing.TB) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "CONTROL_TEST_DIAL="+l.Addr().String())
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); _ = in.Close(); _ = child.Wait() })
	return conn
}

// A process below a driver is refused. So is none below a process that only has a driver's pid, and
// none beside the driver.
func TestAPeerInsideATurnIsRefused(t *testing.T) {
	h, err := statedir.At(filepath.Join(t.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	inside, self := peer(t), process.Self()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	own, err := l.Accept() // the other end is the driver's
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, c := range []struct {
		name    string
		conn    net.Conn
		started uint64
		refused bool
	}{
		{"inside", inside, self.Started, true},
		{"inside, by a mark of an earlier version", inside, 0, true},
		{"below a process with a driver's pid", inside, self.Started + 1, false},
		{"of the driver", own, self.Started, false},
	} {
		unmark, err := h.MarkLive("r", 1, c.started, "")
		if err != nil {
			t.Fatal(err)
		}
		err = CheckPeer(h, c.conn)
		if c.refused != (swarm.KindOf(err) == swarm.Denied) || !c.refused && err != nil || c.refused && !strings.Contains(err.Error(), "inside an agent's turn") {
			t.Errorf("%s: %v", c.name, err)
		}
		unmark()
	}
	if err := CheckPeer(h, inside); err != nil {
		t.Errorf("without a driver: %v", err)
	}
}

// dialInThread dials in a thread that has open files of its own, and is not the first.
func dialInThread(address string) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		ended := make(chan struct{})
		go func() { dialInThread(address); close(ended) }()
		<-ended
		return
	}
	to := netip.MustParseAddrPort(address)
	if unix.Unshare(unix.CLONE_FILES) != nil {
		return
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil && unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}) == nil {
		_, _ = unix.Read(0, make([]byte, 1)) // until standard input ends
	}
}

// programPeer returns our end of a connection from a program of a run.
func programPeer(t *testing.T, env ...string) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	job := process.Job{Path: os.Args[0], Argv: os.Args[:1], Talk: true, Run: "r", Turn: "t/1/1",
		Env: append(append(os.Environ(), "CONTROL_TEST_DIAL="+l.Addr().String()), env...)}
	program, err := job.Start()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _, _, _ = program.Wait(t.Context()); close(ended) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); program.CloseInput(); <-ended })
	return conn
}

// The driver of a program may be killed, so no process of the state folder drives a run here.
func TestAProgramIsRefusedWithoutItsDriver(t *testing.T) {
	h, err := statedir.At(filepath.Join(t.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	person := peer(t)
	for _, env := range []string{"", "CONTROL_TEST_HIDE=process", "CONTROL_TEST_HIDE=thread"} {
		if err := CheckPeer(h, programPeer(t, env)); swarm.KindOf(err) != swarm.Denied {
			t.Errorf("a program with %q: %v", env, err)
		}
		if err := CheckPeer(h, person); err != nil {
			t.Errorf("a person, beside a program with %q: %v", env, err)
		}
	}
}

// A client that closes its connection after the request could be an agent.
func TestAClosedConnectionIsRefused(t *testing.T) {
	h, err := statedir.At(filepath.Join(t.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Skip(err)
		}
		defer l.Close()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := CheckPeer(h, conn); err != nil {
			t.Errorf("%s, open: %v", at, err)
		}
		_ = client.Close()
		_, _ = io.Copy(io.Discard, conn) // until the end has come
		if err := CheckPeer(h, conn); swarm.KindOf(err) != swarm.Denied {
			t.Errorf("%s, closed: %v", at, err)
		}
	}
}

func BenchmarkCheckPeer(b *testing.B) {
	h, err := statedir.At(filepath.Join(b.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		b.Fatal(err)
	}
	unmark, err := h.MarkLive("r", 1, process.Self().Started, "")
	if err != nil {
		b.Fatal(err)
	}
	defer unmark()
	for range 20 {
		peer(b)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := CheckPeer(h, conn); err != nil {
			b.Fatal(err)
		}
	}
}
