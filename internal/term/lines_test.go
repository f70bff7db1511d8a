package term

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/view"
)

func text(s string) swarm.Delta { return swarm.Delta{Kind: swarm.DeltaText, Text: s} }

// newLines is lines that print into a buffer, and who tells them of a run.
func newLines(t testing.TB, color bool) (*Lines, *teller, *bytes.Buffer) {
	var out bytes.Buffer
	l := NewLines(view.New("20261115-0200-k7"), &out, color)
	return l, newTeller(t, l.Event), &out
}

func tellAll(l *Lines, w *teller) {
	w.begin(2, "plan", "code: plan", "review: code plan", "a-name-that-is-too-long-for-its-column: plan")
	l.Delta("plan", text("said before its start was told\n"))
	w.startTask("plan")
	l.Delta("plan", text("one\ntw"))
	l.Delta("plan", text("o\r\n\n"))
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaThinking, Text: "hm\n"})
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaStderr, Text: "a warning\n"})
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "Read", Input: []byte(`{"path":"a.go"}`)}})
	l.Delta("plan", text("clear \x1b[2J and \x9b and \u202e\tand half 日"[:36]))
	w.pass(3200 * time.Millisecond)
	w.complete("plan", 1234)
	w.startTask("code")
	w.tell(swarm.TurnStarted, "code", "code/1/1", swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 2, Provider: "sh"})
	w.pass(time.Second)
	w.endTurn("code", swarm.CallEnd{Status: swarm.CallFailed, Reason: "exit status 1"})
	w.tell(swarm.TaskRetrying, "code", "code/1/1", swarm.Retry{Iteration: 1, Attempt: 1, Reason: "exit status 1:\nsecond line", After: 2 * time.Second})
	w.tell(swarm.RunPausing, "", "", nil)
	w.tell(swarm.RunPaused, "", "", nil)
	w.pass(time.Second)
	w.tell(swarm.RunUnpaused, "", "", nil)
	w.pass(2 * time.Second)
	w.startTurn("code")
	l.Delta("code", text("no newline at the end"))
	w.complete("code", 45000)
	w.startTask("review")
	w.fail("review", "exit status 2")
	w.tell(swarm.Notice, "", "", swarm.Reason{Reason: "money has no price", Hint: "set price"})
	w.tell(swarm.BudgetSpent, "", "", swarm.Reason{Reason: "200 calls"})
	w.tell(swarm.TaskCancelled, "a-name-that-is-too-long-for-its-column", "", swarm.TaskEnd{Reason: "budget"})
	w.tell(swarm.IterationStarted, "", "", swarm.Iteration{Iteration: 2, Of: 2})
	w.startTask("plan")
	w.tell(swarm.RunInterrupted, "", "", swarm.Reason{Reason: "Ctrl-C"})
	w.tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Failed, Exit: 3, Reason: "the budget is spent"})
	l.Delta("plan", text("cut off"))
}

func TestLines(t *testing.T) {
	for _, name := range []string{"plain", "colors"} {
		l, w, out := newLines(t, name == "colors")
		tellAll(l, w)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		golden(t, "lines/"+name+".txt", out.String())
		if name == "plain" {
			safe(t, out.String())
		}
	}
}

// Where a prompt differs from the recorded one, its lines stay lines.
func TestDifferencesAreLines(t *testing.T) {
	l, w, out := newLines(t, false)
	w.begin(1, "plan")
	w.startTask("plan")
	out.Reset()
	why := "run.cas: the prompt is not the recorded one (- recorded, + now):\n@@ line 5 @@\n You plan.\n-Line two\x1b[2J\n+Line 2"
	w.endTurn("plan", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Mismatch, Reason: why})
	w.tell(swarm.TaskFailed, "plan", "", swarm.TaskEnd{Kind: swarm.Mismatch, Reason: why})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := `plan    failed: run.cas: the prompt is not the recorded one (- recorded, + now) (0s)
plan      @@ line 5 @@
plan       You plan.
plan      -Line two\x1b[2J
plan      +Line 2
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	table := TaskTable(w.fold.Picture(), nil).Format(0, false)
	if !strings.HasSuffix(table, "run.cas: the prompt is not the recorded one (- recorded, + now)\n") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestATeamHasAgents(t *testing.T) {
	_, w, out := newLines(t, false)
	w.team("planner", "coder")
	if want := "swarm     run 20261115-0200-k7: Write it, 2 agents\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// A line without an end fills no memory, and nothing of it is lost: it goes on in other lines.
func TestHugeLinesGoOn(t *testing.T) {
	l, w, out := newLines(t, false)
	w.begin(1, "plan")
	w.startTask("plan")
	out.Reset()
	for range 100 {
		l.Delta("plan", text(strings.Repeat("é", 1000)))
	}
	if out.Len() < 100_000 {
		t.Errorf("only %d bytes of a line that has not ended are printed", out.Len())
	}
	l.Delta("plan", text("\nshort\n"))
	said := ""
	for line := range strings.Lines(out.String()) {
		if len(line) > maxLine+100 {
			t.Errorf("a line of %d bytes", len(line))
		}
		said += strings.TrimSuffix(strings.TrimPrefix(line, "plan  | "), "\n")
	}
	if said != strings.Repeat("é", 100_000)+"short" {
		t.Errorf("%d bytes were printed", len(said))
	}
}

func TestManyTasksSayNothingOfWaiting(t *testing.T) {
	l, w, out := newLines(t, false)
	tasks := []string{"first"}
	for i := range fewTasks {
		tasks = append(tasks, fmt.Sprintf("task-%d: first", i))
	}
	w.begin(1, tasks...)
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("%d lines:\n%s", got, out)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Many agents speak at once: each line comes out whole, in its task's order, and none is missing.
func TestLinesOfManyAgents(t *testing.T) {
	const agents, said = 16, 200
	l, w, out := newLines(t, false)
	var tasks []string
	for i := range agents {
		tasks = append(tasks, fmt.Sprintf("task-%02d", i))
	}
	w.begin(1, tasks...)
	for _, name := range tasks {
		w.startTask(name)
	}
	out.Reset()
	var all sync.WaitGroup
	for _, name := range tasks {
		all.Go(func() {
			for k := range said {
				line := fmt.Sprintf("%s says %d\n", name, k)
				l.Delta(name, text(line[:5]))
				l.Delta(name, text(line[5:]))
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(line, " | ")
		if want := fmt.Sprintf("%s says %d\n", name, next[name]); rest != want {
			t.Fatalf("%q, want %q", line, want)
		}
		next[name]++
	}
	for _, name := range tasks {
		if next[name] != said {
			t.Errorf("%s has %d lines, want %d", name, next[name], said)
		}
	}
}

func TestLinesReportWhatCannotBeWritten(t *testing.T) {
	r, pipe := io.Pipe()
	gone := errors.New("nobody reads")
	r.CloseWithError(gone)
	l := NewLines(view.New("r"), pipe, false)
	w := newTeller(t, l.Event)
	w.begin(1, "plan")
	l.Event(&swarm.Event{Seq: 99, Kind: swarm.Tick})
	if err := l.Close(); !errors.Is(err, gone) {
		t.Errorf("closed with %v", err)
	}
}

// Whatever an agent says, and however it is cut in pieces, comes out as lines with its name in front that are safe to print.
func FuzzLines(f *testing.F) {
	f.Add("a\nb", "\x1b[2J")
	f.Add("\xe6\x97", "\xa5\r\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		l, w, out := newLines(t, false)
		w.begin(1, "plan")
		w.startTask("plan")
		out.Reset()
		l.Delta("plan", text(first))
		l.Delta("plan", text(second))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		safe(t, out.String())
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "plan  | ") {
				t.Errorf("%q", line)
			}
		}
		if whole := first + second; len(whole) < maxLine {
			if whole != "" && !strings.HasSuffix(whole, "\n") {
				whole += "\n"
			}
			if got := strings.ReplaceAll("\n"+out.String(), "\nplan  | ", "\n")[1:]; got != Escape(whole) {
				t.Errorf("%q was said, %q printed, want %q", first+second, got, Escape(whole))
			}
		}
	})
}

func BenchmarkLines(b *testing.B) {
	line := strings.Repeat("a line of output as agents write them, ", 3) + "\n"
	l := NewLines(view.New("r"), io.Discard, false)
	w := newTeller(b, l.Event)
	w.begin(1, "plan")
	w.startTask("plan")
	b.Run("delta", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			l.Delta("plan", text(line))
		}
	})
	b.Run("floor", func(b *testing.B) { // one copy of the same bytes
		var buf bytes.Buffer
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			buf.Reset()
			buf.WriteString(line)
		}
	})
}

// A task that has spoken costs nothing: runs have thousands.
func TestLinesKeepNothingOfWhoHasSpoken(t *testing.T) {
	l, w, _ := newLines(t, false)
	w.begin(1, "plan")
	w.startTask("plan")
	l.Delta("plan", text(strings.Repeat("x", 2*maxLine)))
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaStderr, Text: "no newline"})
	w.complete("plan", 1)
	if n := len(l.print.voices); n > 0 {
		t.Errorf("%d voices are kept", n)
	}
}
