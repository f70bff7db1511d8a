package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/storetest"
)

// These tests start the test program again as another process, which does one of these things with
// a log.
var children = map[string]func(l *Log) error{
	"write":     childWrites,
	"own":       childOwns,
	"get stuck": childGetsStuck,
	"fill":      childFills,
	"mail":      childSendsMail,
}

func TestMain(m *testing.M) {
	do := os.Getenv("SWARM_TEST_CHILD")
	if do == "" {
		os.Exit(m.Run())
	}
	l, err := Open(os.Getenv("SWARM_TEST_LOG"))
	if err == nil {
		err = children[do](l)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// A child is such a process.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
}

func start(t *testing.T, do, path string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SWARM_TEST_CHILD="+do, "SWARM_TEST_LOG="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &child{t, cmd, in, bufio.NewScanner(out)}
}

// says returns the child's next line.
func (c *child) says() string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("the child says nothing more: %v", c.lines.Err())
	}
	if line := c.lines.Text(); strings.HasPrefix(line, "error:") {
		c.t.Fatal("the child: ", line)
	}
	return c.lines.Text()
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	must(c.t, syscall.Kill(c.cmd.Process.Pid, s))
}

// stops waits until the child is stopped.
func (c *child) stops() {
	c.t.Helper()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		must(c.t, err)
		if !status.Stopped() {
			c.t.Fatalf("the child is not stopped but %v", status)
		}
		return
	}
}

func create(t *testing.T) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.db")
	l, err := Create(path)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l, path
}

// childWrites appends as fast as it can and prints each number when it is acknowledged.
func childWrites(l *Log) error {
	for i := 0; ; i++ {
		lazy := swarm.Batch{Lazy: true, Events: []swarm.Event{{Kind: swarm.Notice, Agent: "lazy"}}}
		if _, err := l.Append(context.Background(), lazy); err != nil {
			return err
		}
		b := swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice, Key: fmt.Sprintf("%d/%d", os.Getpid(), i)}, {Kind: swarm.Notice}},
			Bodies: [][]byte{fmt.Appendf(nil, "text %d/%d", os.Getpid(), i)}}
		if _, err := l.Append(context.Background(), b); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func TestAKilledWriterLosesNothingAcknowledged(t *testing.T) {
	first, path := create(t)
	first.Close()
	acknowledged := map[int]int{} // by process: how many
	for round := range 8 {
		a, b := start(t, "write", path), start(t, "write", path)
		for range 5 + 37*round {
			a.says()
			acknowledged[a.cmd.Process.Pid]++
		}
		a.signal(syscall.SIGKILL)
		for a.lines.Scan() { // what it said before it died
			acknowledged[a.cmd.Process.Pid]++
		}
		for range 10 { // the other one goes on
			b.says()
			acknowledged[b.cmd.Process.Pid]++
		}
		b.signal(syscall.SIGKILL)
		for b.lines.Scan() {
			acknowledged[b.cmd.Process.Pid]++
		}
	}
	l, err := Open(path)
	must(t, err)
	defer l.Close()
	for pid, n := range acknowledged {
		for i := range n {
			if _, ok, err := l.Find(fmt.Sprintf("%d/%d", pid, i)); err != nil || !ok {
				t.Fatalf("event %d of %d that process %d was told of is not there (%v)", i, n, pid, err)
			}
			if _, err := l.Body(swarm.HashOf(fmt.Appendf(nil, "text %d/%d", pid, i))); err != nil {
				t.Fatalf("text %d of process %d: %v", i, pid, err)
			}
		}
	}
	last, halves := int64(0), 0
	must(t, l.Scan(0, func(e *swarm.Event) error {
		if last++; e.Seq != last {
			return fmt.Errorf("event %d follows %d", e.Seq, last-1)
		}
		switch {
		case e.Key != "":
			halves++
		case e.Agent == "":
			halves--
		}
		if halves < 0 || halves > 1 {
			return fmt.Errorf("half of a batch at %d", e.Seq)
		}
		return nil
	}))
}

// childOwns owns the run, with a lease of the given length, and then appends one event for each
// line of its input.
func childOwns(l *Log) error {
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	lease, err := time.ParseDuration(in.Text())
	if err != nil {
		return err
	}
	owner, err := l.Own(context.Background(), "1", lease)
	if err != nil {
		return err
	}
	fmt.Println("owns", owner.Fence)
	for in.Scan() {
		_, err := l.Append(context.Background(), swarm.Batch{Fence: owner.Fence, Events: []swarm.Event{{Kind: swarm.Tick}}})
		fmt.Println("append:", err)
		fmt.Println("renew:", l.Renew(context.Background(), owner.Fence, lease))
	}
	return nil
}

func TestAKilledOwnerIsReplacedAtOnce(t *testing.T) {
	l, path := create(t)
	c := start(t, "own", path)
	fmt.Fprintln(c.in, time.Hour)
	c.says()
	who, ok, err := l.Owner(context.Background())
	if err != nil || !ok || who.PID != c.cmd.Process.Pid {
		t.Fatalf("the owner is %+v, %v, %v", who, ok, err)
	}
	var owned *swarm.OwnedError
	if _, err := l.Own(context.Background(), "1", time.Hour); !errors.As(err, &owned) || owned.Owner.PID != c.cmd.Process.Pid {
		t.Fatalf("own beside a living owner: %v", err)
	}
	c.signal(syscall.SIGKILL)
	c.cmd.Wait()
	if who, ok, err := l.Owner(context.Background()); ok || err != nil {
		t.Errorf("the dead owner %+v is shown as alive (%v)", who, err)
	}
	if _, err := l.Own(context.Background(), "1", time.Hour); err != nil {
		t.Errorf("own after its death: %v", err)
	}
}

func TestAStoppedOwnerIsReplacedAfterItsLease(t *testing.T) {
	l, path := create(t)
	c := start(t, "own", path)
	fmt.Fprintln(c.in, 300*time.Millisecond)
	c.says()
	c.signal(syscall.SIGSTOP)
	c.stops()
	fence := ownSoon(t, l)
	if who, ok, err := l.Owner(context.Background()); err != nil || !ok || who.Fence != fence || who.PID != os.Getpid() {
		t.Errorf("the owner is %+v, %v, %v", who, ok, err)
	}
	c.signal(syscall.SIGCONT)
	fmt.Fprintln(c.in, "append")
	for _, want := range []string{"append: " + swarm.ErrFenced.Error(), "renew: " + swarm.ErrFenced.Error()} {
		if got := c.says(); got != want {
			t.Errorf("the woken owner: %q, want %q", got, want)
		}
	}
	if es, err := l.Read(0, 10); err != nil || len(es) != 0 {
		t.Errorf("the log has %v, %v", es, err)
	}
	if err := l.Renew(context.Background(), fence, time.Hour); err != nil {
		t.Errorf("the new owner renews: %v", err)
	}
}

// childGetsStuck owns for a moment, begins to write, and stops. The signal may reach another thread
// first, so the child waits for input that never comes: returning could end the process before it
// stops.
func childGetsStuck(l *Log) error {
	if _, err := l.Own(context.Background(), "1", time.Millisecond); err != nil {
		return err
	}
	if err := l.writeLock.lock(time.Minute); err != nil {
		return err
	}
	if err := l.w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func TestAnOwnerStoppedInTheMiddleOfACommitIsKilled(t *testing.T) {
	l, path := create(t)
	l.busyLimit = 50 * time.Millisecond
	c := start(t, "get stuck", path)
	c.stops()
	if _, err := l.Append(context.Background(), small(1)); !errors.Is(err, errBusy) || swarm.KindOf(err) != swarm.Storage {
		t.Errorf("an append while the log is kept busy: %v", err)
	}
	if es, err := l.Read(0, 10); err != nil || len(es) != 0 {
		t.Errorf("a reader meanwhile: %v, %v", es, err)
	}
	ownSoon(t, l)
	if err := c.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the stuck owner: %v", err)
	}
	if _, err := l.Append(context.Background(), small(2)); err != nil {
		t.Errorf("an append afterwards: %v", err)
	}
}

func ownSoon(t *testing.T, l *Log) int64 {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		owner, err := l.Own(context.Background(), "1", time.Hour)
		if err == nil {
			return owner.Fence
		}
		if time.Now().After(end) {
			t.Fatalf("the run is never given: %v", err)
		}
	}
}

// childSendsMail is one writer of the suite.
func childSendsMail(l *Log) error {
	var writer, n int
	if _, err := fmt.Scan(&writer, &n); err != nil {
		return err
	}
	return errors.Join(storetest.WriteMail(l, writer, n), l.Close())
}

func TestMailBetweenProcesses(t *testing.T) {
	first, path := create(t)
	first.Close()
	storetest.Mail(t, func(t *testing.T) storetest.Store {
		l, err := Open(path)
		must(t, err)
		return l
	}, func(t *testing.T, writer, n int) func() error {
		c := start(t, "mail", path)
		fmt.Fprintln(c.in, writer, n)
		return func() error {
			if c.lines.Scan() {
				return errors.New(c.lines.Text())
			}
			return c.cmd.Wait()
		}
	})
}

// childFills may write files of 200,000 bytes only, and appends until an append fails.
func childFills(l *Log) error {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 200_000, Max: 200_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	n, err := fill(l)
	fmt.Println(n, swarm.KindOf(err))
	return l.Close()
}

// fill appends until an append fails, and returns how many succeeded.
func fill(l *Log) (n int, err error) {
	for {
		if _, err = l.Append(context.Background(), small(n)); err != nil {
			return n, err
		}
		n++
	}
}

func TestAWriteErrorLosesNothingAcknowledged(t *testing.T) {
	first, path := create(t)
	first.Close()
	c := start(t, "fill", path)
	var n int
	var kind swarm.ErrorKind
	if _, err := fmt.Sscan(c.says(), &n, &kind); err != nil || kind != swarm.Storage || n == 0 {
		t.Fatalf("after %d appends: %q (%v)", n, kind, err)
	}
	c.cmd.Wait()
	l, err := Open(path)
	must(t, err)
	defer l.Close()
	if es, err := l.Read(0, n+10); err != nil || len(es) != n {
		t.Errorf("%d events of %d are there (%v)", len(es), n, err)
	}
}
