package term

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

func TestTaskTable(t *testing.T) {
	w := termtest.NewLog(t)
	w.Begin(2, "plan", "code: plan", "check: code", "never: check")
	w.StartTask("plan")
	w.Pass(3 * time.Second)
	w.CompleteTask("plan", 1234)
	w.StartTask("code")
	w.Pass(time.Second)
	w.EndTurn("code", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Unexpected, Reason: "no"})
	w.Tell(swarm.TaskRetrying, "code", "", swarm.Retry{Iteration: 1, Attempt: 1, Reason: "no"})
	w.StartTurn("code")
	w.Pass(90 * time.Second)
	w.CompleteTask("code", 45000)
	w.StartTask("check")
	w.FailTask("check", "exit status 1:\n\x1b[31mFAIL\x1b[0m TestAdd, and a very long reason that goes on and on and on and on and on")
	table := TaskTable(w.Fold.Picture(), func(task view.Task) string { return "outputs/" + task.Name + ".txt" })
	termtest.Golden(t, "table/wide.txt", table.Format(0, false))
	termtest.Golden(t, "table/120.txt", table.Format(120, false))
	termtest.Golden(t, "table/colors.txt", table.Format(0, true))
}

func TestTable(t *testing.T) {
	table := NewTable("NAME", "SIZE", "EMPTY", "NOTE").Right(1)
	table.Row("日本", "5", "", "wide")
	table.Row("plain", "12345", "", "a\tb\nc", "more cells than columns")
	table.Row("none")
	want := "NAME    SIZE  NOTE\n日本       5  wide\nplain  12345  a b c\nnone\n"
	if got := table.Format(0, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTableFits formats tables for narrow screens. No line is wider than the screen, and no column is
// lost.
func TestTableFits(t *testing.T) {
	table := NewTable("RUN", "WHAT", "STATUS", "TASKS", "TOOK", "FOLDER", "NOTE").Right(3, 4).Cut(1, 6)
	table.Row("20261115-112506-2dgcvkk", "Make div in calc.py safe", "failed", "19/30", "21s", "/home/me/big", "")
	table.Row("20261115-112606-0nmt4s4", "main", "running", "1/3", "4s", "/home/me/small", "waits for a person to approve a tool")
	for _, width := range []int{40, 60, 80, 100, 120, 200} {
		text := table.Format(width, false)
		for line := range strings.Lines(text) {
			if n := ansi.StringWidth(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("at %d columns a line has %d: %s", width, n, line)
			}
		}
		for _, whole := range []string{"RUN", "NOTE", "20261115-112506-2dgcvkk", "19/30", "/home/me/small", "waits for a"} {
			if !strings.Contains(text, whole) {
				t.Errorf("at %d columns %q is missing:\n%s", width, whole, text)
			}
		}
		if width == 40 || width == 80 || width == 120 {
			termtest.Golden(t, fmt.Sprintf("table/fits-%d.txt", width), text)
		}
	}
}

func TestHang(t *testing.T) {
	const text = "the program \x1b[31mcodex\x1b[0m is not there, so agents cannot use it"
	if got, want := Hang(text, 0, 4), Escape(text); got != want {
		t.Errorf("without a limit: %q", got)
	}
	if got, want := Hang("install Claude Code: npm install -g @anthropic-ai/claude-code", 40, 9), "install Claude Code: npm\n         install -g\n         @anthropic-ai/claude-code"; got != want {
		t.Errorf("flags and names are broken at a hyphen: %q", got)
	}
	if got, want := Hang("the program is not there, so agents cannot use it", 30, 4), "the program is not there,\n    so agents cannot use it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFormats(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", time.Microsecond: "1ms", 12 * time.Millisecond: "12ms", 400 * time.Millisecond: "0.4s", 3 * time.Second: "3s",
		3240 * time.Millisecond: "3.2s", 9960 * time.Millisecond: "9s", 41900 * time.Millisecond: "41s", 185 * time.Second: "3m05s", 123 * time.Minute: "2h03m", 76 * time.Hour: "3d04h"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%s) = %s, want %s", d.String(), got, want)
		}
	}
	for n, want := range map[int64]string{0: "", 950: "950", 999: "999", 1000: "1k", 1234: "1.2k", 9960: "10k", 45_200: "45k", 999_400: "999k", 999_600: "1M", 1_300_000: "1.3M", 2_000_000_000: "2G"} {
		if got := Tokens(swarm.Usage{InputTokens: n}); got != want {
			t.Errorf("Tokens(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "", 1: "1 token", 2: "2 tokens"} {
		if got := SomeTokens(swarm.Usage{InputTokens: n}); got != want {
			t.Errorf("SomeTokens(%d) = %s, want %s", n, got, want)
		}
	}
	if got := Tokens(swarm.Usage{OutputTokens: 5, Estimated: true}); got != "~5" {
		t.Error(got)
	}
	if got := Bytes(999) + ", " + Bytes(12_345); got != "999 B, 12 kB" {
		t.Error(got)
	}
	if got := USD(0) + USD(0.001) + USD(1.234); got != "<$0.01$1.23" {
		t.Error(got)
	}
}

func TestColor(t *testing.T) {
	for _, c := range []struct {
		flag     string
		env      map[string]string
		terminal bool
		want     bool
	}{
		{"auto", nil, true, true},
		{"", nil, false, false},
		{"auto", map[string]string{"NO_COLOR": "1"}, true, false},
		{"auto", map[string]string{"CLICOLOR": "0"}, true, false},
		{"auto", map[string]string{"TERM": "dumb"}, true, false},
		{"auto", map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{"auto", map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, true, false},
		{"always", map[string]string{"NO_COLOR": "1"}, false, true},
		{"never", nil, true, false},
	} {
		if got, err := Color(c.flag, func(k string) string { return c.env[k] }, c.terminal); got != c.want || err != nil {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := Color("alwys", func(string) string { return "" }, true); swarm.KindOf(err) != swarm.BadInput {
		t.Error(err)
	}
}

// Parts of a line that do not fit begin another, and a part is never broken.
func TestJoin(t *testing.T) {
	for width, want := range map[int]string{0: "run 7 · main · completed", 24: "run 7 · main · completed", 23: "run 7 · main ·\ncompleted", 14: "run 7 · main ·\ncompleted", 13: "run 7 ·\nmain ·\ncompleted", 9: "run 7 ·\nmain ·\ncompleted", 4: "run 7 ·\nmain ·\ncompleted"} {
		if got := Join([]string{"run 7", "main", "completed"}, " · ", width); got != want {
			t.Errorf("%d columns: %q", width, got)
		}
	}
}

// A help is broken between words. What stands in its second column stays there, and examples stay whole.
func TestReflow(t *testing.T) {
	text := "Run a pipeline, or tasks with their\ndependencies.\n\n  up       Run a pipeline, or some of its tasks\n  --a-long-flag when   when it is\n\n  swarm up --set pipelines.main.iterations=5\nUsage:\n"
	want := "Run a pipeline, or tasks with\ntheir dependencies.\n\n  up       Run a pipeline, or\n           some of its tasks\n  --a-long-flag when\n               when it is\n\n  swarm up --set pipelines.main.iterations=5\nUsage:\n"
	if got := Reflow(text, 30); got != want {
		t.Errorf("30 columns:\n%s", got)
	}
	for _, width := range []int{0, 80} {
		if got := Reflow(text, width); got != text {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}
