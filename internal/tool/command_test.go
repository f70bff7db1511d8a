package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
)

func TestCommand(t *testing.T) {
	d := sit(t, "command(sh -c)", "command(cat)", "command(env)", "command(./tool.sh)", "command(nosuchprogram)", "command(./data)")
	if got := d.must("command", "argv", []string{"sh", "-c", "echo out; echo err >&2; exit 3"}); got != "exit code 3\nout\nerr\n" && got != "exit code 3\nerr\nout\n" {
		t.Errorf("%q", got)
	}
	if got := d.must("command", "argv", []string{"cat"}); got != "exit code 0\n(it said nothing)" {
		t.Errorf("standard input is not empty: %q", got)
	}
	if got := d.must("command", "argv", []string{"sh", "-c", "pwd"}); got != "exit code 0\n"+d.box.o.Root+"\n" {
		t.Errorf("%q", got)
	}
	if got := d.must("command", "argv", []string{"sh", "-c", "kill -9 $$"}); !strings.HasPrefix(got, "ended by signal 9") {
		t.Errorf("%q", got)
	}
	d.file("tool.sh", "#!/bin/sh\necho here $1\n")
	d.file("data", "no program")
	if err := os.Chmod(filepath.Join(d.root, "tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := d.must("command", "argv", []string{"./tool.sh", "$HOME;id"}); got != "exit code 0\nhere $HOME;id\n" {
		t.Errorf("%q", got)
	}
	d.refused(swarm.NotFound, "command", "argv", []string{"nosuchprogram"})
	d.refused(swarm.NotFound, "command", "argv", []string{"./data"})
	if got := d.refused(swarm.Denied, "command", "argv", []string{"rm", "-rf", "/"}); !strings.Contains(got, "these: sh -c, cat") {
		t.Error(got)
	}
}

// A program in the folder is not confused with one in PATH.
func TestCommandOfTheFolder(t *testing.T) {
	d := sit(t, "command(mytool)", "file_write")
	d.must("file_write", "path", "mytool", "content", "#!/bin/sh\necho fooled\n")
	if err := os.Chmod(filepath.Join(d.root, "mytool"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(d.root)
	t.Setenv("PATH", "."+string(os.PathListSeparator)+os.Getenv("PATH"))
	d.refused(swarm.Denied, "command", "argv", []string{"mytool"})
}

func TestCommandEnvironment(t *testing.T) {
	d := sit(t)
	d.open(Options{Allow: []string{"command(env)"},
		Environ: []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=k1", "SWARM_TOKEN=k2", "SWARM_AGENT_TOKEN=k3", "MINE=yes", "SWARM_RUN_ID=other"},
		Env:     map[string]string{"OPENAI_API_KEY": "$ANTHROPIC_API_KEY", "EXTRA": "$MINE"}})
	got := "\n" + d.must("command", "argv", []string{"env"})
	for _, want := range []string{"\nMINE=yes\n", "\nEXTRA=yes\n", "\nSWARM_RUN_ID=run-of-test\n", "\nSWARM_AGENT=coder\n", "\nSWARM_TURN_ID=coder/command/1\n", "\nPWD=" + d.root + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	for _, not := range []string{"k1", "k2", "k3", "other"} {
		if strings.Contains(got, "="+not) {
			t.Errorf("%q is there", not)
		}
	}
	if strings.Contains(got, "\nSWARM_TASK=") {
		t.Errorf("a tool's program is told of a task: %s", got)
	}
}

func TestCommandSaysMuch(t *testing.T) {
	d := sit(t, "command(sh)")
	got := d.must("command", "argv", []string{"sh", "-c", "echo begin; head -c 10000000 /dev/zero | tr '\\0' 'x'; echo; echo end"})
	if len(got) > maxOutput+200 || !strings.HasPrefix(got, "exit code 0\nbegin\n") || !strings.HasSuffix(got, "\nend\n") || !strings.Contains(got, "bytes left out …]") {
		t.Errorf("%d bytes: %.50q … %q", len(got), got, got[len(got)-50:])
	}
}

// A command that times out, or whose turn is cancelled, leaves no process.
func TestCommandIsEnded(t *testing.T) {
	const stubborn = `trap "" TERM; setsid sleep 1000 & sleep 1000 & echo $$ > pid; echo working; wait`
	d := sit(t, "command(bash)")
	got := d.must("command", "argv", []string{"bash", "-c", stubborn}, "timeout", 1)
	if !strings.HasPrefix(got, "ended after 1s") || !strings.Contains(got, "working") {
		t.Errorf("%q", got)
	}
	d.noneLeft()
	d.file("pid", "")
	ctx, cut := context.WithCancelCause(t.Context())
	args, _ := json.Marshal(map[string]any{"argv": []string{"bash", "-c", stubborn}})
	done := make(chan error)
	go func() {
		_, err := d.box.Call(ctx, "command", args)
		done <- err
	}()
	for {
		if b, _ := os.ReadFile(filepath.Join(d.root, "pid")); len(b) > 0 {
			break
		}
	}
	cut(swarm.Errorf(swarm.CutByCancel, "enough"))
	if err := <-done; swarm.KindOf(err) != swarm.CutByCancel {
		t.Error(err)
	}
	d.noneLeft()
}

// noneLeft fails if a process lives that was started in the folder. Dead processes have no
// environment.
func (d *desk) noneLeft() {
	d.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // nowhere to look
	}
	for _, e := range entries {
		if env, _ := os.ReadFile("/proc/" + e.Name() + "/environ"); strings.Contains(string(env), "PWD="+d.root+"\x00") {
			d.Errorf("process %s is left", e.Name())
		}
	}
}
