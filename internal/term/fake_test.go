package term

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

var start = time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)

// A teller makes events as a log would hold them.
type teller struct {
	t    testing.TB
	now  time.Time
	seq  int64
	to   []func(*swarm.Event)
	fold *view.Run
}

func newTeller(t testing.TB, to ...func(*swarm.Event)) *teller {
	return &teller{t: t, now: start, to: to, fold: view.New("20261115-0200-k7")}
}

func (w *teller) tell(kind swarm.EventKind, task, turn string, body any) {
	w.t.Helper()
	w.seq++
	e := &swarm.Event{Seq: w.seq, Time: w.now, Kind: kind, Task: task, Turn: turn}
	if t, ok := w.fold.Task(task); ok {
		e.Agent = t.Agent
	}
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		e.Data = data
	}
	if err := w.fold.Apply(e); err != nil {
		w.t.Fatal(err)
	}
	for _, f := range w.to {
		f(e)
	}
}

func (w *teller) pass(d time.Duration) { w.now = w.now.Add(d) }

// begin starts a run of a plan written as "name: what it depends on".
func (w *teller) begin(iterations int, tasks ...string) {
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
	w.tell(swarm.RunStarted, "", "", swarm.RunStart{ID: w.fold.ID, Kind: swarm.PipelineRun, Name: "main"})
	w.tell(swarm.PlanAdded, "", "", p)
}

func (w *teller) startTask(name string) {
	t, _ := w.fold.Task(name)
	w.tell(swarm.TaskStarted, name, "", swarm.Iteration{Iteration: t.Iteration, Of: t.Iterations})
	w.startTurn(name)
}

func (w *teller) startTurn(name string) {
	t, _ := w.fold.Task(name)
	w.tell(swarm.TurnStarted, name, swarm.TurnID(name, t.Iteration, t.Attempt+1), swarm.TurnStart{Iteration: t.Iteration, Attempt: t.Attempt + 1, Start: 1, Provider: "sh"})
}

func (w *teller) endTurn(name string, end swarm.CallEnd) {
	t, _ := w.fold.Task(name)
	end.Output, end.Bytes = swarm.HashOf([]byte(t.Turn)), 10
	w.tell(swarm.TurnEnded, name, t.Turn, end)
}

// team starts a run of agents that live on.
func (w *teller) team(names ...string) {
	p := swarm.Plan{Kind: swarm.TeamRun, Groups: []swarm.Group{{Iterations: 1}}}
	for _, name := range names {
		p.Tasks = append(p.Tasks, swarm.Task{Name: name, Agent: name})
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "sh"})
	}
	w.tell(swarm.RunStarted, "", "", swarm.RunStart{ID: w.fold.ID, Kind: swarm.TeamRun, Name: "Write it"})
	w.tell(swarm.PlanAdded, "", "", p)
}

// letter has one write to another.
func (w *teller) letter(from, to, text string) {
	w.tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, FromNodeID: from, ToNodeID: to, Payload: swarm.Payload{Message: text}})
}

// ask has the running turn of a task ask a person.
func (w *teller) ask(task, id, input string) {
	t, _ := w.fold.Task(task)
	w.tell(swarm.ApprovalAsked, task, t.Turn, swarm.Approval{ID: id, What: "use Bash", Tool: "Bash", Input: []byte(input)})
}

func (w *teller) complete(name string, tokens int64) {
	w.endTurn(name, swarm.CallEnd{Status: swarm.CallOK, Usage: swarm.Usage{Calls: 1, InputTokens: tokens, USD: 0.02, Estimated: name == "code"}})
	w.tell(swarm.TaskCompleted, name, "", swarm.TaskEnd{})
}

func (w *teller) fail(name, reason string) {
	w.endTurn(name, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: reason, Usage: swarm.Usage{Calls: 1}})
	w.tell(swarm.TaskFailed, name, "", swarm.TaskEnd{Kind: swarm.Exited, Reason: reason})
}
