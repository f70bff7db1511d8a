package statedir

import (
	"os"
	"testing"
)

func TestAMarkIsItsOwnersAlone(t *testing.T) {
	h := newHome(t)
	first, err := h.MarkLive("r", 1, 7, "/folder")
	must(t, err)
	second, err := h.MarkLive("r", 2, 7, "") // it has taken the run over from the first, which had stopped
	must(t, err)
	if left := h.Left(never); len(left) != 0 {
		t.Errorf("marks of living processes are left: %v", left)
	}
	if before, none := h.Earlier("r", 2), h.Earlier("r", 1); len(before) != 1 || before[0].PID != os.Getpid() || before[0].Folder != "/folder" || len(none) != 0 {
		t.Errorf("before the second drove it %v, before the first %v", before, none)
	}
	first()
	if left := h.Left(never); len(left) != 0 || len(h.Marks()) != 1 || h.Marks()[0].Started != 7 {
		t.Errorf("of %v are left %v", h.Marks(), left)
	}
	second()
	if len(h.Marks()) != 0 {
		t.Errorf("there are marks: %v", h.Marks())
	}
}

func TestTheMarkOfAKilledProcessIsLeft(t *testing.T) {
	h := newHome(t)
	unmark, err := h.MarkLive("r", 1, 7, "")
	must(t, err)
	name := h.Marks()[0].name
	must(t, os.Link(h.in("live", name), h.in("live", name+unready)))
	unmark()
	must(t, os.Rename(h.in("live", name+unready), h.in("live", name)))
	left := h.Left(never)
	if len(left) != 1 || left[0].Run != "r" || left[0].PID != os.Getpid() || h.DrivenBy("r", os.Getpid()) {
		t.Fatalf("left is %v", left)
	}
	again, err := h.MarkLive("r", 2, 7, "") // by a process with the number of the killed one
	must(t, err)
	if !h.DrivenBy("r", os.Getpid()) || h.DrivenBy("r", os.Getpid()+1) {
		t.Error("who drives it is told by the number of another")
	}
	again()
	h.Unmark(left[0])
	if len(h.Marks()) != 0 {
		t.Error("the mark stays")
	}
}

// A mark that is not locked yet must not be removed by another process that cleans up.
func TestAnUnreadyMarkIsNotLeft(t *testing.T) {
	h := newHome(t)
	must(t, makeDir(h.in("live")))
	name := "20260101-000000-abcdefg.2.12345"
	must(t, os.WriteFile(h.in("live", name+unready), nil, 0o600))
	if left := h.Left(never); len(left) != 0 {
		t.Errorf("taken for left: %+v", left)
	}
	must(t, os.Rename(h.in("live", name+unready), h.in("live", name)))
	if left := h.Left(never); len(left) != 1 {
		t.Errorf("one was left, and seen were %+v", left)
	}
}

func never(Mark) bool { return false }

// A killed process leaves its lock to a program that it was starting.
func TestALockThatIsAboutToBeFreeIsWaitedFor(t *testing.T) {
	h := newHome(t)
	unmark, err := h.MarkLive("r", 1, 7, "")
	must(t, err)
	name := h.Marks()[0].name
	must(t, os.Link(h.in("live", name), h.in("live", name+unready)))
	left := h.Left(func(Mark) bool {
		unmark()
		must(t, os.Rename(h.in("live", name+unready), h.in("live", name)))
		return true
	})
	if len(left) != 1 {
		t.Errorf("left is %v", left)
	}
}
