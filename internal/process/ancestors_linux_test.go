package process

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestAncestorsLeadFromAProcessToTheOneThatStartedIt(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sh -c 'echo $$; read line'; true")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inner := 0
	for b := make([]byte, 1); ; {
		if _, err := out.Read(b); err != nil || b[0] == '\n' {
			break
		}
		inner = 10*inner + int(b[0]-'0')
	}
	above := Ancestors(inner)
	if len(above) < 3 || above[0].PID != cmd.Process.Pid || above[1] != Self() || above[2].PID != os.Getppid() {
		t.Errorf("above %d are %v; the shell is %d, this process %v", inner, above, cmd.Process.Pid, Self())
	}
	if slices.ContainsFunc(above, func(id ID) bool { return id.PID != 1 && id.Started == 0 }) {
		t.Errorf("a start time is missing: %v", above)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if gone := Ancestors(inner); gone != nil {
		t.Errorf("a process that is gone has ancestors: %v", gone)
	}
}
