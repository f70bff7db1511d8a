package repl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/termtest"
)

// fits fails if a drawing does not have the size of its screen.
func fits(t *testing.T, d drawing, width, height int) {
	t.Helper()
	termtest.Fits(t, d.text, width, height)
	if n := strings.Count(d.text, "\n") + 1; n != height {
		t.Errorf("%d rows on a screen of %d:\n%s", n, height, d.text)
	}
	if d.x < 0 || d.x >= width || d.y < 0 || d.y >= height {
		t.Errorf("the cursor is at %d, %d on a screen of %d×%d", d.x, d.y, width, height)
	}
}

var team = []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}

// A fakeSession understands as much of lines as the tests of faces need: @agents, $references, &
// and some commands. The test decides what its tasks do.
type fakeSession struct {
	*termtest.Log
	stops chan int
	made  chan string   // tasks, when they are there
	hold  chan struct{} // Enter waits for it, if there is one

	t       testing.TB
	mu      sync.Mutex
	team    Team
	count   map[string]int
	entered []string
}

func newFake(t testing.TB) *fakeSession {
	return &fakeSession{Log: termtest.NewLog(t), t: t, stops: make(chan int, 10), made: make(chan string, 1000), team: Team{team, "pm"}, count: map[string]int{}}
}

// begin feeds a face from here on.
func (f *fakeSession) begin(face interface{ Event(*swarm.Event) }) {
	f.Feed(face.Event)
	f.BeginSession()
}

// complete ends a task.
func (f *fakeSession) complete(task string) { f.CompleteTask(task, 1234) }

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
	f.Tell(swarm.PlanAdded, "", "", p)
	for _, task := range e.Tasks {
		select {
		case f.made <- task:
		default: // no test waits for so many
		}
	}
	return e, nil
}

// await waits until a task exists.
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

// task makes a task that waits for the agents to which its text refers.
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
		if t, ok := f.Task(name); !ok {
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
