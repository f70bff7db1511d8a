package examples_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDeskPage runs the commands of docs/desks.md with the worker that it shows, and compares the output.
func TestDeskPage(t *testing.T) {
	const page = "../docs/desks.md"
	dir := t.TempDir()
	worker, shown := blocks(t, page, "bash")[0], blocks(t, page, "text")[0]
	writeFiles(t, dir, map[string]string{"worker.sh": worker, "CHANGES.md": "Nothing yet.\nDesks are there\n"})
	cmd := exec.Command("sh", "-ec", blocks(t, page, "sh")[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SWARM_HOME="+filepath.Join(dir, ".home"), "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "\n"+shown) {
		t.Errorf("the page has\n%s\nand the commands printed\n%s", shown, out)
	}
	for _, name := range []string{"delivered/text.md", "_archive/notes.1/status.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

var waitsAt = regexp.MustCompile(`^report +waits for an external worker at (.*)$`)

// TestDeskPageComposeFile runs the compose file of docs/desks.md: the worker of the page collects, and
// an external worker writes the report.
func TestDeskPageComposeFile(t *testing.T) {
	const page = "../docs/desks.md"
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"swarm/swarm.yaml": blocks(t, page, "yaml")[0],
		"worker.sh":        blocks(t, page, "bash")[0],
		"CHANGES.md":       "Nothing yet.\nDesks are there\n",
	})
	up := command(t, dir, "up")
	out, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		at := waitsAt.FindStringSubmatch(lines.Text())
		if at == nil {
			continue
		}
		source, err := os.ReadFile(filepath.Join(at[1], "inbox/source/text.md"))
		if err != nil {
			t.Error(err)
		}
		for _, file := range [][2]string{
			{"status.json", `{"state": "running"}`},
			{"outbox/report.md", "# News\n" + string(source)},
			{"outbox/summary.md", "I wrote about: " + string(source)},
			{"status.json", `{"state": "completed"}`},
		} {
			writeFiles(t, at[1], map[string]string{file[0]: file[1]})
		}
	}
	if err := up.Wait(); err != nil {
		t.Fatalf("swarm up: %v\n%s", err, &said)
	}
	got, err := command(t, dir, "out", "@last", "report").Output()
	if want := "I wrote about: Desks are there\n"; err != nil || string(got) != want {
		t.Errorf("swarm out: %v: %q, want %q\n%s", err, got, want, &said)
	}
}

// writeFiles writes files by their paths below a folder.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
