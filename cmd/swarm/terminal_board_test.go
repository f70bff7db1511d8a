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
	s.showsOnce("Go · ")
	s.showsOnce("✓ planner  completed")
	if screen := s.tmux("capture-pane", "-p"); strings.Contains(screen, "\n\n\n") && strings.Index(screen, "\n\n\n") < strings.Index(screen, "TASK") {
		t.Errorf("there are empty lines between the board and the table:\n%s", screen)
	}
}

// showsOnce fails unless the screen shows a text, and only once.
func (s *screen) showsOnce(text string) {
	s.Helper()
	if last := s.tmux("capture-pane", "-p"); strings.Count(last, text) != 1 {
		s.Errorf("the screen shows %q %d times:\n%s", text, strings.Count(last, text), last)
	}
}
