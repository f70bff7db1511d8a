package term

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/view"
)

func TestLogLines(t *testing.T) {
	var out strings.Builder
	l := NewLogLines(&out, view.Picture{Tasks: []view.Task{{Name: "plan"}, {Name: "write_code"}}}, false)
	for _, line := range [][4]string{
		{"", "", "run_started", "pipeline main started"},
		{"", "plan", "text", "\x1b[2Jhello"},
		{"", "plan", "stderr", "careful"},
		{"12:00 ", "write_code", "tool", "read x"},
		{"", "write_code", "task_failed", "failed: no"},
	} {
		if err := l.Print(line[0], line[1], line[2], line[3]); err != nil {
			t.Fatal(err)
		}
	}
	want := `swarm        pipeline main started
plan       | \x1b[2Jhello
plan       ! careful
12:00 write_code > read x
write_code   failed: no
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// A person who only watches a run is told that Ctrl-C does not stop it.
func TestFootOfAnAttachedBoard(t *testing.T) {
	f := inTheMiddle(t)
	f.Attached, f.Stops = true, 1
	if got := f.Draw(); !strings.HasSuffix(got, "\nCtrl-C leaves, and the run goes on · p pauses it · ? help") {
		t.Errorf("got\n%s", got)
	}
	f.Status = swarm.Paused
	if got := f.Draw(); !strings.HasSuffix(got, "\nCtrl-C leaves, and the run stays as it is · p lets it go on · ? help") {
		t.Errorf("got\n%s", got)
	}
}
