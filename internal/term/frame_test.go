package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/view"
)

// inTheMiddle is a run with a task in each state.
func inTheMiddle(t testing.TB) Frame {
	w := newTeller(t)
	w.begin(3, "plan", "code: plan", "check: code", "lint: plan", "a-task-with-quite-a-long-name: plan", "deploy: check lint", "ask: plan")
	w.startTask("plan")
	w.pass(12300 * time.Millisecond)
	w.complete("plan", 1234)
	w.startTask("code")
	w.startTask("lint")
	w.startTask("a-task-with-quite-a-long-name")
	w.startTask("ask")
	w.pass(3 * time.Second)
	w.fail("lint", "exit status 2: main.go:3:5: \x1b[31msyntax error\x1b[0m\nand more")
	w.endTurn("a-task-with-quite-a-long-name", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.RateLimited, Reason: "come back later"})
	w.tell(swarm.TaskRetrying, "a-task-with-quite-a-long-name", "", swarm.Retry{Iteration: 1, Attempt: 1, Reason: "come back later", After: 4 * time.Second})
	w.endTurn("ask", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: "no idea"})
	w.tell(swarm.TaskBlocked, "ask", "", swarm.Reason{Reason: "no idea"})
	w.pass(1500 * time.Millisecond)
	return Frame{Picture: w.fold.Picture(), Now: w.now, Width: 80, Height: 24,
		Saying: map[string]Saying{"code": {Line: "Writing \x1b]0;owned\x07 日本語 internal/term/board.go, and then a good deal more than fits", At: w.now, Usage: swarm.Usage{OutputTokens: 3400, Estimated: true}}}}
}

func TestFrames(t *testing.T) {
	for _, size := range [][2]int{{120, 24}, {80, 24}, {60, 10}, {40, 24}, {40, 7}, {80, 3}, {20, 1}} {
		f := inTheMiddle(t)
		f.Width, f.Height = size[0], size[1]
		got := f.Draw()
		golden(t, fmt.Sprintf("board/%dx%d.txt", size[0], size[1]), got+"\n")
		fits(t, got, size[0], size[1])
	}
}

// fits fails when a frame is larger than its terminal or has something in it that is not to be printed.
func fits(t *testing.T, frame string, width, height int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > max(1, height-1) {
		t.Errorf("%d lines in a terminal of %d", len(lines), height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			t.Errorf("%q is %d wide, the terminal %d", l, w, width)
		}
	}
}

func TestFrameStates(t *testing.T) {
	states := map[string]func(w *teller) Frame{
		"colors":   func(w *teller) Frame { f := inTheMiddle(w.t); f.Color = true; return f },
		"stopping": func(w *teller) Frame { f := inTheMiddle(w.t); f.Stops = 1; return f },
		"paused": func(w *teller) Frame {
			w.begin(1, "a", "b: a")
			w.tell(swarm.RunPausing, "", "", nil)
			w.tell(swarm.RunPaused, "", "", nil)
			return Frame{}
		},
		"over": func(w *teller) Frame {
			w.begin(1, "plan", "code: plan")
			w.startTask("plan")
			w.pass(2 * time.Minute)
			w.complete("plan", 2_345_678)
			w.startTask("code")
			w.pass(65 * time.Minute)
			w.fail("code", "exit status 1")
			w.tell(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Failed, Exit: 1, Reason: "code failed"})
			w.pass(time.Hour)
			return Frame{Over: true}
		},
		"interrupted": func(w *teller) Frame {
			w.begin(1, "plan", "code: plan")
			w.startTask("plan")
			w.tell(swarm.RunInterrupted, "", "", swarm.Reason{Reason: "stopped by Ctrl-C"})
			return Frame{Over: true}
		},
		"budget": func(w *teller) Frame {
			w.begin(1, "plan", "code: plan")
			w.startTask("plan")
			w.complete("plan", 10)
			w.tell(swarm.BudgetSpent, "", "", swarm.Reason{Reason: "200 calls were made"})
			w.tell(swarm.TaskCancelled, "code", "", swarm.TaskEnd{Reason: "budget"})
			return Frame{}
		},
		"asking": func(w *teller) Frame {
			w.begin(1, "one", "two", "fin: one")
			w.startTask("one")
			w.ask("one", "one/1/1/3fa9c1ab", `{"command":"touch made1.txt"}`)
			return Frame{Answers: true, Width: 200}
		},
		"asking-narrow": func(w *teller) Frame {
			w.begin(1, "one", "two", "fin: one")
			w.startTask("one")
			w.startTask("two")
			w.ask("one", "one/1/1/3fa9c1ab", `{"command":"echo \u001b[2J\u202e`+strings.Repeat("日本 ", 100)+`; rm -r x"}`)
			w.ask("two", "two/1/1/3fa9c1ab", `{"command":"ls"}`)
			w.ask("two", "two/1/1/aaaaaaaa", `{"command":"ls -l"}`)
			return Frame{Answers: true, Height: 24, Saying: map[string]Saying{"one": {Line: "Bash", At: w.now}}}
		},
		"asking-no-keys": func(w *teller) Frame {
			w.begin(1, "one", "two")
			w.startTask("one")
			w.ask("one", "one/1/1/3fa9c1ab", `{"command":"touch made1.txt"}`)
			return Frame{}
		},
		"team": func(w *teller) Frame {
			w.team("planner", "coder", "tester", "idle")
			w.letter(swarm.User, "planner", "Write it\nand test it")
			w.letter("planner", "coder", "1. write \x1b[2J it")
			w.letter("planner", "coder", "2. write more")
			w.tell(swarm.TaskStarted, "tester", "", swarm.Iteration{Iteration: 1, Of: 1})
			w.letter("coder", "tester", "test it")
			w.tell(swarm.TurnStarted, "tester", "tester/1/1", swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Inputs: swarm.Inputs{Upto: w.seq}})
			w.letter("coder", "tester", "test more")
			return Frame{Saying: map[string]Saying{"tester": {Line: "testing", At: w.now}}}
		},
		"team-waits": func(w *teller) Frame {
			w.team("planner", "coder", "tester", "idle", "gone")
			w.letter(swarm.User, "planner", "Write it")
			w.startTurn("planner")
			w.letter("planner", "coder", "write it")
			w.tell(swarm.WaitBegan, "planner", "planner/1/1", swarm.AgentWait{For: []string{"coder"}})
			w.tell(swarm.AgentPaused, "coder", "", nil)
			w.startTurn("tester")
			w.tell(swarm.HandoffStored, "", "", swarm.Envelope{Kind: swarm.Handoff, ID: "m-1", FromNodeID: "tester", ToNodeID: swarm.User,
				Payload: swarm.Payload{Message: "which one?", Response: &swarm.Response{Expectation: "required"}}})
			w.endTurn("tester", swarm.CallEnd{Status: swarm.CallOK})
			w.tell(swarm.AgentEnded, "gone", "", swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"})
			w.pass(3 * time.Second)
			return Frame{Height: 9}
		},
		"stalled": func(w *teller) Frame {
			w.team("planner", "coder")
			w.tell(swarm.Notice, "", "", swarm.Reason{Reason: "the run is paused: @planner says again that it has written to @coder, and has not: \"I told coder everything\"",
				Hint: "look at it with swarm show, say something with swarm send, and go on with swarm resume"})
			w.tell(swarm.RunPausing, "", "", nil)
			w.tell(swarm.RunPaused, "", "", nil)
			return Frame{Height: 10}
		},
		"many": func(w *teller) Frame {
			var tasks []string
			for i := range 100 {
				tasks = append(tasks, fmt.Sprintf("task-%02d", i))
			}
			w.begin(1, append(tasks, "last-one: task-00 task-99 task-98 task-97 task-96")...)
			for i := range 90 {
				w.startTask(tasks[i])
				switch {
				case i == 50:
					w.fail(tasks[i], "exit status 1")
				case i != 70:
					w.complete(tasks[i], 1)
				}
			}
			return Frame{Height: 12}
		},
	}
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			w := newTeller(t)
			f := state(w)
			if f.ID == "" {
				f.Picture, f.Now, f.Width = w.fold.Picture(), w.now, max(80, f.Width)
			}
			if f.Height == 0 {
				f.Height = 8
			}
			got := f.Draw()
			golden(t, "board/"+name+".txt", got+"\n")
			fits(t, got, f.Width, f.Height)
		})
	}
}

// Whatever the size and whatever strangers call things, a frame fits.
func FuzzFrame(f *testing.F) {
	f.Add(80, 24, "code", "\x1b[2J")
	f.Add(1, 1, "名前", "\u202ex")
	f.Fuzz(func(t *testing.T, width, height int, name, text string) {
		if width < 20 || width > 500 || height < 1 || height > 200 {
			return
		}
		p := view.Picture{Head: view.Head{ID: name, Name: text, Reason: text, Status: swarm.Failed, Started: start}}
		for i, s := range []swarm.Status{swarm.Running, swarm.Failed, swarm.Pending} {
			p.Tasks = append(p.Tasks, view.Task{Name: fmt.Sprint(name, i), Status: s, Reason: text, Iteration: 1, Iterations: 2})
		}
		p.Approvals = []view.Approval{{Approval: swarm.Approval{ID: text, What: text, Input: json.RawMessage(text)}, Task: name + "0"}}
		got := Frame{Picture: p, Now: start, Answers: true, Width: width, Height: height, Saying: map[string]Saying{name + "0": {Line: text, At: start}}}.Draw()
		fits(t, got, width, height)
		safe(t, got)
		if strings.Contains(got, "\t") {
			t.Errorf("a tab in %q", got)
		}
	})
}
