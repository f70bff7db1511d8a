package term

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// beginSwarm starts a swarm whose third agent waits for the others.
func beginSwarm(w *termtest.Log) {
	plan := swarm.Plan{Kind: swarm.SwarmRun, Name: "Compare two markets", Team: &swarm.Team{Lead: swarm.Supervisor, MaxAgents: 10},
		Agents: []swarm.Agent{{Name: swarm.Supervisor, Provider: "model"}}, Swarm: &swarm.Swarm{Workers: 2, Iterations: 25}}
	w.Tell(swarm.RunStarted, "", "", swarm.RunStart{ID: termtest.RunID, Kind: swarm.SwarmRun, Name: plan.Name})
	w.Tell(swarm.PlanAdded, "", "", plan)
	w.Tell(swarm.RunOwned, "", "", swarm.Ownership{Fence: 1})
}

func divide(w *termtest.Log) {
	part := swarm.Plan{Kind: swarm.SwarmRun, Team: &swarm.Team{Lead: swarm.Supervisor, MaxAgents: 10}, Swarm: &swarm.Swarm{Workers: 2, Iterations: 25, Subtasks: []swarm.Subtask{
		{ID: "us", Description: "Who sells chips in the US,\nand how many\x1b[2J", Agent: "takao"}, {ID: "jp", Description: "The same for Japan", Agent: "mitaka"},
		{ID: "both", Description: "Compare the two", DependsOn: []string{"us", "jp"}, Agent: "nishi-kokubunji"}}}}
	for _, s := range part.Swarm.Subtasks {
		part.Agents = append(part.Agents, swarm.Agent{Name: s.Agent, Provider: "model"})
	}
	w.Tell(swarm.PlanAdded, "", "", part)
}

// iterate has an agent take an action.
func iterate(w *termtest.Log, agent string, n int, a swarm.Action) swarm.TurnID {
	turn := swarm.NewTurnID(agent, n, 1)
	w.Tell(swarm.TurnStarted, agent, turn, swarm.TurnStart{Iteration: n, Attempt: 1, Start: 1, Provider: "model"})
	w.Pass(2 * time.Second)
	end := swarm.CallEnd{Status: swarm.CallOK, Usage: swarm.Usage{Calls: 1, InputTokens: 1200}, Action: &a}
	if a.Kind == "" {
		end.Action = nil
	}
	w.Tell(swarm.TurnEnded, agent, turn, end)
	return turn
}

// tellSwarm tells a swarm from its beginning to the middle of its work.
func tellSwarm(w *termtest.Log, delta func(string, swarm.Delta)) {
	beginSwarm(w)
	delta(swarm.Supervisor, termtest.Text(`{"subtasks": []}`))
	iterate(w, swarm.Supervisor, 1, swarm.Action{})
	divide(w)
	delta("takao", termtest.Text(`{"action": "publish_data"`))
	turn := iterate(w, "takao", 1, swarm.Action{Kind: swarm.ActPublishData, Words: "publishes on findings: 80 %"})
	w.Tell(swarm.TopicPublished, "takao", turn, swarm.TopicEntry{Topic: "findings", Data: []byte(`"80 %\u001b[2J"`)})
	w.Tell(swarm.ActionEnded, "takao", turn, swarm.CallEnd{Status: swarm.CallOK})
	turn = iterate(w, "takao", 2, swarm.Action{Kind: swarm.ActToolCall, Tool: "file_read", Words: "calls file_read: us.md"})
	w.Tell(swarm.ActionEnded, "takao", turn, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.BadInput, Reason: "there is no us.md"})
	delta("mitaka", termtest.Text("Looking at\nthe files\n"))
	iterate(w, "mitaka", 1, swarm.Action{Kind: swarm.ActToolCall, Taken: true})
	entry := swarm.Plan{Kind: swarm.SwarmRun, Swarm: &swarm.Swarm{Entries: []swarm.Subtask{{ID: "t4", Description: "Check the\nfigures\x1b[2J", For: "takao"}}}}
	w.Tell(swarm.PlanAdded, "", "", entry)
	w.Tell(swarm.AgentEnded, "takao", "", swarm.AgentEnd{Outcome: swarm.OutcomeConverged, Reason: "3 actions in a row used no tool"})
	w.Tell(swarm.TurnStarted, "mitaka", "mitaka/2/1", swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1, Provider: "model"})
	w.Pass(time.Second)
}

func TestLinesOfASwarm(t *testing.T) {
	l, w, out := newLines(t, false)
	tellSwarm(w, l.Delta)
	iterate(w, "mitaka", 2, swarm.Action{Kind: swarm.ActDone, Words: "is done: Edge AI"})
	w.Tell(swarm.AgentEnded, "mitaka", "", swarm.AgentEnd{Outcome: swarm.OutcomeDone, Reason: "it is done"})
	w.Tell(swarm.AgentEnded, "nishi-kokubunji", "", swarm.AgentEnd{Outcome: swarm.OutcomeAborted, Reason: "3 actions in a row failed"})
	l.Delta(swarm.Supervisor, termtest.Text("The answer, which comes at the end of the run.\n"))
	iterate(w, swarm.Supervisor, 2, swarm.Action{})
	w.Tell(swarm.TaskCompleted, swarm.Supervisor, "", swarm.TaskEnd{})
	w.Tell(swarm.TaskCompleted, "takao", "", swarm.TaskEnd{})
	w.Tell(swarm.TaskFailed, "nishi-kokubunji", "", swarm.TaskEnd{Reason: "3 actions in a row failed"})
	w.Tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Completed, Answer: "supervisor/2/1"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	termtest.Golden(t, "lines/swarm.txt", out.String())
	termtest.Safe(t, out.String())
}

func TestFramesOfASwarm(t *testing.T) {
	for _, size := range [][2]int{{100, 24}, {60, 12}, {40, 24}, {40, 7}, {20, 3}} {
		w := termtest.NewLog(t)
		tellSwarm(w, func(string, swarm.Delta) {})
		f := Frame{Picture: w.Fold.Picture(), Now: w.Now(), Width: size[0], Height: size[1], Saying: map[string]Saying{"mitaka": {Line: `{"action": "tool`, At: w.Now()}}}
		got := f.Draw()
		termtest.Golden(t, fmt.Sprintf("board/swarm-%dx%d.txt", size[0], size[1]), got+"\n")
		termtest.Fits(t, got, size[0], max(1, size[1]-1))
	}
}

// A swarm that does a task has its agents below the task, whose row says what the swarm does.
func TestTheAgentsOfATasksSwarmAreOnTheBoard(t *testing.T) {
	child := Frame{Picture: view.Picture{Tasks: []view.Task{
		{Name: swarm.Supervisor, Agent: swarm.Supervisor, Status: swarm.Waiting, Waits: []view.Wait{{For: plan.ForMail}}},
		{Name: "takao", Agent: "takao", Status: swarm.Running, Iteration: 2, Iterations: 25, Doing: "calls file_list: docs", Subtask: &swarm.Subtask{ID: "t1", Agent: "takao"}},
	}, Head: view.Head{Swarm: &view.SwarmLimits{Iterations: 25, Workers: 3}}, Findings: []view.Finding{{Agent: "takao", Text: "it is A"}}}}
	f := Frame{Picture: view.Picture{Head: view.Head{ID: "r", Status: swarm.Running}, Tasks: []view.Task{
		{Name: "study", Agent: "study", Status: swarm.Running},
		{Name: "report", Agent: "report", Status: swarm.Pending},
	}}, Children: map[string]Frame{"study": child}, Width: 90, Height: 20}
	got := f.Draw()
	for _, want := range []string{
		"● study        running          plan: 1 subtask, at most 25 iterations\n",
		"● study/takao  running    2/25  calls file_list: docs\n",
		"· report       pending\n+ takao found: it is A\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the board has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "supervisor") {
		t.Error("the supervisor has a row:\n" + got)
	}
}

// Subtasks that wait for each other are not worked on at once.
func TestThePlanSaysHowManyWorkAtOnce(t *testing.T) {
	for needs, want := range map[string]string{"": "3 at once", "a": "2 at once", "ab": ""} {
		tasks := []view.Task{{Subtask: &swarm.Subtask{ID: "a"}}, {Subtask: &swarm.Subtask{ID: "b"}}, {Subtask: &swarm.Subtask{ID: "c"}}}
		if needs != "" {
			tasks[1].Subtask.DependsOn = []string{"a"}
		}
		if needs == "ab" {
			tasks[2].Subtask.DependsOn = []string{"b"}
		}
		got := PlanLine(&view.SwarmLimits{Iterations: 25, Workers: 3}, tasks)
		if want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "at once") {
			t.Errorf("needs %q: %s", needs, got)
		}
	}
}
