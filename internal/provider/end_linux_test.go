package provider

// What these tests look at, only Linux shows: the environments and the states of all processes.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/process"
)

// A stopped program hears that it is to end only when it is woken.
func TestStoppedProgramsMayTidyUpToo(t *testing.T) {
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	whenStopped := func(pid int) {
		for !stopped(pid) {
			runtime.Gosched()
		}
		cut()
	}
	reply, err := shell(t, "trap 'echo tidied; exit 0' TERM; echo $$; kill -STOP $$", grace(time.Hour)).Turn(ctx, request(t, ""), func(d swarm.Delta) {
		var pid int
		if _, err := fmt.Sscan(d.Text, &pid); err == nil {
			go whenStopped(pid)
		}
	})
	wantKind(t, err, swarm.CutByCancel)
	if !strings.HasSuffix(string(reply.Output), "tidied\n") {
		t.Errorf("output is %q", reply.Output)
	}
}

// stopped is what the kernel tells of a process behind its name.
func stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") T ")
}

func TestReap(t *testing.T) {
	r := request(t, "")
	mine := func(line, run string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "SWARM_RUN_ID="+run)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	plain := mine("echo ready; exec sleep 1000", r.Run)
	deaf := mine("trap '' TERM; echo ready; exec sleep 1000", r.Run)
	other := mine("echo ready; exec sleep 1000", r.Run+"0")
	ended := make(chan struct{}, 2)
	for _, c := range []*exec.Cmd{plain, deaf} { // without somebody who waits for them they would stay as zombies
		go func() { _ = c.Wait(); ended <- struct{}{} }()
	}
	if n := process.Reap(r.Run, func() bool { return false }); n != 0 {
		t.Errorf("somebody drives the run again, but %d of its processes were ended", n)
	}
	if n := process.Reap(r.Run, nil); n != 2 {
		t.Errorf("%d processes were ended, want 2", n)
	}
	<-ended
	<-ended
	wantNobody(t, r.Run)
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another run's process was ended too: %v", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	if n := process.Reap(r.Run, nil); n != 0 {
		t.Errorf("nobody is left, but %d were ended", n)
	}
	if n := process.Reap("", nil); n != 0 {
		t.Errorf("no run at all, but %d were ended", n)
	}
}

// What nobody has found at the end of its turn ends with the run, unless another has taken the run over.
func TestClear(t *testing.T) {
	r := request(t, "")
	if _, err := shell(t, "env -u SWARM_JOB setsid sleep 1000 >/dev/null 2>&1 </dev/null &").Turn(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sh", "-c", "echo started; read line")
	other.Env = append(os.Environ(), "SWARM_RUN_ID="+r.Run, "SWARM_DRIVER=1")
	in, _ := other.StdinPipe()
	out, _ := other.StdoutPipe()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 10)) // from now on its environment can be seen
	if n := process.Clear(r.Run); n != 1 {
		t.Errorf("%d processes were ended, want 1", n)
	}
	_, _ = in.Write([]byte("end\n"))
	if err := other.Wait(); err != nil {
		t.Errorf("the other driver's program ended with %v", err)
	}
	wantNobody(t, r.Run)
}

// A command inside an agent may reap the agent's own run: it spares itself and the agent above it.
func TestReapSparesThoseAbove(t *testing.T) {
	if run := os.Getenv("REAP_THIS"); run != "" {
		fmt.Printf("reaped %d\n", process.Reap(run, nil))
		return
	}
	r := request(t, "")
	r.Env = map[string]string{"REAP_THIS": r.Run}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := shell(t, "sleep 1000 >/dev/null 2>&1 & "+self+" -test.run '^TestReapSparesThoseAbove$'; echo alive").Turn(t.Context(), r, nil)
	if err != nil || !strings.Contains(string(reply.Output), "reaped 1\n") || !strings.HasSuffix(string(reply.Output), "alive\n") {
		t.Errorf("output %q, error %v", reply.Output, err)
	}
}
