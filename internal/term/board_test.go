package term

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"swarm"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

type boardTest struct {
	*Board
	*termtest.Log
	*termtest.Terminal
	stops  chan int
	pauses chan bool
	said   chan string // answers to questions
	sent   chan string // messages
}

func newBoardTest(t *testing.T) *boardTest {
	b := &boardTest{Log: termtest.NewLog(t), Terminal: termtest.NewTerminal(t), stops: make(chan int, 10), pauses: make(chan bool, 10), said: make(chan string, 10), sent: make(chan string, 10)}
	b.Board = NewBoard(view.New(termtest.RunID), BoardOptions{Terminal: Terminal{In: b.In, Out: b.Terminal, Now: b.Now, Env: b.Env(), Size: func() (int, int) { return 80, 24 }, Drawn: b.Drawn},
		Interrupt: func(n int) { b.stops <- n }, Pause: func(on bool) { b.pauses <- on },
		Answer: func(id string, ok bool) error {
			if b.said <- fmt.Sprint(id, " ", ok); id == "broken" {
				return errors.New("the disk is full")
			}
			return nil
		},
		Send: func(agent, question, text string) error {
			b.sent <- agent + " " + question + " " + text
			return nil
		}})
	b.Feed(b.Event)
	return b
}

func TestBoard(t *testing.T) {
	b := newBoardTest(t)
	b.Begin(2, "plan", "code: plan")
	b.StartTask("plan")
	b.Delta("plan", termtest.Text(strings.Repeat("word ", 16)+"last\nfirst line\nsecond \x1b[2J li"))
	b.Delta("plan", termtest.Text("ne"))
	b.Delta("plan", swarm.Delta{Kind: swarm.DeltaUsage, Usage: swarm.Usage{OutputTokens: 1234}})
	b.WaitForFrame("plan  streaming  1/2", `second \x1b[2J line`, "1.2k", "code  waiting")
	b.Tell(swarm.DeskChanged, "plan", "", swarm.DeskStatus{State: "running", Step: "drawing", Done: 3, Total: 5, Metrics: []byte(`{"files":12}`)})
	b.WaitForFrame(`1.2k  3/5 drawing, {"files":12}`) // without the state, which the row has
	b.CompleteTask("plan", 10)
	b.WaitForFrame("plan  completed")
	b.Press("p")
	if on := <-b.pauses; !on {
		t.Error("p asked the run to go on")
	}
	b.Tell(swarm.RunPausing, "", "", nil)
	b.WaitForFrame("pausing", "p lets it go on")
	b.Press("p")
	if on := <-b.pauses; on {
		t.Error("p asked a paused run to pause")
	}
	for n := 1; n <= 2; n++ {
		b.Press("\x03")
		if got := <-b.stops; got != n {
			t.Errorf("Ctrl-C came as number %d, want %d", got, n)
		}
	}
	b.WaitForFrame("Ctrl-C again kills")
	b.Tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Cancelled})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"plan    first line\r\n", "plan  | first line\r\n", `plan  | second \x1b[2J line`, "swarm   cancelled", "word\r\n        word word last\r\n"} {
		if printed := strings.Contains(b.Terminal.String(), line); printed != !strings.Contains(line, "    first") {
			t.Errorf("%q was printed above the board: %v", line, printed)
		}
	}
	if strings.Contains(b.Terminal.String(), "\x1b[?1049h") {
		t.Error("the board took the whole screen")
	}
}

// Keys answer the oldest question, once it has stood there long enough to be read, and each only
// once.
func TestBoardAnswers(t *testing.T) {
	b := newBoardTest(t)
	b.Begin(1, "one", "two")
	b.StartTask("one")
	b.StartTask("two")
	press := func(keys string) { // and waits until they were taken: p comes last
		b.Press(keys + "p")
		<-b.pauses
	}
	said := func(want string) {
		t.Helper()
		if got := <-b.said; got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
	press("a") // there is no question
	b.Ask("one", "q1", `{"command":"touch made1.txt"}`)
	b.Ask("two", "q2", `{"command":"rm -r x"}`)
	b.WaitForFrame("one  blocked", "? 1 of 2: may one run touch made1.txt?", "a allows it · d denies it")
	press("a") // too fast for a person to have read it
	b.Pass(settledAfter)
	press("aa")
	said("q1 true")
	b.WaitForFrame("? may two run rm -r x?", "one  running")
	b.Pass(settledAfter)
	press("d")
	said("q2 false")
	b.Tell(swarm.ApprovalAnswered, "one", "one/1/1", swarm.ApprovalAnswer{ID: "q1", OK: true})
	b.Ask("one", "broken", `{"command":"ls"}`)
	b.WaitForFrame("may one run ls?")
	b.Pass(settledAfter)
	b.Press("a")
	b.WaitForFrame("! the answer did not reach the run: the disk is full", "may one run ls?")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	said("broken true")
	if n := len(b.said); n > 0 {
		t.Errorf("%d answers more than keys", n)
	}
}

// Arrows choose a task, Enter looks into it, m writes to its agent, ? explains the keys, Esc goes back.
func TestBoardKeys(t *testing.T) {
	b := newBoardTest(t)
	b.BeginTeam("planner", "coder")
	b.StartTurn("coder")
	b.Delta("coder", termtest.Text("I read it.\nThen I "))
	b.Delta("coder", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "Edit", Input: []byte(`{"file_path":"a.go"}`)}})
	b.WaitForFrame("coder", "? help")
	b.Press("\x1b[B\x1b[B")
	b.WaitForFrame("◉▸coder")
	b.Press("\r")
	b.WaitForFrame("| I read it.", "| Then I", "| > Edit a.go", "Esc back")
	b.Press("?")
	b.WaitForFrame("Enter   look into it", "m       write to its agent")
	b.Press("\x1b")
	b.WaitForFrame("◉▸coder", "· planner")
	b.Press("m")
	b.WaitForFrame("to @coder: ▏", "Enter sends")
	b.Press("Use tabsx\x7f, pad?")
	b.WaitForFrame("to @coder: Use tabs, pad?▏")
	b.Press("\r")
	if got := <-b.sent; got != "coder  Use tabs, pad?" {
		t.Errorf("sent %q", got)
	}
	b.Tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, ID: "m-1", FromNodeID: "coder", ToNodeID: swarm.User,
		Payload: swarm.Payload{Message: "Python 2 or 3?", Response: &swarm.Response{Expectation: "required"}}})
	b.EndTurn("coder", swarm.CallEnd{Status: swarm.CallOK})
	b.WaitForFrame("? @coder asks you: Python 2 or 3?", `swarm reply m-1 "…"`)
	b.Press("\x1b")
	b.WaitForFrame("◌ coder")
	b.Press("m")
	b.WaitForFrame("answer to @coder: ▏")
	// What is written now answers the question that was there when it was begun, and no later one.
	b.Tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, ID: "m-2", FromNodeID: swarm.User, ToNodeID: "coder", Payload: swarm.Payload{Message: "Three", Response: &swarm.Response{ReplyTo: "m-1"}}})
	b.StartTurn("coder")
	b.Press("Three\r")
	if got := <-b.sent; got != "coder m-1 Three" {
		t.Errorf("sent %q", got)
	}
	b.WaitForFrame("● coder") // nothing is chosen
	if len(b.pauses)+len(b.said) > 0 {
		t.Error("keys of a message were taken for commands")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// A blocked terminal must not stop the run: events and deltas are accepted, and drawn together
// later.
func TestBoardNeverWaits(t *testing.T) {
	b := newBoardTest(t)
	release := b.Hold()
	b.Begin(1, "plan", "code: plan")
	b.StartTask("plan")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				b.Delta("plan", termtest.Text(fmt.Sprintf("line %d\n", i)))
			}
		})
	}
	all.Wait()
	b.CompleteTask("plan", 10)
	release()
	b.WaitForFrame("plan  completed")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := b.Frames(); n > 1000 {
		t.Errorf("%d frames were drawn for 20,000 lines", n)
	}
}

func TestBoardTellsOfBrokenEvents(t *testing.T) {
	b := newBoardTest(t)
	b.Begin(1, "plan")
	b.Event(&swarm.Event{Seq: 99, Kind: swarm.Tick})
	b.WaitForFrame("! event 99 comes after event 2")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLastLine(t *testing.T) {
	for spoken, want := range map[string]string{
		"":                                "",
		"one":                             "one",
		"one\n":                           "one",
		"one\n\n":                         "one",
		"one\ntwo":                        "two",
		"10%\r20%\r":                      "20%",
		strings.Repeat("x", 9000):         strings.Repeat("x", tailBytes),
		strings.Repeat("x\n", 9000) + "y": "y",
	} {
		var whole, pieces lastLine
		whole.add(spoken)
		for _, b := range []byte(spoken) {
			pieces.add(string(b))
		}
		if string(whole.tail) != want || string(pieces.tail) != want {
			t.Errorf("%.20q: last is %.20q, in pieces %.20q, want %.20q", spoken, whole.tail, pieces.tail, want)
		}
	}
}
