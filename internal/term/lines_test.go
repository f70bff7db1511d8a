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
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// newLines makes lines that print into a buffer, and a function that feeds them a run.
func newLines(t testing.TB, color bool) (*Lines, *termtest.Log, *bytes.Buffer) {
	var out bytes.Buffer
	l := NewLines(view.New("20261115-0200-k7"), &out, color)
	return l, termtest.NewLog(t, l.Event), &out
}

func tellAll(l *Lines, w *termtest.Log) {
	w.Begin(2, "plan", "code: plan", "review: code plan", "a-name-that-is-too-long-for-its-column: plan")
	w.StartTask("plan")
	l.Delta("plan", termtest.Text("one\ntw"))
	l.Delta("plan", termtest.Text("o\r\n\n"))
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaThinking, Text: "hm\n"})
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaStderr, Text: "a warning\n"})
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "Read", Input: []byte(`{"path":"a.go"}`)}})
	l.Delta("plan", termtest.Text("clear \x1b[2J and \x9b and \u202e\tand half 日"[:36]))
	w.Pass(3200 * time.Millisecond)
	w.CompleteTask("plan", 1234)
	w.StartTask("code")
	w.Tell(swarm.TurnStarted, "code", "code/1/1", swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 2, Provider: "sh"})
	w.Pass(time.Second)
	w.EndTurn("code", swarm.CallEnd{Status: swarm.CallFailed, Reason: "exit status 1"})
	w.Tell(swarm.TaskRetrying, "code", "code/1/1", swarm.Retry{Iteration: 1, Attempt: 1, Reason: "exit status 1:\nsecond line", After: 2 * time.Second})
	w.Tell(swarm.RunPausing, "", "", nil)
	w.Tell(swarm.RunPaused, "", "", nil)
	w.Pass(time.Second)
	w.Tell(swarm.RunUnpaused, "", "", nil)
	w.Pass(2 * time.Second)
	w.StartTurn("code")
	l.Delta("code", termtest.Text("no newline at the end"))
	w.CompleteTask("code", 45000)
	w.StartTask("review")
	w.FailTask("review", "exit status 2")
	w.Tell(swarm.Notice, "", "", swarm.Reason{Reason: "money has no price", Hint: "set price"})
	w.Tell(swarm.BudgetSpent, "", "", swarm.Reason{Reason: "200 calls"})
	w.Tell(swarm.TaskCancelled, "a-name-that-is-too-long-for-its-column", "", swarm.TaskEnd{Reason: "budget"})
	w.Tell(swarm.IterationStarted, "", "", swarm.Iteration{Iteration: 2, Of: 2})
	w.StartTask("plan")
	w.Tell(swarm.RunInterrupted, "", "", swarm.Reason{Reason: "Ctrl-C"})
	w.Tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Failed, Exit: 3, Reason: "the budget is spent"})
	l.Delta("plan", termtest.Text("cut off"))
}

func TestLines(t *testing.T) {
	for _, name := range []string{"plain", "colors"} {
		l, w, out := newLines(t, name == "colors")
		tellAll(l, w)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		termtest.Golden(t, "lines/"+name+".txt", out.String())
		if name == "plain" {
			termtest.Safe(t, out.String())
		}
	}
}

// Where a prompt differs from the recorded one, the lines of the diff stay lines.
func TestDifferencesAreLines(t *testing.T) {
	l, w, out := newLines(t, false)
	w.Begin(1, "plan")
	w.StartTask("plan")
	out.Reset()
	why := "run.cas: the prompt is not the recorded one (- recorded, + now):\n@@ line 5 @@\n You plan.\n-Line two\x1b[2J\n+Line 2"
	w.EndTurn("plan", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Mismatch, Reason: why})
	w.Tell(swarm.TaskFailed, "plan", "", swarm.TaskEnd{Kind: swarm.Mismatch, Reason: why})
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
	table := TaskTable(w.Fold.Picture(), nil).Format(0, false)
	if !strings.HasSuffix(table, "run.cas: the prompt is not the recorded one (- recorded, + now)\n") {
		t.Errorf("the table is\n%s", table)
	}
}

// Words come before the tool call that they announce, and a call is not JSON. Each turn of a team's
// agent has a start, and a question to a person is whole.
func TestLinesOfATeamsTurns(t *testing.T) {
	l, w, out := newLines(t, false)
	w.BeginTeam("planner", "coder")
	out.Reset()
	w.StartTurn("coder")
	l.Delta("coder", termtest.Text("I look at it."))
	l.Delta("coder", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "Read", Input: []byte(`{"file_path":"calc.py","limit":10}`)}})
	l.Delta("coder", termtest.Text("May I?"))
	l.Unattended = true
	w.Ask("coder", "coder/1/1/x", `{"command":"make"}`)
	question := "Python 2 or 3? " + strings.Repeat("It matters. ", 60)
	w.Tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, ID: "m-1", FromNodeID: "coder", ToNodeID: swarm.User,
		Payload: swarm.Payload{Message: question, Response: &swarm.Response{Expectation: "required"}}})
	w.EndTurn("coder", swarm.CallEnd{Status: swarm.CallOK})
	w.Tell(swarm.TurnStarted, "coder", "coder/2/1", swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1})
	want := "coder     started\n" +
		"coder   | I look at it.\n" +
		"coder   > Read calc.py\n" +
		"coder   | May I?\n" +
		"coder     may it run make? swarm approve coder/1/1/x, or swarm deny coder/1/1/x\n" +
		"coder     this run is unattended: it waits until the question is answered from another terminal;" +
		" to run without a person, write in the compose file: approvals: {tools: deny}, or auto\n" +
		"swarm     @coder asks you: " + strings.TrimSpace(question) + ` · swarm reply m-1 "…"` + "\n" +
		"coder     started (turn 2)\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// A turn that a retry keeps is not started and did not run.
func TestKeptTurns(t *testing.T) {
	l, w, out := newLines(t, false)
	w.Begin(1, "plan", "code: plan")
	out.Reset()
	l.run.From = "20261115-0100-aa"
	w.Tell(swarm.TurnCarriedOver, "plan", "plan/1/1", swarm.CallEnd{Status: swarm.CallOK})
	w.Tell(swarm.TaskStarted, "plan", "", swarm.Iteration{Iteration: 1, Of: 1})
	w.Tell(swarm.TurnEnded, "plan", "plan/1/1", swarm.CallEnd{Status: swarm.CallOK, CarriedOver: true})
	w.Tell(swarm.TaskCompleted, "plan", "", swarm.TaskEnd{})
	w.StartTask("code")
	want := "plan    completed: kept from 20261115-0100-aa\ncode    started\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestATeamHasAgents(t *testing.T) {
	_, w, out := newLines(t, false)
	w.BeginTeam("planner", "coder")
	if want := "swarm     run 20261115-0200-k7: Write it, 2 agents\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// A line without an end needs little memory, and nothing of it is lost: it goes on in other lines.
func TestHugeLinesGoOn(t *testing.T) {
	l, w, out := newLines(t, false)
	w.Begin(1, "plan")
	w.StartTask("plan")
	out.Reset()
	for range 100 {
		l.Delta("plan", termtest.Text(strings.Repeat("é", 1000)))
	}
	if out.Len() < 100_000 {
		t.Errorf("only %d bytes of a line that has not ended are printed", out.Len())
	}
	l.Delta("plan", termtest.Text("\nshort\n"))
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
	w.Begin(1, tasks...)
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("%d lines:\n%s", got, out)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Many agents speak at once. Each line comes out whole, in its task's order, and none is missing.
func TestLinesOfManyAgents(t *testing.T) {
	const agents, said = 16, 200
	l, w, out := newLines(t, false)
	var tasks []string
	for i := range agents {
		tasks = append(tasks, fmt.Sprintf("task-%02d", i))
	}
	w.Begin(1, tasks...)
	for _, name := range tasks {
		w.StartTask(name)
	}
	out.Reset()
	var all sync.WaitGroup
	for _, name := range tasks {
		all.Go(func() {
			for k := range said {
				line := fmt.Sprintf("%s says %d\n", name, k)
				l.Delta(name, termtest.Text(line[:5]))
				l.Delta(name, termtest.Text(line[5:]))
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
	w := termtest.NewLog(t, l.Event)
	w.Begin(1, "plan")
	l.Event(&swarm.Event{Seq: 99, Kind: swarm.Tick})
	if err := l.Close(); !errors.Is(err, gone) {
		t.Errorf("closed with %v", err)
	}
}

// Whatever an agent says, and however it is cut in pieces, it comes out as lines with its name in
// front that are safe to print.
func FuzzLines(f *testing.F) {
	f.Add("a\nb", "\x1b[2J")
	f.Add("\xe6\x97", "\xa5\r\n")
	f.Add("0", "\r")
	f.Fuzz(func(t *testing.T, first, second string) {
		l, w, out := newLines(t, false)
		w.Begin(1, "plan")
		w.StartTask("plan")
		out.Reset()
		l.Delta("plan", termtest.Text(first))
		l.Delta("plan", termtest.Text(second))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		termtest.Safe(t, out.String())
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "plan  | ") {
				t.Errorf("%q", line)
			}
		}
		if whole := first + second; len(whole) < maxLine {
			want := Escape(whole)
			if whole != "" && !strings.HasSuffix(whole, "\n") { // the end of the last line is not the agent's
				want += "\n"
			}
			if got := strings.ReplaceAll("\n"+out.String(), "\nplan  | ", "\n")[1:]; got != want {
				t.Errorf("%q was said, %q printed, want %q", whole, got, want)
			}
		}
	})
}

func BenchmarkLines(b *testing.B) {
	line := strings.Repeat("a line of output as agents write them, ", 3) + "\n"
	l := NewLines(view.New("r"), io.Discard, false)
	w := termtest.NewLog(b, l.Event)
	w.Begin(1, "plan")
	w.StartTask("plan")
	b.Run("delta", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			l.Delta("plan", termtest.Text(line))
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

// A task that has spoken leaves nothing behind: runs have thousands.
func TestLinesKeepNothingOfWhoHasSpoken(t *testing.T) {
	l, w, _ := newLines(t, false)
	w.Begin(1, "plan")
	w.StartTask("plan")
	l.Delta("plan", termtest.Text(strings.Repeat("x", 2*maxLine)))
	l.Delta("plan", swarm.Delta{Kind: swarm.DeltaStderr, Text: "no newline"})
	w.CompleteTask("plan", 1)
	if n := len(l.print.outputs); n > 0 {
		t.Errorf("%d voices are kept", n)
	}
}

// Lines know whether they have printed all words of a task's last turn. Those of a reader who came in
// the middle of the turn have not.
func TestLinesKnowWhatTheyPrinted(t *testing.T) {
	v := view.New("20261115-0200-k7")
	fold := func(e *swarm.Event) {
		if err := v.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	feed := fold
	w := termtest.NewLog(t, func(e *swarm.Event) { feed(e) })
	w.Begin(1, "plan", "code")
	w.StartTask("plan")
	l := NewLines(v, io.Discard, false)
	feed = l.Event
	l.Delta("plan", termtest.Text("the rest\n"))
	w.StartTask("code")
	if l.Said("plan") || l.Said("code") || l.Said("nobody") {
		t.Error("words that nobody has printed are taken as printed")
	}
	l.Delta("code", termtest.Text("all of it\n"))
	if !l.Said("code") {
		t.Error("printed words are forgotten")
	}
	w.EndTurn("code", swarm.CallEnd{Status: swarm.CallFailed, Reason: "exit status 1"})
	w.Tell(swarm.TaskRetrying, "code", "code/1/1", swarm.Retry{Iteration: 1, Attempt: 1})
	w.StartTurn("code")
	if l.Said("code") {
		t.Error("words of an earlier attempt are taken for those of the last")
	}
}
