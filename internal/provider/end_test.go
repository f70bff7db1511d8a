package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/process"
)

// cutWhen runs a turn and cuts it as soon as it says something.
func cutWhen(t *testing.T, p Provider, r Request, cause error) (Reply, error) {
	t.Helper()
	ctx, cut := context.WithCancelCause(t.Context())
	defer cut(nil)
	return p.Turn(ctx, r, func(d swarm.Delta) {
		if strings.Contains(d.Text, "ready") {
			cut(cause)
		}
	})
}

func TestCutTurnsLeaveNobody(t *testing.T) {
	for name, line := range map[string]string{
		"waits":                      "echo ready; sleep 1000",
		"becomes another":            "echo ready; exec sleep 1000",
		"ignores TERM":               "trap '' TERM; echo ready; while :; do sleep 1000; done",
		"has children":               "sleep 1000 & sleep 1000 & (sleep 1000; :) & echo ready; wait",
		"children ignore TERM":       "(trap '' TERM; sleep 1000; sleep 1000) & echo ready; wait",
		"is stopped":                 "echo ready; kill -STOP $$",
		"child in its own session":   "setsid sleep 1000 & echo ready; wait",
		"session without the pipes":  "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo ready; wait",
		"does not read a long input": "echo ready; sleep 1000",
		"ends well when asked":       "trap 'exit 0' TERM; sleep 1000 & echo ready; wait",
		"never stops talking":        "echo ready; exec yes",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, strings.Repeat("x", 1<<20))
			reply, err := cutWhen(t, shell(t, line, grace(200*time.Millisecond)), r, swarm.Errorf(swarm.CutToSpeak, "a person spoke"))
			wantKind(t, err, swarm.CutToSpeak)
			if !strings.Contains(string(reply.Output), "ready") && name != "never stops talking" {
				t.Errorf("the output until then, %q, is lost", reply.Output)
			}
			wantNobody(t, r.Run)
		})
	}
}

func TestTermComesBeforeKill(t *testing.T) {
	r := request(t, "")
	if err := syscall.Mkfifo(filepath.Join(r.Dir, "never"), 0o600); err != nil {
		t.Fatal(err)
	}
	reply, err := cutWhen(t, shell(t, "trap 'echo tidied; exit 0' TERM; echo ready; read line <never", grace(time.Hour)), r, context.Canceled)
	wantKind(t, err, swarm.CutByCancel)
	if string(reply.Output) != "ready\ntidied\n" {
		t.Errorf("output is %q: it had no time to tidy up", reply.Output)
	}
}

func TestErrorHasTheKindOfTheCause(t *testing.T) {
	for _, c := range []struct {
		cause error
		kind  swarm.ErrorKind
	}{
		{swarm.Errorf(swarm.TimedOut, "it took longer than 10m"), swarm.TimedOut},
		{swarm.Errorf(swarm.Stopped, "the run has another owner"), swarm.Stopped},
		{context.DeadlineExceeded, swarm.TimedOut},
		{context.Canceled, swarm.CutByCancel},
		{nil, swarm.CutByCancel},
		{fmt.Errorf("because: %w", swarm.Errorf(swarm.CutByCancel, "cancelled")), swarm.CutByCancel},
		{errors.New("something else"), swarm.Other},
	} {
		_, err := cutWhen(t, shell(t, "echo ready; sleep 1000"), request(t, ""), c.cause)
		wantKind(t, err, c.kind)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := shell(t, "sleep 1000").Turn(ctx, request(t, ""), nil)
	if e := wantKind(t, err, swarm.TimedOut); !strings.Contains(e.Hint, "`timeout`") {
		t.Errorf("the hint is %q", e.Hint)
	}
}

func TestManyCutTurnsLeaveNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it starts hundreds of programs")
	}
	p := shell(t, "sleep 1000 & (trap '' TERM; sleep 1000) & echo ready; wait", grace(50*time.Millisecond))
	r := request(t, "x")
	var all sync.WaitGroup
	room := make(chan struct{}, 16)
	var cut atomic.Int32
	for i := range 200 {
		all.Add(1)
		room <- struct{}{}
		go func() {
			defer all.Done()
			defer func() { <-room }()
			mine := r
			mine.Turn = swarm.NewTurnID("code", 1, i+1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := p.Turn(ctx, mine, func(swarm.Delta) { cancel() })
			if swarm.KindOf(err) == swarm.CutByCancel {
				cut.Add(1)
			}
		}()
	}
	all.Wait()
	if cut.Load() != 200 {
		t.Errorf("%d turns were cut, want 200", cut.Load())
	}
	wantNobody(t, r.Run)
}

func TestCuttingOneTurnLeavesTheOther(t *testing.T) {
	one, other := request(t, ""), request(t, "")
	other.Turn = "code/2/2"
	gate := filepath.Join(other.Dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan string, 10), make(chan error)
	go func() {
		_, err := shell(t, "echo ready; read line <gate").Turn(t.Context(), other, func(d swarm.Delta) { ready <- d.Text })
		done <- err
	}()
	<-ready
	_, err := cutWhen(t, shell(t, "setsid sleep 1000 & echo ready; wait"), one, context.Canceled)
	wantKind(t, err, swarm.CutByCancel)
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the other turn ended with %v", err)
	}
}

// A driver that was stopped and wakes up cuts its turns. The process that has taken over the run
// may be doing the same ones.
func TestCuttingATurnLeavesThatOfAnotherDriver(t *testing.T) {
	r := request(t, "")
	other := exec.Command("sh", "-c", "echo started; read line")
	other.Env = append(os.Environ(), "SWARM_RUN_ID="+string(r.Run), "SWARM_TURN_ID="+string(r.Turn), "SWARM_DRIVER=1")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 10)) // from now on its environment can be seen
	_, err = cutWhen(t, shell(t, "echo ready; sleep 1000"), r, context.Canceled)
	wantKind(t, err, swarm.CutByCancel)
	_, _ = in.Write([]byte("end\n"))
	if err := other.Wait(); err != nil {
		t.Errorf("the other driver's turn ended with %v", err)
	}
}

// A program has ended well; processes that it left behind get the grace period and no more.
func TestWhatIsLeftBehind(t *testing.T) {
	for name, line := range map[string]string{
		"holds standard output":         "echo done; sleep 1000 &",
		"holds it and ignores TERM":     "echo done; (trap '' TERM; sleep 1000; :) &",
		"holds standard error only":     "echo done; sleep 1000 >/dev/null &",
		"holds nothing":                 "echo done; sleep 1000 >/dev/null 2>&1 </dev/null &",
		"holds output in a new session": "echo done; setsid sleep 1000 &",
		"a daemon":                      "echo done; setsid sleep 1000 >/dev/null 2>&1 </dev/null &",
		"a daemon that ignores TERM":    "echo done; (trap '' TERM; exec setsid sleep 1000) >/dev/null 2>&1 </dev/null &",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, "")
			reply, err := shell(t, line, grace(100*time.Millisecond)).Turn(t.Context(), r, nil)
			if err != nil || string(reply.Output) != "done\n" {
				t.Errorf("output %q, error %v", reply.Output, err)
			}
			wantNobody(t, r.Run)
		})
	}
}

// One turn of a model may have several programs at a time: the end of one does not end the others.
func TestTheEndOfOneProgramLeavesThoseOfItsTurn(t *testing.T) {
	r := request(t, "")
	gate := filepath.Join(r.Dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	first, ready, done := shell(t, "echo $$; read line <gate"), make(chan string, 10), make(chan error)
	var pid int
	go func() {
		_, err := first.Turn(t.Context(), r, func(d swarm.Delta) { ready <- d.Text })
		done <- err
	}()
	if _, err := fmt.Sscan(<-ready, &pid); err != nil {
		t.Fatal(err)
	}
	if _, err := shell(t, "setsid sleep 1000 >/dev/null 2>&1 </dev/null &").Turn(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if left := process.OfRun(r.Run); runtime.GOOS == "linux" && !slices.Equal(left, []int{pid}) {
		t.Errorf("of the turn %v is left, want %d", left, pid)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the other program ended with %v", err)
	}
}

func TestChildrenMayFinishInTheGracePeriod(t *testing.T) {
	r := request(t, "")
	gate := filepath.Join(r.Dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	reply, err := shell(t, "(read line <gate; echo child; echo file >written) & echo parent", grace(time.Hour)).Turn(t.Context(), r, func(d swarm.Delta) {
		if d.Text == "parent\n" {
			go os.WriteFile(gate, []byte("go\n"), 0)
		}
	})
	if err != nil || string(reply.Output) != "parent\nchild\n" {
		t.Errorf("output %q, error %v", reply.Output, err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "written")); err != nil {
		t.Error("the child was ended before its time")
	}
}

// A process without our marks, in a session of its own, may hold the pipe. The turn ends anyway. On
// Linux such a process is found, and ends too.
func TestHiddenHolderOfThePipe(t *testing.T) {
	r := request(t, "")
	reply, err := shell(t, "setsid env -i sleep 1000 & echo $!", grace(100*time.Millisecond)).Turn(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(reply.Output), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); (err == nil) == (runtime.GOOS == "linux") {
		t.Errorf("to end the hidden process: %v", err)
	}
}

func TestGigabyteCostsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it reads a gigabyte")
	}
	const size = 1 << 30
	var before, after runtime.MemStats
	var heard int64
	runtime.GC()
	runtime.ReadMemStats(&before)
	reply, err := shell(t, `head -c 1073741821 /dev/zero | tr '\0' x; printf end`).Turn(t.Context(), request(t, ""), func(d swarm.Delta) { heard += int64(len(d.Text)) })
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Bytes != size || heard != size || len(reply.Output) != MaxOutput || !strings.HasSuffix(string(reply.Output), "xxend") {
		t.Errorf("%d bytes, %d heard, %d kept", reply.Bytes, heard, len(reply.Output))
	}
	// A garbage collector that is behind, on a busy machine or under the race detector, leaves some
	// of the pieces for a while.
	if grown := int64(after.Sys) - int64(before.Sys); grown > size/4 {
		t.Errorf("the process has grown by %d MB", grown>>20)
	}
}
