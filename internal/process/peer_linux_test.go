package process

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarm"
)

// A process whose first thread has ended looks dead, but lives.
func TestAProcessWithoutItsFirstThreadIsFound(t *testing.T) {
	j := Job{Path: os.Args[0], Argv: os.Args[:1], Env: append(os.Environ(), leaderless+"=1"), Talk: true, Run: swarm.RunID(t.Name())}
	p, err := j.Start()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _, _, _ = p.Wait(t.Context()); close(ended) }()
	for statOf(p.PID()).state != "Z" {
		time.Sleep(time.Millisecond)
	}
	marks := markSet{limit: limitMarkOf(j.Run, os.Getpid()), env: []string{"no such variable"}}
	if !isMarked(p.PID(), marks) {
		t.Error("it is taken for dead")
	}
	p.CloseInput()
	<-ended
	if isMarked(p.PID(), marks) {
		t.Error("it has ended, and is taken for alive")
	}
}

func TestPeerIsTheProcessAtTheOtherEnd(t *testing.T) {
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"tcp", "127.0.0.2:0"}, {"tcp", "[::]:0"}, {"unix", filepath.Join(t.TempDir(), "s")}} {
		t.Run(at[0]+" "+at[1], func(t *testing.T) {
			l, err := net.Listen(at[0], at[1])
			if err != nil {
				t.Skip(err)
			}
			defer l.Close()
			if _, port, err := net.SplitHostPort(l.Addr().String()); err == nil && at[1] == "[::]:0" {
				at[1] = "127.0.0.1:" + port // an IPv4 client of an IPv6 socket
			} else {
				at[1] = l.Addr().String()
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "PROCESS_TEST_DIAL="+at[0]+" "+at[1])
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if pid, err := Peer(conn, nil); pid != cmd.Process.Pid || err != nil {
				t.Errorf("the peer is %d, %v, not %d", pid, err, cmd.Process.Pid)
			}
			if pid, err := Peer(conn, []int{os.Getpid()}); at[0] == "tcp" && err == nil {
				t.Errorf("the peer is %d, which was not searched for", pid)
			}
			in.Close()
			_ = cmd.Wait()
			if pid, err := Peer(conn, nil); at[0] == "tcp" && err == nil {
				t.Errorf("%d holds the end of a process that is gone", pid)
			}
		})
	}
}

func BenchmarkPeer(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	near, _ := net.Dial("tcp", l.Addr().String())
	defer near.Close()
	far, _ := l.Accept()
	defer far.Close()
	for b.Loop() {
		if _, err := Peer(far, []int{os.Getpid()}); err != nil {
			b.Fatal(err)
		}
	}
}

// leaderless names a variable that has this program end its first thread and live on in another.
const leaderless = "PROCESS_TEST_LEADERLESS"

func init() {
	if os.Getenv(leaderless) != "" {
		runtime.LockOSThread() // to the first thread
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(leaderless) != "" {
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	if where := os.Getenv("PROCESS_TEST_DIAL"); where != "" {
		network, address, _ := strings.Cut(where, " ")
		conn, err := net.Dial(network, address)
		if err == nil {
			defer conn.Close()
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
