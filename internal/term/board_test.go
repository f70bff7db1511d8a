package term

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarm"
	"swarm/internal/view"
)

// A fakeTerminal keeps what is written to it; writing waits while it is held.
type fakeTerminal struct {
	hold sync.Mutex
	mu   sync.Mutex
	got  bytes.Buffer
}

func (f *fakeTerminal) Write(b []byte) (int, error) {
	f.hold.Lock()
	defer f.hold.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got.Write(b)
}

func (f *fakeTerminal) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got.String()
}

type boardTest struct {
	*Board
	*teller
	screen *fakeTerminal
	keys   *io.PipeWriter
	frames chan string
	stops  chan int
	pauses chan bool
	said   chan string  // answers to questions
	later  atomic.Int64 // how much time has passed
}

func newBoardTest(t *testing.T) *boardTest {
	in, keys := io.Pipe()
	b := &boardTest{screen: &fakeTerminal{}, keys: keys, frames: make(chan string, 10_000), stops: make(chan int, 10), pauses: make(chan bool, 10), said: make(chan string, 10)}
	b.Board = NewBoard(view.New("20261115-0200-k7"), BoardOptions{Terminal: Terminal{In: in, Out: b.screen, Now: func() time.Time { return start.Add(time.Duration(b.later.Load())) },
		Env: []string{"TERM=xterm", "TERM_PROGRAM=Apple_Terminal"}, Size: func() (int, int) { return 80, 24 },
		Drawn: func(f string) {
			select {
			case b.frames <- f:
			default:
			}
		}},
		Interrupt: func(n int) { b.stops <- n }, Pause: func(on bool) { b.pauses <- on },
		Answer: func(id string, ok bool) error {
			if b.said <- fmt.Sprint(id, " ", ok); id == "broken" {
				return errors.New("the disk is full")
			}
			return nil
		}})
	b.teller = newTeller(t, b.Event)
	t.Cleanup(func() { keys.Close() })
	return b
}

// waitFor waits for a frame that has all of these in it.
func (b *boardTest) waitFor(parts ...string) string {
	b.t.Helper()
	for {
		select {
		case f := <-b.frames:
			all := true
			for _, p := range parts {
				all = all && strings.Contains(f, p)
			}
			if all {
				return f
			}
		case <-time.After(20 * time.Second):
			b.t.Fatalf("no frame with %q", parts)
		}
	}
}

func (b *boardTest) press(key string) {
	b.t.Helper()
	if _, err := io.WriteString(b.keys, key); err != nil {
		b.t.Fatal(err)
	}
}

func TestBoard(t *testing.T) {
	b := newBoardTest(t)
	b.begin(2, "plan", "code: plan")
	b.startTask("plan")
	b.Delta("plan", text("first line\nsecond \x1b[2J li"))
	b.Delta("plan", text("ne"))
	b.Delta("plan", swarm.Delta{Kind: swarm.DeltaUsage, Usage: swarm.Usage{OutputTokens: 1234}})
	b.waitFor("plan  streaming  1/2", `second \x1b[2J line`, "1.2k", "code  waiting")
	b.complete("plan", 10)
	b.waitFor("plan  completed")
	b.press("p")
	if on := <-b.pauses; !on {
		t.Error("p asked the run to go on")
	}
	b.tell(swarm.RunPausing, "", "", nil)
	b.waitFor("pausing", "p lets it go on")
	b.press("p")
	if on := <-b.pauses; on {
		t.Error("p asked a paused run to pause")
	}
	for n := 1; n <= 2; n++ {
		b.press("\x03")
		if got := <-b.stops; got != n {
			t.Errorf("Ctrl-C came as number %d, want %d", got, n)
		}
	}
	b.waitFor("Ctrl-C again kills")
	b.tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Cancelled})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	last := b.waitFor("cancelled")
	if strings.Contains(last, "Ctrl-C") || !strings.Contains(b.screen.String(), "cancelled") {
		t.Errorf("the last picture is\n%s", last)
	}
	if strings.Contains(b.screen.String(), "\x1b[?1049h") {
		t.Error("the board took the whole screen")
	}
}

// Keys answer the oldest question, once it has stood there long enough to be read, and each only once.
func TestBoardAnswers(t *testing.T) {
	b := newBoardTest(t)
	b.begin(1, "one", "two")
	b.startTask("one")
	b.startTask("two")
	press := func(keys string) { // and waits until they were taken: p comes last
		b.press(keys + "p")
		<-b.pauses
	}
	said := func(want string) {
		t.Helper()
		if got := <-b.said; got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
	press("a") // nobody has asked anything
	b.ask("one", "q1", `{"command":"touch made1.txt"}`)
	b.ask("two", "q2", `{"command":"rm -r x"}`)
	b.waitFor("one  blocked", "? 1 of 2: may one use Bash touch made1.txt?", "a allows it · d denies it")
	press("a") // nobody reads as fast as that
	b.later.Add(int64(settledAfter))
	press("aa")
	said("q1 true")
	b.waitFor("? may two use Bash rm -r x?", "one  running")
	b.later.Add(int64(settledAfter))
	press("d")
	said("q2 false")
	b.tell(swarm.ApprovalAnswered, "one", "one/1/1", swarm.ApprovalAnswer{ID: "q1", OK: true})
	b.ask("one", "broken", `{"command":"ls"}`)
	b.waitFor("may one use Bash ls?")
	b.later.Add(int64(settledAfter))
	b.press("a")
	b.waitFor("! the answer did not reach the run: the disk is full", "may one use Bash ls?")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	said("broken true")
	if n := len(b.said); n > 0 {
		t.Errorf("%d answers more than keys", n)
	}
}

// A terminal that takes nothing must not stop the run: events and deltas are taken all the same, and drawn together later.
func TestBoardNeverWaits(t *testing.T) {
	b := newBoardTest(t)
	b.screen.hold.Lock()
	b.begin(1, "plan", "code: plan")
	b.startTask("plan")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				b.Delta("plan", text(fmt.Sprintf("line %d\n", i)))
			}
		})
	}
	all.Wait()
	b.complete("plan", 10)
	b.screen.hold.Unlock()
	b.waitFor("plan  completed")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(b.frames); n > 1000 {
		t.Errorf("%d frames were drawn for 20,000 lines", n)
	}
}

func TestBoardTellsOfBrokenEvents(t *testing.T) {
	b := newBoardTest(t)
	b.begin(1, "plan")
	b.Event(&swarm.Event{Seq: 99, Kind: swarm.Tick})
	b.waitFor("! event 99 comes after event 2")
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
		var whole, pieces said
		whole.add(spoken)
		for _, b := range []byte(spoken) {
			pieces.add(string(b))
		}
		if string(whole.tail) != want || string(pieces.tail) != want {
			t.Errorf("%.20q: last is %.20q, in pieces %.20q, want %.20q", spoken, whole.tail, pieces.tail, want)
		}
	}
}
