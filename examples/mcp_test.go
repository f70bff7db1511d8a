package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPPage runs the commands of docs/mcp.md that change the configuration of clients. The first
// block needs Claude Code, and cmd/swarm runs it; the login of the third is tested there too.
func TestMCPPage(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-ec", blocks(t, "../docs/mcp.md", "sh")[1])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "SWARM_HOME="+filepath.Join(dir, ".home"), "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	at := 0
	for _, want := range []string{"codex mcp add swarm-drive -- ", "nothing was done", `"--may-approve"`, "opencode can drive runs now", "opencode can drive runs now", "opencode does not know it any more"} {
		i := strings.Index(string(out[at:]), want)
		if i < 0 {
			t.Fatalf("there is no %q, in its place, in\n%s", want, out)
		}
		at += i + len(want)
	}
}
