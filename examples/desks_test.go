package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeskPage runs the commands of docs/desks.md with the worker that it shows, and compares the output.
func TestDeskPage(t *testing.T) {
	const page = "../docs/desks.md"
	dir := t.TempDir()
	worker, shown := blocks(t, page, "bash")[0], blocks(t, page, "text")[0]
	for name, text := range map[string]string{"worker.sh": worker, "CHANGES.md": "Nothing yet.\nDesks are there\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-ec", blocks(t, page, "sh")[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SWARM_HOME="+filepath.Join(dir, ".home"), "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "the desk notes is made\n"+shown) {
		t.Errorf("the page has\n%s\nand the commands printed\n%s", shown, out)
	}
	for _, name := range []string{"delivered/text.md", "_archive/notes.1/status.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
