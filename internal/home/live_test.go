package home

import (
	"os"
	"testing"
)

func TestAMarkIsItsOwnersAlone(t *testing.T) {
	h := newHome(t)
	first, err := h.MarkLive("r", 1)
	must(t, err)
	second, err := h.MarkLive("r", 2) // it has taken the run over from the first, which had stopped
	must(t, err)
	if left := h.Left(); len(left) != 0 {
		t.Errorf("marks of living processes are left: %v", left)
	}
	first()
	if left := h.Left(); len(left) != 0 || len(h.marks()) != 1 {
		t.Errorf("of %v are left %v", h.marks(), left)
	}
	second()
	if len(h.marks()) != 0 {
		t.Errorf("there are marks: %v", h.marks())
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
	if len(left) != 1 || left[0].Run != "r" {
		t.Fatalf("left is %v", left)
	}
	h.Unmark(left[0])
	if len(h.marks()) != 0 {
		t.Error("the mark stays")
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
