package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// inTheMiddle is a run with a task in each state.
func inTheMiddle(t testing.TB) Frame {
	w := termtest.NewLog(t)
	w.Begin(3, "plan", "code: plan", "check: code", "lint: plan", "a-task-with-quite-a-long-name: plan", "deploy: check lint", "ask: plan")
	w.StartTask("plan")
	w.Pass(12300 * time.Millisecond)
	w.CompleteTask("plan", 1234)
	w.StartTask("code")
	w.StartTask("lint")
	w.StartTask("a-task-with-quite-a-long-name")
	w.StartTask("ask")
	w.Pass(3 * time.Second)
	w.FailTask("lint", "exit status 2: main.go:3:5: \x1b[31msyntax error\x1b[0m\nand more")
	w.EndTurn("a-task-with-quite-a-long-name", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.RateLimited, Reason: "come back later"})
	w.Tell(swarm.TaskRetrying, "a-task-with-quite-a-long-name", "", swarm.Retry{Iteration: 1, Attempt: 1, Reason: "come back later", After: 4 * time.Second})
	w.EndTurn("ask", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: "no idea"})
	w.Tell(swarm.TaskBlocked, "ask", "", swarm.Reason{Reason: "no idea"})
	w.Pass(1500 * time.Millisecond)
	return Frame{Picture: w.Fold.Picture(), Now: w.Now(), Width: 80, Height: 24,
		Saying: map[string]Saying{"code": {Line: "Writing \x1b]0;owned\x07 日本語 internal/term/board.go, and then a good deal more than fits", At: w.Now(), Usage: swarm.Usage{OutputTokens: 3400, Estimated: true}}}}
}

func TestFrames(t *testing.T) {
	for _, size := range [][2]int{{120, 24}, {80, 24}, {60, 10}, {40, 24}, {40, 7}, {80, 3}, {20, 1}} {
		f := inTheMiddle(t)
		f.Width, f.Height = size[0], size[1]
		got := f.Draw()
		termtest.Golden(t, fmt.Sprintf("board/%dx%d.txt", size[0], size[1]), got+"\n")
		termtest.Fits(t, got, size[0], max(1, size[1]-1))
	}
}

func TestFrameStates(t *testing.T) {
	states := map[string]func(w *termtest.Log) Frame{
		"colors":   func(w *termtest.Log) Frame { f := inTheMiddle(t); f.Color = true; return f },
		"stopping": func(w *termtest.Log) Frame { f := inTheMiddle(t); f.Stops = 1; return f },
		"paused": func(w *termtest.Log) Frame {
			w.Begin(1, "a", "b: a")
			w.Tell(swarm.RunPausing, "", "", nil)
			w.Pass(5 * time.Second)
			w.Tell(swarm.RunPaused, "", "", nil)
			w.Pass(time.Minute) // the clock stands
			return Frame{}
		},
		"over": func(w *termtest.Log) Frame {
			w.Begin(1, "plan", "code: plan")
			w.StartTask("plan")
			w.Pass(2 * time.Minute)
			w.CompleteTask("plan", 2_345_678)
			w.StartTask("code")
			w.Pass(65 * time.Minute)
			w.FailTask("code", "exit status 1")
			w.Tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Failed, Exit: 1, Reason: "code failed"})
			w.Pass(time.Hour)
			return Frame{}
		},
		"interrupted": func(w *termtest.Log) Frame {
			w.Begin(1, "plan", "code: plan")
			w.StartTask("plan")
			w.Tell(swarm.RunInterrupted, "", "", swarm.Reason{Reason: "stopped by Ctrl-C"})
			return Frame{}
		},
		"budget": func(w *termtest.Log) Frame {
			w.Begin(1, "plan", "code: plan")
			w.StartTask("plan")
			w.CompleteTask("plan", 10)
			w.Tell(swarm.BudgetSpent, "", "", swarm.Reason{Reason: "200 calls were made"})
			w.Tell(swarm.TaskCancelled, "code", "", swarm.TaskEnd{Reason: "budget"})
			return Frame{}
		},
		"asking": func(w *termtest.Log) Frame {
			w.Begin(1, "one", "two", "fin: one")
			w.StartTask("one")
			w.Ask("one", "one/1/1/3fa9c1ab", `{"command":"touch made1.txt"}`)
			return Frame{Answers: true, Width: 200}
		},
		"asking-narrow": func(w *termtest.Log) Frame {
			w.Begin(1, "one", "two", "fin: one")
			w.StartTask("one")
			w.StartTask("two")
			w.Ask("one", "one/1/1/3fa9c1ab", `{"command":"echo \u001b[2J\u202e`+strings.Repeat("日本 ", 100)+`; rm -r x"}`)
			w.Ask("two", "two/1/1/3fa9c1ab", `{"command":"ls"}`)
			w.Ask("two", "two/1/1/aaaaaaaa", `{"command":"ls -l"}`)
			return Frame{Answers: true, Height: 24, Saying: map[string]Saying{"one": {Line: "Bash", At: w.Now()}}}
		},
		"asking-no-keys": func(w *termtest.Log) Frame {
			w.Begin(1, "one", "two")
			w.StartTask("one")
			w.Ask("one", "one/1/1/3fa9c1ab", `{"command":"touch made1.txt"}`)
			return Frame{}
		},
		"asked-narrow": func(w *termtest.Log) Frame {
			w.BeginTeam("planner", "coder")
			w.StartTurn("coder")
			w.Tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, ID: "m-c065501d0000000000000000", FromNodeID: "coder", ToNodeID: swarm.User,
				Payload: swarm.Payload{Message: "Which Python is it to be, 2 or 3?\nThe tests run with both of them.", Response: &swarm.Response{Expectation: "required"}}})
			w.EndTurn("coder", swarm.CallEnd{Status: swarm.CallOK})
			return Frame{Answers: true, Width: 40, Height: 24}
		},
		"team": func(w *termtest.Log) Frame {
			w.BeginTeam("planner", "coder", "tester", "idle")
			w.Send(swarm.User, "planner", "Write it\nand test it")
			w.Send("planner", "coder", "1. write \x1b[2J it")
			w.Send("planner", "coder", "2. write more")
			w.Tell(swarm.TaskStarted, "tester", "", swarm.Iteration{Iteration: 1, Of: 1})
			w.Send("coder", "tester", "test it")
			w.Tell(swarm.TurnStarted, "tester", "tester/1/1", swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Inputs: swarm.Inputs{Upto: w.Seq()}})
			w.Send("coder", "tester", "test more")
			return Frame{Saying: map[string]Saying{"tester": {Line: "testing", At: w.Now()}}}
		},
		"team-waits": func(w *termtest.Log) Frame {
			w.BeginTeam("planner", "coder", "tester", "idle", "gone")
			w.Send(swarm.User, "planner", "Write it")
			w.StartTurn("planner")
			w.Send("planner", "coder", "write it")
			w.Tell(swarm.WaitBegan, "planner", "planner/1/1", swarm.AgentWait{For: []string{"coder"}})
			w.Tell(swarm.AgentPaused, "coder", "", nil)
			w.StartTurn("tester")
			w.Tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, ID: "m-1", FromNodeID: "tester", ToNodeID: swarm.User,
				Payload: swarm.Payload{Message: "which one?", Response: &swarm.Response{Expectation: "required"}}})
			w.EndTurn("tester", swarm.CallEnd{Status: swarm.CallOK})
			w.Tell(swarm.AgentEnded, "gone", "", swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"})
			w.Pass(3 * time.Second)
			return Frame{Height: 9}
		},
		"stalled": func(w *termtest.Log) Frame {
			w.BeginTeam("planner", "coder")
			w.Tell(swarm.Notice, "", "", swarm.Reason{Paused: true, Reason: "the run is paused: @planner says again that it has written to @coder, and has not: \"I told coder everything\"",
				Hint: "look at it with swarm show, say something with swarm send, and go on with swarm resume"})
			w.Tell(swarm.RunPausing, "", "", nil)
			w.Tell(swarm.RunPaused, "", "", nil)
			return Frame{Height: 10}
		},
		"many": func(w *termtest.Log) Frame {
			var tasks []string
			for i := range 100 {
				tasks = append(tasks, fmt.Sprintf("task-%02d", i))
			}
			w.Begin(1, append(tasks, "last-one: task-00 task-99 task-98 task-97 task-96")...)
			for i := range 90 {
				w.StartTask(tasks[i])
				switch {
				case i == 50:
					w.FailTask(tasks[i], "exit status 1")
				case i != 70:
					w.CompleteTask(tasks[i], 1)
				}
			}
			return Frame{Height: 12}
		},
	}
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			w := termtest.NewLog(t)
			f := state(w)
			if f.ID == "" {
				f.Picture, f.Now, f.Width = w.Fold.Picture(), w.Now(), max(80, f.Width)
			}
			if f.Height == 0 {
				f.Height = 8
			}
			got := f.Draw()
			termtest.Golden(t, "board/"+name+".txt", got+"\n")
			termtest.Fits(t, got, f.Width, f.Height-1)
		})
	}
}

// A frame fits at any size and with any names.
func FuzzFrame(f *testing.F) {
	f.Add(80, 24, "code", "\x1b[2J")
	f.Add(1, 1, "名前", "\u202ex")
	f.Fuzz(func(t *testing.T, width, height int, name, text string) {
		if width < 20 || width > 500 || height < 1 || height > 200 {
			return
		}
		p := view.Picture{Head: view.Head{ID: swarm.RunID(name), Name: text, Reason: text, Status: swarm.Failed, Started: termtest.Start}}
		for i, s := range []swarm.Status{swarm.Running, swarm.Failed, swarm.Pending} {
			p.Tasks = append(p.Tasks, view.Task{Name: fmt.Sprint(name, i), Status: s, Reason: text, Iteration: 1, Iterations: 2})
		}
		p.Approvals = []view.Approval{{Approval: swarm.Approval{ID: text, What: text, Input: json.RawMessage(text)}, Task: name + "0"}}
		got := Frame{Picture: p, Now: termtest.Start, Answers: true, Width: width, Height: height, Saying: map[string]Saying{name + "0": {Line: text, At: termtest.Start}}}.Draw()
		termtest.Fits(t, got, width, max(1, height-1))
		termtest.Safe(t, got)
		if strings.Contains(got, "\t") {
			t.Errorf("a tab in %q", got)
		}
	})
}
