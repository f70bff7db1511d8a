package repl

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// safe fails when a text holds something that does more to a terminal than to be seen and to have a colour.
func safe(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%q is no UTF-8", text)
	}
	for _, r := range colors.ReplaceAllString(text, "") {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028 {
			t.Errorf("%q holds %U", text, r)
			return
		}
	}
}

// fits fails when a drawing is larger than its screen.
func fits(t *testing.T, d drawing, width, height int) {
	t.Helper()
	lines := strings.Split(d.text, "\n")
	if len(lines) != height {
		t.Errorf("%d rows on a screen of %d:\n%s", len(lines), height, d.text)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			t.Errorf("%q is %d wide, the screen %d", l, w, width)
		}
	}
	if d.x < 0 || d.x >= width || d.y < 0 || d.y >= height {
		t.Errorf("the cursor is at %d, %d on a screen of %d×%d", d.x, d.y, width, height)
	}
}

var start = time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)

var team = []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}

// A fakeSession understands as much of lines as faces have to be tested with: @agents, $references, & and some commands. What its
// tasks do is up to the test.
type fakeSession struct {
	t     testing.TB
	feed  []interface{ Event(*swarm.Event) }
	stops chan int
	made  chan string   // tasks, when they are there
	hold  chan struct{} // Enter waits for it, if there is one

	mu      sync.Mutex
	now     time.Time
	seq     int64
	team    Team
	count   map[string]int
	entered []string
	fold    *view.Run
}

func newFake(t testing.TB) *fakeSession {
	f := &fakeSession{t: t, stops: make(chan int, 10), made: make(chan string, 1000), now: start, team: Team{team, "pm"}, count: map[string]int{}, fold: view.New("20261115-0200-k7")}
	return f
}

func (f *fakeSession) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeSession) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// begin feeds a face from here on.
func (f *fakeSession) begin(face interface{ Event(*swarm.Event) }) {
	f.feed = append(f.feed, face)
	f.tell(swarm.RunStarted, "", "", swarm.RunStart{ID: f.fold.ID, Kind: swarm.LineRun})
}

func (f *fakeSession) tell(kind swarm.EventKind, task, turn string, body any) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	e := &swarm.Event{Seq: f.seq, Time: f.now, Kind: kind, Task: task, Turn: turn}
	if t, ok := f.fold.Task(task); ok {
		e.Agent = t.Agent
	}
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			f.t.Fatal(err)
		}
		e.Data = data
	}
	if err := f.fold.Apply(e); err != nil {
		f.t.Error(err)
	}
	for _, face := range f.feed {
		face.Event(e)
	}
}

// start begins the turn of a task.
func (f *fakeSession) start(task string) {
	f.tell(swarm.TaskStarted, task, "", swarm.Iteration{Iteration: 1, Of: 1})
	f.tell(swarm.TurnStarted, task, swarm.TurnID(task, 1, 1), swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1})
}

func (f *fakeSession) complete(task string) {
	f.tell(swarm.TurnEnded, task, swarm.TurnID(task, 1, 1), swarm.CallEnd{Status: swarm.CallOK, Output: swarm.HashOf([]byte(task)), Usage: swarm.Usage{Calls: 1, InputTokens: 1234, USD: 0.02}})
	f.tell(swarm.TaskCompleted, task, "", swarm.TaskEnd{})
}

func (f *fakeSession) fail(task, reason string) {
	f.tell(swarm.TurnEnded, task, swarm.TurnID(task, 1, 1), swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: reason})
	f.tell(swarm.TaskFailed, task, "", swarm.TaskEnd{Kind: swarm.Exited, Reason: reason})
}

func (f *fakeSession) cancel(task string) {
	f.tell(swarm.TaskCancelled, task, "", swarm.TaskEnd{Reason: "Ctrl-C"})
}

func (f *fakeSession) Team() Team {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.team
}

var pieces = regexp.MustCompile(`[@$][a-z][a-z0-9-]*|->|&$|^/[a-z]+|--model|\\\$`)

func (f *fakeSession) Preview(text string) (p Preview) {
	agents := f.Team().Agents
	p.AtOnce = strings.HasPrefix(text, "/status") || strings.HasPrefix(text, "/quit")
	for _, at := range pieces.FindAllStringIndex(text, -1) {
		t := Token{Start: at[0], End: at[1]}
		switch word := text[at[0]:at[1]]; {
		case word == "->":
			t.Kind = ArrowToken
		case word == "&":
			t.Kind = BackgroundToken
		case word == "--model":
			t.Kind = FlagToken
		case word == `\$`:
			t.Kind = EscapeToken
		case word == "/nosuch":
			t.Kind = WrongToken
			p.Problem = &Refused{"There is no command /nosuch", "", at[0], at[1]}
		case word[0] == '/':
			t.Kind = CommandToken
		case !slices.Contains(agents, word[1:]):
			t.Kind = WrongToken
			p.Problem = &Refused{"Unknown agent reference: " + word + ". Valid agents: " + strings.Join(agents, ", "), `write \` + word + " for the text itself", at[0], at[1]}
		case word[0] == '@':
			t.Kind = AgentToken
			p.Plan += word
		default:
			t.Kind = ReferenceToken
			p.Plan += " after @" + word[1:]
		}
		p.Tokens = append(p.Tokens, t)
	}
	return p
}

func (f *fakeSession) Complete(text string, cursor int) (found []Candidate) {
	at := strings.LastIndexAny(text[:cursor], " \n") + 1
	word := text[at:cursor]
	for _, name := range append([]string{"/status", "/stop", "/quit"}, team...) {
		switch {
		case word == "":
		case word[0] == '@' || word[0] == '$':
			name = word[:1] + name
			fallthrough
		default:
			if strings.HasPrefix(name, word) && !strings.Contains(name[1:], "/") {
				found = append(found, Candidate{Text: name + " ", Start: at, End: cursor})
			}
		}
	}
	return found
}

func (f *fakeSession) Enter(text string) (Entered, error) {
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	f.entered = append(f.entered, text)
	f.mu.Unlock()
	switch {
	case text == "/quit":
		return Entered{Quit: true}, nil
	case text == "/panic":
		panic("oh dear")
	case text == "/broken":
		return Entered{}, swarm.Errorf(swarm.Storage, "the disk is full").WithHint("make room")
	case strings.HasPrefix(text, "/use @"):
		f.mu.Lock()
		f.team.Default = text[len("/use @"):]
		f.mu.Unlock()
		return Entered{}, nil
	case strings.HasPrefix(text, "/") && text != "/nosuch":
		return Entered{Answer: "TASK  STATUS\npm_1  completed \x1b[31mred\n"}, nil
	}
	if p := f.Preview(text).Problem; p != nil {
		return Entered{}, p
	}
	line, background := strings.CutSuffix(text, "&")
	who := f.Team().Default
	if strings.HasPrefix(line, "@") {
		who, line, _ = strings.Cut(line[1:], " ")
	}
	e := Entered{Background: background}
	p := swarm.Plan{Kind: swarm.LineRun, Open: true, Groups: []swarm.Group{{Iterations: 1}}}
	for agent := range strings.SplitSeq(who, ",") {
		task := f.task(agent, line)
		if strings.Contains(line, "notice") {
			e.Notices = append(e.Notices, "the last good output of @pm is used")
		}
		p.Tasks = append(p.Tasks, task)
		p.Agents = append(p.Agents, swarm.Agent{Name: agent})
		e.Tasks = append(e.Tasks, task.Name)
	}
	f.tell(swarm.PlanAdded, "", "", p)
	for _, task := range e.Tasks {
		select {
		case f.made <- task:
		default: // nobody waits for so many
		}
	}
	return e, nil
}

// await waits until a task is there.
func (f *fakeSession) await(task string) {
	f.t.Helper()
	for {
		select {
		case made := <-f.made:
			if made == task {
				return
			}
		case <-time.After(20 * time.Second):
			f.t.Fatalf("there is no task %s", task)
		}
	}
}

// task is a task that waits for those of the agents that its text refers to.
func (f *fakeSession) task(agent, text string) swarm.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[agent]++
	task := swarm.Task{Name: fmt.Sprintf("%s_%d", agent, f.count[agent]), Agent: agent}
	for _, word := range pieces.FindAllString(text, -1) {
		if word[0] != '$' {
			continue
		}
		name := fmt.Sprintf("%s_%d", word[1:], f.count[word[1:]])
		if t, ok := f.fold.Task(name); !ok {
			task.Awaits = append(task.Awaits, word[1:])
		} else if !t.Status.Ended() {
			task.DependsOn = append(task.DependsOn, swarm.Dependency{Task: name, Condition: swarm.OnNeeded})
		}
	}
	return task
}

func (f *fakeSession) Interrupt(times int) { f.stops <- times }

func (f *fakeSession) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.entered)
}

func text(s string) swarm.Delta { return swarm.Delta{Kind: swarm.DeltaText, Text: s} }
