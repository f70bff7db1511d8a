//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// TestKillGivesTheTerminalBack presses Ctrl-C twice while an agent ignores signals. The program
// ends without waiting for the agent, and restores the terminal.
func TestKillGivesTheTerminalBack(t *testing.T) {
	p := newPlace(t)
	p.check(os.WriteFile(filepath.Join(p.dir, "deaf.yaml"), []byte(`provider: sh
providers: {sh: {kind: command, command: [sh, -c, "trap '' TERM INT; echo deaf; while :; do sleep 1; done"]}}
tasks: {a: {prompt-string: x}}
`), 0o600))
	near, far := terminal(t)
	cmd := p.swarm("up", "-f", "deaf.yaml")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	before, err := unix.IoctlGetTermios(int(near.Fd()), unix.TCGETS)
	p.check(err)
	p.check(cmd.Start())
	far.Close() // so that reading ends when the program has

	var shown bytes.Buffer
	until(t, near, &shown, "deaf")
	near.WriteString("\x03")
	until(t, near, &shown, "again kills")
	near.WriteString("\x03")
	until(t, near, &shown, "to resume it: swarm resume 20")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("it exited with %d", code)
	}
	after, err := unix.IoctlGetTermios(int(near.Fd()), unix.TCGETS)
	p.check(err)
	if after.Lflag != before.Lflag {
		t.Errorf("the terminal's flags were %x and are %x", before.Lflag, after.Lflag)
	}
	if !strings.Contains(shown.String(), "\x1b[?25h") {
		t.Error("the cursor is hidden")
	}
}

// TestServerInTheBackground: Enter prints an address of the page also after the server was in the background of
// its terminal, where it cannot read.
func TestServerInTheBackground(t *testing.T) {
	p := newPlace(t)
	near, far := terminal(t)
	p.check(syscall.Mkfifo(filepath.Join(p.dir, "go"), 0o600))
	cmd := p.swarm()
	shell := exec.Command("sh", "-mc", "swarm serve --listen 127.0.0.1:0 & read x < go; fg")
	shell.Dir, shell.Env, shell.SysProcAttr = cmd.Dir, append(cmd.Env, "TERM=dumb"), &syscall.SysProcAttr{Setsid: true, Setctty: true}
	shell.Stdin, shell.Stdout, shell.Stderr = far, far, far
	p.check(shell.Start())
	far.Close()
	var shown bytes.Buffer
	until(t, near, &shown, "Enter prints another")
	p.check(os.WriteFile(filepath.Join(p.dir, "go"), []byte("x\n"), 0o600))
	until(t, near, &shown, "swarm serve --listen") // the shell names the job
	shown.Reset()
	near.WriteString("\n")
	until(t, near, &shown, "the page: http://127.0.0.1:")
	near.WriteString("\x03")
	_ = shell.Wait()
}

// TestDumbTerminal types a line into a terminal that knows no escape sequences, in a folder without a
// file: the greeting names the program that is installed, and nothing is drawn.
func TestDumbTerminal(t *testing.T) {
	p := newPlace(t)
	bin := filepath.Join(p.dir, "bin")
	p.check(os.MkdirAll(bin, 0o700))
	p.check(os.WriteFile(filepath.Join(bin, "codex"), []byte(`#!/bin/sh
case " $* " in
*' exec '*) ;;
*' app-server '*) echo "error: unrecognized subcommand 'app-server'" >&2; exit 2 ;;
*) exit 0 ;;
esac
cat > /dev/null
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"hello from codex"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
`), 0o700))
	near, far := terminal(t)
	cmd := p.swarm()
	cmd.Dir = bin
	cmd.Env = append(cmd.Env, "TERM=dumb", "PATH="+bin+":/usr/bin:/bin")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.check(cmd.Start())
	far.Close()

	var shown bytes.Buffer
	until(t, near, &shown, "@codex · /help explains")
	near.WriteString("@codex Say hello\n")
	until(t, near, &shown, "hello from codex")
	until(t, near, &shown, "@codex: completed")
	near.WriteString("/quit\n")
	until(t, near, &shown, "left · to continue: swarm repl --resume 20")
	p.check(cmd.Wait())
	if strings.Contains(shown.String(), "\x1b") {
		t.Errorf("a dumb terminal was sent an escape sequence: %q", shown.String())
	}
}

// TestOutputEndsItsLineInATerminal prints an output without a last newline. In a terminal the prompt
// of the shell must not follow it on the same line. A file gets the bytes as they are.
func TestOutputEndsItsLineInATerminal(t *testing.T) {
	p := newPlace(t)
	p.compose(`provider: sh
providers: {sh: {kind: command, command: [printf, "the end"]}}
tasks: {a: {prompt-string: x}}
`)
	p.runs(0, "up")
	if out, _ := p.runs(0, "out", "a"); out != "the end" {
		t.Errorf("a program gets %q", out)
	}
	near, far := terminal(t)
	cmd := p.swarm("out", "a")
	cmd.Stdout = far
	p.check(cmd.Run())
	fmt.Fprint(far, "$")
	var shown bytes.Buffer
	until(t, near, &shown, "$")
	if shown.String() != "the end\r\n$" {
		t.Errorf("the terminal shows %q", shown.String())
	}
}

// TestBoardWithAFileAsInput: swarm up < FILE in a terminal draws its board, and its prompts have the file.
func TestBoardWithAFileAsInput(t *testing.T) {
	p := newPlace(t)
	p.compose(`provider: cat
providers: {cat: {kind: command, command: [cat]}}
tasks: {a: {prompt-string: "Review: {{STDIN}}"}}
`)
	name := filepath.Join(t.TempDir(), "change.diff")
	p.check(os.WriteFile(name, []byte("+a line\n"), 0o600))
	file, err := os.Open(name)
	p.check(err)
	defer file.Close()
	near, far := terminal(t)
	go func() { _, _ = io.Copy(io.Discard, near) }()
	cmd := p.swarm("up")
	cmd.Stdin, cmd.Stdout = file, far
	if err := cmd.Run(); err != nil {
		t.Fatalf("swarm up: %v", err)
	}
	if out, _ := p.runs(0, "out", "a"); !strings.Contains(out, "Review: +a line") {
		t.Errorf("the prompt was %q", out)
	}
}

// until reads from a terminal until it has shown something.
func until(t *testing.T, near io.Reader, shown *bytes.Buffer, what string) {
	t.Helper()
	for b := make([]byte, 4096); !strings.Contains(shown.String(), what); {
		n, err := near.Read(b)
		if shown.Write(b[:n]); err != nil {
			t.Fatalf("%q was not shown: %v\n%q", what, err, shown.String())
		}
	}
}

// terminal makes a pseudo-terminal: what is written near is typed, what is read there was shown.
func terminal(t *testing.T) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { near.Close() })
	n, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	if err := unix.IoctlSetWinsize(int(far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// TestShowHeadFits: the first lines of swarm show are broken between their parts on a narrow terminal,
// and the help between words.
func TestShowHeadFits(t *testing.T) {
	p := newPlace(t)
	p.compose(`provider: sh
providers: {sh: {kind: command, command: [printf, "the end"]}}
tasks: {a: {prompt-string: x}}
`)
	p.runs(0, "up")
	near, far := terminal(t)
	p.check(unix.IoctlSetWinsize(int(far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}))
	cmd := p.swarm("show")
	cmd.Stdout = far
	p.check(cmd.Run())
	var shown bytes.Buffer
	until(t, near, &shown, "\r\n\r\n")
	head, _, _ := strings.Cut(shown.String(), "\r\n\r\n")
	head, _, _ = strings.Cut(head, "\r\nin ") // a path may be longer than the line
	for line := range strings.SplitSeq(head, "\r\n") {
		if n := ansi.StringWidth(line); n > 40 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	cmd = p.swarm("help")
	cmd.Stdout = far
	p.check(cmd.Start())
	shown.Reset()
	until(t, near, &shown, "about a command.\r\n")
	p.check(cmd.Wait())
	for line := range strings.SplitSeq(shown.String(), "\r\n") {
		if n := ansi.StringWidth(line); n > 40 {
			t.Errorf("the help has %d columns: %q", n, line)
		}
	}
}
