//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBoardInTerminal: a board that gets shorter after an answer leaves no lines of the taller one
// on the screen, during the run and after it.
func TestBoardInTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here, which is the terminal of this test: install tmux")
	}
	s := newScreen(t)
	for name, text := range map[string]string{
		"swarm/team.yaml": `providers:
  script: {kind: script, script: turns.yaml}
  sh: {kind: command, command: [sh, helper.sh]}
agents: {planner: {provider: script, permissions: {spawn: true}}, coder: {provider: sh}}
edges: [planner -> coder]
`,
		"swarm/turns.yaml": `- agent: planner
  say: I have asked for help
  call: [{tool: spawn_node, args: {name: helper, provider: sh, instructions: "` + strings.Repeat("Read the log. ", 20) + `"}}]
- {agent: planner, say: thanks}
`,
		"helper.sh": "cat >/dev/null; echo at it; read word < gate; echo done\n",
	} {
		s.check(os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	s.tmux("new-window", "-c", s.dir, s.program("team --file swarm/team.yaml Go"))
	for s.shows("a allows it"); strings.Contains(s.tmux("capture-pane", "-p"), "a allows it"); {
		s.key("a") // it counts when the question has stood there for a moment
	}
	s.shows("at it")
	s.showsOnce("Go · ")
	s.release()
	s.shows("exit code 0")
	screen := s.tmux("capture-pane", "-p", "-S", "-")
	if strings.Contains(screen, "Ctrl-C stops") || strings.Count(screen, "TASK ") != 1 {
		t.Errorf("the board is still there after the run, or there is not one table:\n%s", screen)
	}
	for _, said := range []string{"planner | I have asked for help", "helper  | at it", "helper  | done"} {
		if strings.Count(screen, said) != 1 {
			t.Errorf("%q was not printed once above the board:\n%s", said, screen)
		}
	}
}

// TestBoardScrolls: what agents say scrolls above the board, and neither scrolling nor a change of the
// terminal's size leaves lines of the board in the scrollback, or removes what was there before.
func TestBoardScrolls(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here, which is the terminal of this test: install tmux")
	}
	s := newScreen(t)
	s.check(os.WriteFile(filepath.Join(s.dir, "scroll.yaml"), []byte(`provider: sh
providers: {sh: {kind: command, command: [sh, "-c", "cat >/dev/null; for i in $(seq 100); do echo line $i; done; read word < gate; echo all said"]}}
tasks: {a-task-with-a-name: {prompt-string: x}, b: {prompt-string: x, depends_on: [a-task-with-a-name]}}
`), 0o600))
	s.tmux("new-window", "-c", s.dir, "echo before the board; "+s.program("up -f scroll.yaml a-task-with-a-name"))
	s.shows("| line 100")
	s.shows("Ctrl-C stops")
	s.tmux("resize-window", "-x", "100")
	s.shows("Ctrl-C stops")
	s.release()
	s.shows("exit code 0")
	screen := s.tmux("capture-pane", "-p", "-S", "-")
	for _, text := range []string{"before the board", "| line 1\n", "| line 50\n", "| line 100\n", "output of a-task-with-a-name:"} {
		if strings.Count(screen, text) != 1 {
			t.Errorf("%q is there %d times:\n%s", text, strings.Count(screen, text), screen)
		}
	}
	if strings.Contains(screen, "Ctrl-C") {
		t.Errorf("lines of the board are left:\n%s", screen)
	}
}

// showsOnce fails unless the screen shows a text, and only once.
func (s *screen) showsOnce(text string) {
	s.Helper()
	if last := s.tmux("capture-pane", "-p"); strings.Count(last, text) != 1 {
		s.Errorf("the screen shows %q %d times:\n%s", text, strings.Count(last, text), last)
	}
}
