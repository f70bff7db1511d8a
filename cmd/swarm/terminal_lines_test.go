//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLinesInTerminal runs the eight acceptance tests of references in a real terminal. It types
// lines, and reads the screen.
func TestLinesInTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here, which is the terminal of this test: install tmux")
	}
	for name, do := range map[string]func(*screen){
		"AT-001": func(s *screen) {
			s.types("@pm ")
			s.shows("write what is to be done behind it") // no error: it is not entered yet
			s.clear()
			s.enter("@pm Create a simple project plan")
			s.shows("✓ pm_1 completed")
			s.enter("@builder-1 Implement based on $pm")
			s.shows("builder-1 │ builder-1: Implement based on [Output from @pm]: pm: Create a simple project plan")
			s.shows("✓ builder-1_1 completed")
			s.shows("@builder-1: idle")
		},
		"AT-002": func(s *screen) {
			s.enter("@pm HOLD Create a detailed project plan &")
			s.shows("@pm: executing")
			s.enter("@builder-1 Implement $pm")
			s.shows("@builder-1: waiting for @pm")
			s.release()
			s.shows("✓ pm_1 completed")
			s.shows("builder-1 │ builder-1: Implement [Output from @pm]: pm: HOLD Create a detailed project plan")
			s.shows("@builder-1: idle")
		},
		"AT-003": func(s *screen) {
			s.enter("@pm Create a plan")
			s.shows("✓ pm_1 completed")
			s.enter("@ba Write requirements")
			s.shows("✓ ba_1 completed")
			s.enter("@builder-1 Using $pm and $ba")
			s.shows("builder-1: Using [Output from @pm]: pm: Create a plan and [Output from @ba]: ba: Write requirements")
		},
		"AT-004": func(s *screen) {
			const message = "Unknown agent reference: $nonexistent. Valid agents: pm, ba, builder-1, builder-2, reviewer, writer"
			s.types("@builder-1 Implement based on $nonexistent")
			s.shows(message) // before Enter
			s.key("Enter")
			s.shows("^^^^^^^^^^^^")
			s.shows(message)
			s.shows(`to write it as text: \$nonexistent`)
			s.shows("@builder-1: idle")
		},
		"AT-005": func(s *screen) {
			s.enter("@builder-1 Implement $pm")
			s.shows("Agent @pm has no output to reference. Run a task for @pm first.")
			s.clear()
			s.enter("@builder-1 Implement $pm &")
			s.shows("@builder-1: waiting for @pm (no output yet)")
			s.enter("@pm Plan")
			s.shows("builder-1 │ builder-1: Implement [Output from @pm]: pm: Plan")
		},
		"AT-006": func(s *screen) {
			s.enter("@pm Create plan based on $builder-1 &")
			s.shows("@pm: waiting for @builder-1 (no output yet)")
			s.enter("@builder-1 Implement $pm")
			s.shows("Circular dependency detected: @builder-1 → @pm → @builder-1")
			s.clear()
			s.enter("/cancel @pm")
			s.shows("pm_1 cancelled")
		},
		"AT-007": func(s *screen) {
			s.enter("@ba Write requirements")
			s.shows("✓ ba_1 completed")
			s.types("@pm Create plan for $ba -> @builder-1 Implement")
			s.shows("@builder-1 after @pm") // what Enter would do
			s.key("Enter")
			s.shows("builder-1 │ builder-1: [Output from @pm]: pm: Create plan for [Output from @ba]: ba: Write requirements")
			s.shows("✓ builder-1_1 completed")
		},
		"AT-008": func(s *screen) {
			s.enter(`@pm Explain what \$pm means in shell scripting`)
			s.shows("pm        │ pm: Explain what $pm means in shell scripting")
			s.shows("✓ pm_1 completed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "AT-002" && name != "AT-006" {
				t.Skip("it takes seconds")
			}
			s := newScreen(t)
			do(s)
			s.clear()
			s.enter("/quit")
			if name == "AT-004" { // its only line was refused
				s.shows("session left · it ran no line, so it is not kept")
				if out, _ := s.runs(0, "ls", "--json"); strings.TrimSpace(out) != "[]" {
					t.Errorf("a session without a line is kept: %s", out)
				}
			} else {
				s.shows(" left · to continue: swarm repl --resume 20")
			}
			s.shows("exit code 0")
		})
	}
}

// TestResumedInTerminal: a session that was killed comes back with its lines and outputs on the
// screen, and with what still waits.
func TestResumedInTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here, which is the terminal of this test: install tmux")
	}
	s := newScreen(t)
	s.enter("@pm Plan it")
	s.shows("✓ pm_1 completed")
	s.enter("@ba HOLD Read $pm &")
	s.shows("@ba: executing")
	s.enter("@builder-1 Build $ba &")
	s.shows("@builder-1: waiting for @ba")
	s.kill9()
	s.shows("exit code 137")
	s.tmux("new-window", "-c", s.dir, s.program("repl --resume @last"))
	s.shows("> @pm Plan it")
	s.shows("pm        │ pm: Plan it")
	s.shows("✓ pm_1 completed")
	s.shows("> @builder-1 Build $ba &")
	s.shows("@builder-1: waiting for @ba")
	s.release()
	s.shows("✓ builder-1_1 completed")
	s.enter("/quit")
	s.shows("exit code 0")
}

// kill9 kills the program that drives the newest run.
func (s *screen) kill9() {
	s.Helper()
	out, _ := s.runs(0, "ls", "--json")
	var runs []struct{ PID int }
	s.check(json.Unmarshal([]byte(out), &runs))
	s.check(syscall.Kill(runs[0].PID, syscall.SIGKILL))
}

// A screen is the program in a terminal of its own.
type screen struct {
	*place
	socket string
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	s := &screen{place: &place{T: t, dir: t.TempDir()}}
	s.home, s.socket = filepath.Join(s.dir, "home"), filepath.Join(s.dir, "tmux")
	s.check(os.Mkdir(filepath.Join(s.dir, "swarm"), 0o700))
	s.check(os.WriteFile(filepath.Join(s.dir, "swarm", "swarm.yaml"), []byte(`provider: sh
providers: {sh: {kind: command, command: [sh, agent.sh]}}
`), 0o600))
	s.check(os.WriteFile(filepath.Join(s.dir, "agent.sh"), []byte(`task=$(tail -n +5)
case $task in HOLD*) read word < gate;; esac
echo "$SWARM_AGENT: $task"
`), 0o600))
	s.check(exec.Command("mkfifo", filepath.Join(s.dir, "gate")).Run())
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "34", "-c", s.dir, "-e", "SWARM_HOME="+s.home, "-e", "HOME="+s.dir, "-e", "GORACE=atexit_sleep_ms=0",
		s.program(""))
	t.Cleanup(func() {
		s.tmux("kill-server")
		s.awaitEnd()
	})
	s.shows("Ctrl-D leaves")
	return s
}

// awaitEnd waits for the programs of the windows, which may still write to the state folder.
func (s *screen) awaitEnd() {
	mark := []byte("SWARM_HOME=" + s.home + "\x00")
	for left := true; left; time.Sleep(5 * time.Millisecond) {
		left = false
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range environs {
			env, _ := os.ReadFile(path) // none if the process has ended
			left = left || bytes.Contains(env, mark)
		}
	}
}

// program is how a window starts the program.
func (s *screen) program(args string) string {
	s.Helper()
	path, err := exec.LookPath("swarm")
	s.check(err)
	return path + " " + args + `; echo "exit code $?"; cat`
}

func (s *screen) tmux(args ...string) string {
	s.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *screen) key(name string)   { s.Helper(); s.tmux("send-keys", name) }
func (s *screen) types(text string) { s.Helper(); s.tmux("send-keys", "-l", text) }
func (s *screen) enter(text string) { s.Helper(); s.types(text); s.shows("> " + text); s.key("Enter") }

// clear empties the line that is being typed: one that was refused is still there.
func (s *screen) clear() { s.Helper(); s.key("C-u") }

// release lets the waiting agent continue.
func (s *screen) release() {
	s.Helper()
	s.check(os.WriteFile(filepath.Join(s.dir, "gate"), []byte("go\n"), 0))
}

// shows waits until the screen shows a text, in one line.
func (s *screen) shows(text string) {
	s.Helper()
	var last string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if last = s.tmux("capture-pane", "-p"); strings.Contains(last, text) {
			return
		}
	}
	s.Fatalf("the screen never showed %q; the last was\n%s", text, last)
}
