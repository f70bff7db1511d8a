package repl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/term"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// inTheMiddle is a session with much going on.
func inTheMiddle(t *testing.T, width, height int, color bool) *desk {
	d := newDesk(t, width, height, Options{Terminal: term.Terminal{Color: color}, Greeting: "The team of swarm.yaml. /help says what can be typed."})
	d.press("@pm Create a detailed project plan for the thing that we talked about yesterday", "enter")
	d.Pass(200 * time.Millisecond)
	d.StartTask("pm_1")
	d.screen.Delta("pm_1", termtest.Text("# Plan\n\n1. Look at what is there: internal/repl has a screen, and it must not flicker when agents talk, not even when all talk.\n"))
	d.screen.Delta("pm_1", termtest.Text("2. 日本語 and \x1b]0;owned\x07 too\n3. Done"))
	d.Pass(12300 * time.Millisecond)
	d.complete("pm_1")
	d.frame()
	d.press("@ba Write requirements &", "enter")
	d.StartTask("ba_1")
	d.press("@reviewer Look at $writer when there is something &", "enter")
	d.press("@pm,ba do it again &", "enter")
	d.press("@builder-2 wait for $nosuch", "enter")
	d.press("@builder-1 Implement $pm with $ba", "enter")
	d.screen.Delta("ba_1", termtest.Text("The requirements are:\n- it works\n- it is"))
	d.press("@writer Document $builder-1", "enter", "and then some more", "enter")
	d.Pass(4 * time.Second)
	d.press("@builder-1 Fix what $reviewer says about $nobody -> @pm close it &")
	return d
}

func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{160, 48}, {120, 30}, {80, 24}, {80, 14}, {60, 20}, {40, 10}, {30, 5}, {20, 2}, {10, 1}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			d := inTheMiddle(t, size[0], size[1], false)
			termtest.Golden(t, fmt.Sprintf("screen/%dx%d.txt", size[0], size[1]), d.frame()+"\n")
		})
	}
	termtest.Golden(t, "screen/colors.txt", inTheMiddle(t, 100, 26, true).frame()+"\n")
}

// A screen that was resized shows the same as one that had the size from the beginning.
func TestResizing(t *testing.T) {
	d := inTheMiddle(t, 120, 30, false)
	for _, size := range [][2]int{{80, 24}, {50, 12}, {200, 60}, {120, 30}} {
		d.frame()
		d.do(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if got, want := d.frame(), inTheMiddle(t, size[0], size[1], false).frame(); got != want {
			t.Errorf("resized to %v:\n%s\nwant\n%s", size, got, want)
		}
	}
}

// Of fifty agents, the busy ones are shown, and the number of those without room.
func TestManyAgents(t *testing.T) {
	d := newDesk(t, 100, 30, Options{})
	d.team.Agents = nil
	for i := range 50 {
		d.team.Agents = append(d.team.Agents, fmt.Sprintf("agent-%02d", i))
	}
	d.m.refreshTeam()
	d.press("@agent-30,agent-40 do it &", "enter")
	d.StartTask("agent-40_1")
	d.StartTask("agent-30_1")
	d.sees("● @agent-30: executing", "● @agent-40: executing", "· @agent-00: idle", "… 43 more (43 idle)")
}

// The board and the panel show a status by the same sign.
func TestSignsOfBothScreens(t *testing.T) {
	for _, status := range []swarm.Status{swarm.Pending, swarm.Waiting, swarm.Running, swarm.Streaming, swarm.Completed, swarm.Failed,
		swarm.Skipped, swarm.Cancelled, swarm.Idle, swarm.Blocked, swarm.Pausing, swarm.Paused, swarm.Interrupted} {
		task := view.Task{Name: "pm", Status: status}
		board := term.Frame{Width: 80, Height: 24}
		switch status {
		case swarm.Waiting:
			task.Waits = []view.Wait{{For: plan.ForAgent, Agent: "ba"}}
		case swarm.Blocked:
			board.Approvals = []view.Approval{{Task: "pm"}}
		}
		board.Tasks = []view.Task{task}
		panel := frame{width: 80, color: term.Palette{}.Of}
		for _, row := range []string{"\n" + board.Draw(), "\n" + panel.agentRow(&agentState{Name: "pm", Status: status})} {
			want := term.Sign(status)
			if !strings.Contains(row, "\n"+want+" pm ") && !strings.Contains(row, "\n  "+want+" @pm") {
				t.Errorf("%s is shown without %s: %s", status, want, row)
			}
		}
	}
}
