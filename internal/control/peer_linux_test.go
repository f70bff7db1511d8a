package control

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("CONTROL_TEST_DIAL"); address != "" { // see peer
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
		unmark, err := h.MarkLive("r", 1, c.started)
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

func BenchmarkCheckPeer(b *testing.B) {
	h, err := statedir.At(filepath.Join(b.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		b.Fatal(err)
	}
	unmark, err := h.MarkLive("r", 1, process.Self().Started)
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
