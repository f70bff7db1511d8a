package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarm"
)

// job returns a Job that runs a line of shell, in a run of this test only.
func job(t testing.TB, line string) Job {
	t.Helper()
	run := swarm.RunID(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	e, err := NewEnvironment(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	env, err := e.Of(Mark{Run: run, Turn: "t/1/1"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return Job{Path: "/bin/sh", Argv: []string{"sh", "-c", line}, Dir: t.TempDir(), Env: env, Run: run, Turn: "t/1/1", Grace: 100 * time.Millisecond}
}

// run runs a job to its end and returns its output.
func run(t testing.TB, j Job) string {
	t.Helper()
	p, err := j.Start()
	if err != nil {
		t.Fatal(err)
	}
	if status, cut, err := p.Wait(t.Context()); status != 0 || cut || err != nil {
		t.Fatalf("%q ended with %v, cut %v, %v", j.Argv, status, cut, err)
	}
	return string(p.Stdout().Bytes())
}

// hold starts a job that ends when it is released.
func hold(t *testing.T) (release func()) {
	t.Helper()
	j := job(t, "read line")
	j.Run, j.Talk = swarm.RunID(string(j.Run)+"-held"), true
	p, err := j.Start()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _, _, _ = p.Wait(context.Background()); close(done) }()
	return sync.OnceFunc(func() { p.CloseInput(); <-done })
}

// pidIn returns the pid that a program printed.
func pidIn(t *testing.T, said string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func isGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// daemon leaves its group, its session and its environment. It and its children must end with the
// program that started it. That program ends once the daemon is hidden.
const daemon = "mkfifo hidden; setsid env -i sh -c 'echo $$ >hidden; sleep 1000 & sleep 1000' </dev/null >/dev/null 2>&1 & read pid <hidden; echo $pid"

func TestHiddenLeftoversEnd(t *testing.T) {
	if pid := pidIn(t, run(t, job(t, daemon))); !isGone(pid) {
		t.Errorf("%d lives", pid)
	}
	noOrphans(t)
}

// A daemon that has even thrown its limit away is spared while any job runs that may have started
// it. It ends with the last of these jobs.
func TestHiddenLeftoversOfOthersAreSpared(t *testing.T) {
	first, second := hold(t), hold(t)
	defer first()
	defer second()
	pid := pidIn(t, run(t, job(t, "prlimit --pid $$ --locks=1; "+daemon)))
	if isGone(pid) {
		t.Fatalf("%d was ended while others may have started it", pid)
	}
	later := hold(t) // started after the daemon, so it cannot be its parent
	defer later()
	first()
	if isGone(pid) {
		t.Fatalf("%d was ended while another may have started it", pid)
	}
	second()
	if !isGone(pid) {
		t.Errorf("%d lives", pid)
	}
}

// A process that shows its job ends with that job, whatever else runs. Its limit is enough, and so
// is its environment.
func TestMarkedLeftoversEndWithTheirProgram(t *testing.T) {
	defer hold(t)()
	for _, line := range []string{daemon, "prlimit --pid $$ --locks=1; setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!"} {
		if pid := pidIn(t, run(t, job(t, line))); !isGone(pid) {
			t.Errorf("%d lives", pid)
		}
	}
}

// A process that starts programs keeps its own limit, by which an outer driver knows it.
func TestLimitOfTheDriverStays(t *testing.T) {
	before := readLimitMark(os.Getpid())
	if said := run(t, job(t, "grep locks /proc/$$/limits")); strings.Contains(said, " "+strconv.FormatUint(uint64(before), 10)+" ") {
		t.Errorf("the program has the limit of its driver: %s", said)
	}
	if after := readLimitMark(os.Getpid()); after != before {
		t.Errorf("the limit was %d and is %d", before, after)
	}
}

// Clear ends a hidden daemon if only jobs of the cleared run can have started it, even jobs that
// still run.
func TestKillEndsAll(t *testing.T) {
	j := job(t, daemon+"; trap '' TERM; read line")
	j.Talk = true
	said := make(chan string, 10)
	j.Stdout = func(piece string) { said <- piece }
	p, err := j.Start()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan syscall.WaitStatus)
	go func() {
		status, _, _ := p.Wait(context.Background())
		done <- status
	}()
	pid := pidIn(t, <-said)
	other := hold(t)
	defer other()
	Kill("another")
	if isGone(pid) || isGone(p.PID()) {
		t.Fatal("another run's were killed")
	}
	Kill(j.Run)
	if status := <-done; !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", status)
	}
	other()
	noOrphans(t)
	if !isGone(pid) {
		t.Errorf("%d lives", pid)
	}
}

// Searches for orphans steal no exit status: neither of os/exec's children nor of jobs.
func TestNobodyElsesStatusIsTaken(t *testing.T) {
	before := childrenNow(t)
	each := 40
	if testing.Short() {
		each = 8
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(2)
		go func() {
			defer all.Done()
			for n := range each {
				want := (i*40 + n) % 100
				var exit *exec.ExitError
				if err := exec.Command("sh", "-c", "exit "+strconv.Itoa(want)).Run(); want != 0 && (!errors.As(err, &exit) || exit.ExitCode() != want) {
					t.Errorf("os/exec: want %d, got %v", want, err)
				}
			}
		}()
		go func() {
			defer all.Done()
			for n := range each {
				want := (i*40 + n) % 100
				p, err := job(t, fmt.Sprintf("(setsid sh -c 'exit 1' &); (setsid sleep 1000 </dev/null >/dev/null 2>&1 &); exit %d", want)).Start()
				if err != nil {
					t.Error(err)
					return
				}
				if status, _, err := p.Wait(context.Background()); err != nil || status.ExitStatus() != want {
					t.Errorf("job: want %d, got %v, %v", want, status, err)
				}
			}
		}()
	}
	all.Wait()
	noOrphans(t)
	if after := childrenNow(t); len(after) > len(before) {
		t.Errorf("children that nobody has waited for: %v", after)
	}
}

// A program that cannot be started leaves no process to wait for and no open file.
func TestNotStarted(t *testing.T) {
	const tries = 20
	before := openFiles(t)
	for range tries {
		j := job(t, "")
		j.Path, j.Input = "/nowhere", new(string)
		if _, err := j.Start(); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("it was started: %v", err)
		}
	}
	// The runtime opens some for itself when it first needs them.
	if after := openFiles(t); after >= before+tries {
		t.Errorf("%d files were open, and %d are", before, after)
	}
	if len(family.jobs) != 0 || family.starting != 0 {
		t.Errorf("%d jobs, %d starting", len(family.jobs), family.starting)
	}
}

// Kernels without pidfds or children lists get the fallbacks.
func TestOlderKernels(t *testing.T) {
	for name, change := range map[string]func() (back func()){
		"no pidfds": func() func() {
			was := pidfds
			pidfds = func() bool { return false }
			return func() { pidfds = was }
		},
		"no list of children": func() func() {
			was := family.list
			family.list = -1
			return func() { family.list = was }
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, job(t, "exit 0"))
			defer change()()
			before := 0
			for range 2 { // in the first round the runtime may open files for itself
				before = openFiles(t)
				j := job(t, "cat; exit 3")
				text := strings.Repeat("x", 200_000)
				j.Input = &text
				p, err := j.Start()
				if err != nil {
					t.Fatal(err)
				}
				if status, _, err := p.Wait(t.Context()); err != nil || status.ExitStatus() != 3 || p.Stdout().Len() != int64(len(text)) {
					t.Errorf("%v, %v, %d bytes", status, err, p.Stdout().Len())
				}
				if pid := pidIn(t, run(t, job(t, daemon))); !isGone(pid) {
					t.Errorf("%d lives", pid)
				}
			}
			if after := openFiles(t); after > before {
				t.Errorf("%d files were open, and %d are", before, after)
			}
		})
	}
}

// A cancelled program can still write much output before it ends.
func TestCutWhileItSpeaks(t *testing.T) {
	j := job(t, "mkfifo never; trap 'head -c 1000000 /dev/zero; exit 0' TERM; echo ready; read line <never")
	j.Grace = time.Hour
	ctx, cut := context.WithCancel(t.Context())
	j.Stdout = func(string) { cut() }
	p, err := j.Start()
	if err != nil {
		t.Fatal(err)
	}
	if status, was, err := p.Wait(ctx); status != 0 || !was || err != nil || p.Stdout().Len() != 1_000_006 {
		t.Errorf("%v, cut %v, %v, %d bytes", status, was, err, p.Stdout().Len())
	}
}

// The same holds for children that outlive the program.
func TestChildrenSpeakAfterACut(t *testing.T) {
	j := job(t, "mkfifo never; trap 'exit 0' TERM; (trap 'head -c 1000000 /dev/zero; exit 0' TERM; echo ready; read line <never) & wait")
	j.Grace = time.Hour
	ctx, cut := context.WithCancel(t.Context())
	j.Stdout = func(string) { cut() }
	p, err := j.Start()
	if err != nil {
		t.Fatal(err)
	}
	status, was, err := p.Wait(ctx)
	// The children get SIGTERM twice, so they may print twice.
	if status != 0 || !was || err != nil || p.Stdout().Len() < 1_000_006 {
		t.Errorf("%v, cut %v, %v, %d bytes", status, was, err, p.Stdout().Len())
	}
}

func noOrphans(t *testing.T) {
	t.Helper()
	if found := family.find(func(*orphan) bool { return true }); len(found) != 0 {
		t.Errorf("orphans are left: %v", found)
	}
	family.mu.Lock()
	defer family.mu.Unlock()
	if len(family.orphans) != 0 {
		t.Errorf("orphans are noted that are gone: %v", family.orphans)
	}
}

func childrenNow(t *testing.T) []int {
	t.Helper()
	run(t, job(t, "exit 0"))
	family.mu.Lock()
	defer family.mu.Unlock()
	return family.pids()
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
