package provider

// What these tests look at, only Linux shows: the environments and the states of all processes.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/process"
)

// A stopped program gets the signal to end only when it is woken.
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

// stopped returns what the kernel reports about a process after its name.
func stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") T ")
}

func TestReap(t *testing.T) {
	r := request(t, "")
	const driver = 4_194_305 // no process has this number
	mine := func(line string, run swarm.RunID, driver int) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "SWARM_RUN_ID="+string(run), "SWARM_DRIVER="+strconv.Itoa(driver))
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
	plain := mine("echo ready; exec sleep 1000", r.Run, driver)
	deaf := mine("trap '' TERM; echo ready; exec sleep 1000", r.Run, driver)
	others := []*exec.Cmd{mine("echo ready; exec sleep 1000", swarm.RunID(string(r.Run)+"0"), driver), mine("echo ready; exec sleep 1000", r.Run, driver+1)}
	ended := make(chan struct{}, 2)
	for _, c := range []*exec.Cmd{plain, deaf} { // without a Wait they would stay as zombies
		go func() { _ = c.Wait(); ended <- struct{}{} }()
	}
	if n, _ := process.Reap(r.Run, driver, ""); n != 2 {
		t.Errorf("%d processes were ended, want 2", n)
	}
	<-ended
	<-ended
	for i, other := range others {
		if err := other.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("a process of another %s was ended too: %v", []string{"run", "driver"}[i], err)
		}
		_ = other.Process.Kill()
		_ = other.Wait()
	}
	wantNobody(t, r.Run)
	if n, _ := process.Reap(r.Run, driver, ""); n != 0 {
		t.Errorf("nobody is left, but %d were ended", n)
	}
	if n, _ := process.Reap("", driver, ""); n != 0 {
		t.Errorf("no run at all, but %d were ended", n)
	}
}

// A process that could not be told from another program's at the end of its turn ends with the run,
// unless it is another driver's.
func TestClear(t *testing.T) {
	r := request(t, "")
	gate := filepath.Join(r.Dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan string, 10), make(chan error)
	go func() { // it may have started what the next one leaves behind
		_, err := shell(t, "echo ready; read line <gate").Turn(t.Context(), r, func(d swarm.Delta) { ready <- d.Text })
		done <- err
	}()
	<-ready
	if _, err := shell(t, "prlimit --pid $$ --locks=1; env -u SWARM_JOB setsid sleep 1000 >/dev/null 2>&1 </dev/null &").Turn(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sh", "-c", "echo started; read line")
	other.Env = append(os.Environ(), "SWARM_RUN_ID="+string(r.Run), "SWARM_DRIVER=1")
	in, _ := other.StdinPipe()
	out, _ := other.StdoutPipe()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 10)) // from now on its environment can be seen
	if n := process.Clear(r.Run); n != 1 {
		t.Errorf("%d processes were ended, want 1", n)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the program that is no leftover ended with %v", err)
	}
	_, _ = in.Write([]byte("end\n"))
	if err := other.Wait(); err != nil {
		t.Errorf("the other driver's program ended with %v", err)
	}
	wantNobody(t, r.Run)
}

// A command inside an agent may reap the agent's own run: it spares itself and the agent above it.
func TestReapSparesThoseAbove(t *testing.T) {
	if run := swarm.RunID(os.Getenv("REAP_THIS")); run != "" {
		driver, _ := strconv.Atoi(os.Getenv("SWARM_DRIVER"))
		n, all := process.Reap(run, driver, "")
		fmt.Printf("reaped %d, all %v\n", n, all)
		return
	}
	r := request(t, "")
	r.Env = map[string]string{"REAP_THIS": string(r.Run)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := shell(t, "sleep 1000 >/dev/null 2>&1 & "+self+" -test.run '^TestReapSparesThoseAbove$'; echo alive").Turn(t.Context(), r, nil)
	if err != nil || !strings.Contains(string(reply.Output), "reaped 1, all false\n") || !strings.HasSuffix(string(reply.Output), "alive\n") {
		t.Errorf("output %q, error %v", reply.Output, err)
	}
}
