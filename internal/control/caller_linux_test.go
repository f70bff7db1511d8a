package control

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// A container that shares the state folder may have a driver with the pid of our ancestor. A person
// must not be refused because of it.
func TestADriverIsFoundByItsPIDAndItsStartTime(t *testing.T) {
	h, err := statedir.At(filepath.Join(t.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sh", "-c", "read line")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = child.Wait() }()
	self := process.Self()
	for _, c := range []struct {
		started uint64
		drives  bool
	}{{self.Started, true}, {0, true}, {self.Started + 1, false}} {
		unmark, err := h.MarkLive("r", 1, c.started, "")
		if err != nil {
			t.Fatal(err)
		}
		pid, runs := driverAbove(h, child.Process.Pid)
		if found := pid == self.PID && slices.Equal(runs, []swarm.RunID{"r"}); found != c.drives || !found && pid != 0 {
			t.Errorf("marked as started at %d, this process at %d: %d drives %v", c.started, self.Started, pid, runs)
		}
		unmark()
	}
	if pid, runs := driverAbove(h, child.Process.Pid); pid != 0 || runs != nil {
		t.Errorf("without a mark %d drives %v", pid, runs)
	}
}

// Agents get no address of a shared store, so the log of their run is not in the store that they see.
func TestAnAgentOfARunInAnotherStoreIsNoPerson(t *testing.T) {
	h, err := statedir.At(filepath.Join(t.TempDir(), "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	if FindCaller(h, swarm.HowTerminal).Agent {
		t.Skip("this test runs inside a turn")
	}
	t.Setenv("SWARM_RUN_ID", "r")
	t.Setenv("SWARM_TURN_ID", "a/1/1")
	if FindCaller(h, swarm.HowTerminal).Agent {
		t.Error("the agent of another state folder is not free in this one")
	}
	unmark, err := h.MarkLive("r", 1, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	defer unmark()
	if !FindCaller(h, swarm.HowTerminal).Agent {
		t.Error("the agent of a run that is driven by this state folder counts as a person")
	}
}
