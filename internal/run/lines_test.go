package run

import (
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/statedir"
)

// Pieces of several turns and kinds become whole lines, and a turn's end ends its lines.
func TestLines(t *testing.T) {
	said := func(turn swarm.TurnID, kind, text string) Entry {
		task, _, _ := strings.Cut(string(turn), "/")
		return Entry{Task: task, Turn: turn, Kind: kind, Text: text}
	}
	ended := func(turn swarm.TurnID) Entry {
		task, _, _ := strings.Cut(string(turn), "/")
		return Entry{Task: task, Turn: turn, Event: &swarm.Event{Kind: swarm.TurnEnded}}
	}
	var got []string
	lines := Lines{Fn: func(l Line) error {
		got = append(got, fmt.Sprintf("%s %s %q", l.Turn, l.Kind, l.Text))
		return nil
	}}
	for _, m := range []Entry{
		said("a/1/1", "text", "on"),
		said("b/1/1", "text", "un\ndeux\nt"),
		said("a/1/1", "stderr", "oh\r\n"),
		said("a/1/1", "text", "e\n\ntwo"),
		{Task: "c", Event: &swarm.Event{Kind: swarm.TaskCompleted}},
		ended("a/1/1"),
		said("b/1/1", "tool", "read {\n}"),
		said("b/1/1", "text", "quatre"),
		{Task: "b", Turn: "b/1/1", Kind: statedir.Gap, Gap: 7},
		said("b/1/1", "text", "rest"),
	} {
		if err := lines.Take(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.End(); err != nil {
		t.Fatal(err)
	}
	want := []string{`b/1/1 text "un"`, `b/1/1 text "deux"`, `a/1/1 stderr "oh"`, `a/1/1 text "one"`, `a/1/1 text ""`, ` task_completed "completed"`,
		`a/1/1 text "two"`, `b/1/1 text "t"`, `b/1/1 tool "read {\n}"`, `b/1/1 text "quatre"`, `b/1/1 gap "… 7 bytes were not kept …"`, `b/1/1 text "rest"`}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}
