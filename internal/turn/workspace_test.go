package turn

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarm"
	"swarm/internal/sqlite"
)

// TestWorkspaceFiles checks that the files that the runner writes stay in the workspace, whatever an
// agent has put there.
func TestWorkspaceFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := []byte(strings.Repeat("x", 501))
	r := &Runner{Workspace: dir, Log: newLog(t)}

	if got := r.saveResult("takao", 1, "web_search", long[:500]); got != "" {
		t.Errorf("500 characters are saved to %s", got)
	}
	if got := r.saveResult("takao", 1, "file_read", long); got != "" {
		t.Errorf("what was read from a file is saved to %s", got)
	}
	if got := r.saveResult("takao", 1, "a/../b c", long); got != "results/takao-1-a----b-c.txt" {
		t.Errorf("the file is %q", got)
	}
	// A link in the place of the file is replaced, and what it leads to stays.
	if err := os.Symlink(secret, filepath.Join(dir, "results", "takao-2-web_search.txt")); err != nil {
		t.Fatal(err)
	}
	if got := r.saveResult("takao", 2, "web_search", long); got == "" {
		t.Error("the link is in the way")
	}
	// A pipe that nobody reads does not keep the turn waiting.
	pipe := filepath.Join(dir, "takao-report.md")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &work{done: true, report: "the end"}
	w.c.Agent = "takao"
	save := func(now []byte, want string) {
		t.Helper()
		if name, text, err := r.saveReport(w, now); name != "takao-report.md" || string(text) != want || err != nil {
			t.Errorf("saved %q: %q, %v; want %q", name, text, err, want)
		}
	}
	save(nil, "")
	// What a start that a crash cut has left is written again. So is what another has written.
	w.report = "another end"
	save(nil, "")
	if text, _ := os.ReadFile(pipe); !strings.Contains(string(text), "another end") {
		t.Errorf("the report is %q", text)
	}
	if err := os.WriteFile(pipe, []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
	save(nil, "")
	// What the agent has written counts, and comes back if another has changed the file.
	if err := os.WriteFile(pipe, []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
	save([]byte("its own"), "its own")
	if text, _ := os.ReadFile(pipe); string(text) != "its own" {
		t.Errorf("the report is %q", text)
	}
	// A folder that is a link out of the workspace is refused, and the result has no file.
	if err := os.RemoveAll(filepath.Join(dir, "results")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "results")); err != nil {
		t.Fatal(err)
	}
	if got := r.saveResult("takao", 3, "web_search", long); got != "" {
		t.Errorf("saved to %s, through a link", got)
	}
	entries, _ := os.ReadDir(outside)
	if text, _ := os.ReadFile(secret); len(entries) != 1 || string(text) != "keep" {
		t.Errorf("outside there are %d files, and the first has %q", len(entries), text)
	}
}

func newLog(t *testing.T) swarm.Log {
	t.Helper()
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}
