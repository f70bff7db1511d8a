//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On a terminal the person is asked before anything starts. A no refuses the run, a yes is remembered.
func TestConfirmationAtATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.env = append(p.env, "ANTHROPIC_API_KEY=nobodys-key")
	p.check(os.WriteFile(filepath.Join(p.dir, "theirs.yaml"), []byte(`provider: sh
providers: {sh: {kind: command, command: [touch, started], env: {K: $ANTHROPIC_API_KEY}}}
tasks: {a: {prompt-string: x}}
`), 0o600))
	started := func() bool { _, err := os.Stat(filepath.Join(p.dir, "started")); return err == nil }
	for _, c := range []struct {
		answer string // "" = nothing is asked
		code   int
	}{{"n\n", 2}, {"\n", 2}, {"yes, but\n", 2}, {"y\n", 0}, {"", 0}} {
		near, far := terminal(t)
		cmd := p.swarm("up", "-f", "theirs.yaml")
		cmd.Env = append(cmd.Env, "TERM=dumb")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		p.check(cmd.Start())
		far.Close() // so that reading ends when the program has
		var shown bytes.Buffer
		if c.answer != "" {
			until(t, near, &shown, "[y/N]")
			if started() {
				t.Fatal("the program was started before the answer")
			}
			near.WriteString(c.answer)
		}
		_, _ = shown.ReadFrom(near) // ends with an error when the terminal is gone
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.code || started() != (c.code == 0) {
			t.Errorf("after %q it exited with %d, and the program was started: %v\n%s", c.answer, code, started(), shown.String())
		}
		asked := strings.Contains(shown.String(), `theirs.yaml: the provider "sh" gives ANTHROPIC_API_KEY to the program "touch started"`)
		if asked != (c.answer != "") {
			t.Errorf("with the answer %q it showed\n%s", c.answer, shown.String())
		}
	}
}
