package termtest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarm"
	"swarm/internal/view"
)

// RunID is the run that a [Log] tells of.
const RunID = "20261115-0200-k7"

// Start is when it begins.
var Start = time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)

// A Log makes events as the log of a run would hold them, and feeds screens with them. Its clock is the test's.
type Log struct {
	Fold *view.Run

	t     testing.TB
	clock atomic.Int64 // since Start; a screen may read it while an event waits for the screen
	mu    sync.Mutex   // one event at a time
	seq   int64
	feed  []func(*swarm.Event)
}

// NewLog makes a log that feeds these.
func NewLog(t testing.TB, feed ...func(*swarm.Event)) *Log {
	return &Log{Fold: view.New(RunID), t: t, feed: feed}
}

// Feed adds one more who is told of events.
func (l *Log) Feed(to func(*swarm.Event)) { l.feed = append(l.feed, to) }

// Now is the time.
func (l *Log) Now() time.Time { return Start.Add(time.Duration(l.clock.Load())) }

// Pass has time pass.
func (l *Log) Pass(d time.Duration) { l.clock.Add(int64(d)) }

// Seq is the number of the last event.
func (l *Log) Seq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Task is where a task stands.
func (l *Log) Task(name string) (view.Task, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Fold.Task(name)
}

// Tell makes the next event.
func (l *Log) Tell(kind swarm.EventKind, task string, turn swarm.TurnID, body any) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e := swarm.NewEvent(kind, body)
	e.Seq, e.Time, e.Task, e.Turn = l.seq, l.Now(), task, turn
	if t, ok := l.Fold.Task(task); ok {
		e.Agent = t.Agent
	}
	if err := l.Fold.Apply(&e); err != nil {
		l.t.Error(err)
	}
	for _, f := range l.feed {
		f(&e)
	}
}

// Begin starts a pipeline whose tasks are written as "name: what it depends on".
func (l *Log) Begin(iterations int, tasks ...string) {
	p := swarm.Plan{Kind: swarm.PipelineRun, Name: "main", Groups: []swarm.Group{{Iterations: iterations}}, Budget: swarm.Budget{Calls: 200}}
	for _, line := range tasks {
		name, deps, _ := strings.Cut(line, ":")
		task := swarm.Task{Name: name, Agent: name}
		for _, d := range strings.Fields(deps) {
			task.DependsOn = append(task.DependsOn, swarm.Dependency{Task: d, Condition: swarm.OnAny})
		}
		p.Tasks = append(p.Tasks, task)
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "sh"})
	}
	l.Tell(swarm.RunStarted, "", "", swarm.RunStart{ID: RunID, Kind: swarm.PipelineRun, Name: "main"})
	l.Tell(swarm.PlanAdded, "", "", p)
}

// BeginTeam starts a run of agents that live on.
func (l *Log) BeginTeam(names ...string) {
	p := swarm.Plan{Kind: swarm.TeamRun, Team: &swarm.Team{}}
	for _, name := range names {
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "sh"})
	}
	l.Tell(swarm.RunStarted, "", "", swarm.RunStart{ID: RunID, Kind: swarm.TeamRun, Name: "Write it"})
	l.Tell(swarm.PlanAdded, "", "", p)
	l.Tell(swarm.RunOwned, "", "", swarm.Ownership{Fence: 1})
}

// BeginSession starts a run whose plan grows by lines.
func (l *Log) BeginSession() {
	l.Tell(swarm.RunStarted, "", "", swarm.RunStart{ID: RunID, Kind: swarm.LineRun})
}

// StartTask starts a task and its turn.
func (l *Log) StartTask(name string) {
	t, _ := l.Task(name)
	l.Tell(swarm.TaskStarted, name, "", swarm.Iteration{Iteration: t.Iteration, Of: t.Iterations})
	l.StartTurn(name)
}

// StartTurn starts the next attempt of a task.
func (l *Log) StartTurn(name string) {
	t, _ := l.Task(name)
	l.Tell(swarm.TurnStarted, name, swarm.NewTurnID(name, t.Iteration, t.Attempt+1), swarm.TurnStart{Iteration: t.Iteration, Attempt: t.Attempt + 1, Start: 1, Provider: "sh"})
}

// EndTurn ends the turn of a task.
func (l *Log) EndTurn(name string, end swarm.CallEnd) {
	t, _ := l.Task(name)
	end.Output, end.Bytes = swarm.HashOf([]byte(t.Turn)), 10
	l.Tell(swarm.TurnEnded, name, t.Turn, end)
}

// CompleteTask ends a task and its turn. The tokens of a task called code are estimated.
func (l *Log) CompleteTask(name string, tokens int64) {
	l.EndTurn(name, swarm.CallEnd{Status: swarm.CallOK, Usage: swarm.Usage{Calls: 1, InputTokens: tokens, USD: 0.02, Estimated: name == "code"}})
	l.Tell(swarm.TaskCompleted, name, "", swarm.TaskEnd{})
}

// FailTask has a task and its turn fail.
func (l *Log) FailTask(name, reason string) {
	l.EndTurn(name, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: reason, Usage: swarm.Usage{Calls: 1}})
	l.Tell(swarm.TaskFailed, name, "", swarm.TaskEnd{Kind: swarm.Exited, Reason: reason})
}

// CancelTask has a task cancelled.
func (l *Log) CancelTask(name string) {
	l.Tell(swarm.TaskCancelled, name, "", swarm.TaskEnd{Reason: "Ctrl-C"})
}

// Send has one agent write to another.
func (l *Log) Send(from, to, text string) {
	l.Tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, FromNodeID: from, ToNodeID: to, Payload: swarm.Payload{Message: text}})
}

// Ask has the running turn of a task ask a person.
func (l *Log) Ask(task, id, input string) {
	t, _ := l.Task(task)
	l.Tell(swarm.ApprovalAsked, task, t.Turn, swarm.Approval{ID: id, What: "use Bash", Tool: "Bash", Input: []byte(input)})
}

// Text is what an agent says.
func Text(s string) swarm.Delta { return swarm.Delta{Kind: swarm.DeltaText, Text: s} }
