package home

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"swarm"
)

func TestAMarkIsItsOwnersAlone(t *testing.T) {
	h := newHome(t)
	run(t, h, Summary{ID: "r", Status: swarm.Running, Dir: "/"})
	first, err := h.MarkLive("r", 1)
	must(t, err)
	second, err := h.MarkLive("r", 2) // it has taken the run over from the first, which had stopped
	must(t, err)
	if left := h.Left(); len(left) != 0 {
		t.Errorf("marks of living processes are left: %v", left)
	}
	first()
	if !h.Live("r") {
		t.Error("the second drives it, though it has not the lock beside the log")
	}
	if gone, err := h.Prune(PruneOptions{Now: time.Now().Add(week)}); err != nil || len(gone) != 0 {
		t.Errorf("a driven run was deleted: %v, %v", gone, err)
	}
	second()
	if h.Live("r") || len(h.marks()) != 0 {
		t.Errorf("nobody drives it any more, and there are marks: %v", h.marks())
	}
}

func TestTheMarkOfAKilledProcessIsLeft(t *testing.T) {
	h := newHome(t)
	unmark, err := h.MarkLive("r", 1)
	must(t, err)
	name := h.marks()[0].name
	must(t, os.Link(h.in("live", name), h.in("live", name+unready)))
	unmark()
	must(t, os.Rename(h.in("live", name+unready), h.in("live", name)))
	left := h.Left()
	if len(left) != 1 || left[0].Run != "r" || h.Live("r") {
		t.Fatalf("left is %v", left)
	}
	h.Unmark(left[0])
	if len(h.marks()) != 0 {
		t.Error("the mark stays")
	}
}

// A child that a killed process was just starting has its locks for an instant longer.
func TestALockThatOutlivesItsProcess(t *testing.T) {
	h := newHome(t)
	run(t, h, Summary{ID: "r", Status: swarm.Running})
	dead := exec.Command("true")
	must(t, dead.Run())
	leave := drive(t, h, "r")
	must(t, made(h.in("live")))
	must(t, os.WriteFile(h.in("live", "r.1."+strconv.Itoa(dead.Process.Pid)), nil, 0o600))
	time.AfterFunc(time.Millisecond, leave)
	if h.Live("r") {
		t.Error("a dead process drives it")
	}
}

// Who sweeps up while another begins to drive must not take the other's mark away before it is locked.
func TestAnUnreadyMarkIsNotLeft(t *testing.T) {
	h := newHome(t)
	must(t, made(h.in("live")))
	name := "20260101-000000-abcdefg.2.12345"
	must(t, os.WriteFile(h.in("live", name+unready), nil, 0o600))
	if left := h.Left(); len(left) != 0 {
		t.Errorf("taken for left: %+v", left)
	}
	must(t, os.Rename(h.in("live", name+unready), h.in("live", name)))
	if left := h.Left(); len(left) != 1 {
		t.Errorf("one was left, and seen were %+v", left)
	}
}
