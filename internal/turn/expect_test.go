package turn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"swarm"
	"swarm/internal/secret"
)

func TestExpectedFiles(t *testing.T) {
	dir := t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	check(os.WriteFile(in("report"), []byte("done"), 0o600))
	check(os.WriteFile(in("huge"), nil, 0o600))
	check(os.Truncate(in("huge"), 5<<30))
	check(os.Mkdir(in("folder"), 0o700))
	check(syscall.Mkfifo(in("pipe"), 0o600))
	check(os.Symlink("/etc/passwd", in("out")))
	check(os.Symlink("report", in("link")))
	for name, want := range map[string]string{ // the pipe has no writer, so opening it would block forever
		"report": "", "link": "", "huge": "",
		"folder":  "folder is not a regular file",
		"pipe":    "pipe is not a regular file",
		"nothing": "there is no file nothing",
		"out":     "openat out: path escapes from parent",
	} {
		if err := isThere(dir, name); err == nil != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if b, err := readExpected(dir, "report"); err != nil || string(b) != "done" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := readExpected(dir, "huge"); err == nil || err.Error() != "huge is larger than 16 MB" {
		t.Error(err)
	}
}

// A check of an agent's output may take years; the turn can give it up.
func TestAVerdictIsNotWaitedForForever(t *testing.T) {
	ctx, leave := context.WithCancelCause(t.Context())
	left := errors.New("left")
	never := make(chan struct{})
	defer close(never)
	if err := inTime(ctx, func() error { leave(left); <-never; return nil }); !errors.Is(err, left) {
		t.Error(err)
	}
	if err := inTime(t.Context(), func() error { return left }); !errors.Is(err, left) {
		t.Error(err)
	}
}

// A reason appears in the next prompt, in the log and on the screen.
func TestReasonsStayShort(t *testing.T) {
	long := "expect: " + strings.Repeat("€", maxReason) + "the end"
	got := clip(long)
	if len(got) > maxReason+len("…") || !utf8.ValidString(got) || !strings.HasPrefix(got, "expect: €") || !strings.HasSuffix(got, "€the end") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if short := long[:maxReason]; clip(short) != short {
		t.Error("a short one was changed")
	}
}

// A long reason is redacted before it is cut: half a secret would not be recognized.
func TestReasonsHoldNoHalfOfASecret(t *testing.T) {
	hide := secret.New([]string{"API_KEY=sk-canary-0123456789"}, nil)
	h := &Runner{Redact: hide.Bytes, Cut: hide.Cut}
	for i := range 200 {
		before := maxReason/8 - 100 + i%100 // about where the first part ends
		if i >= 100 {
			before += maxReason // and where the last one begins
		}
		pattern := strings.Repeat("x", before) + "sk-canary-0123456789" + strings.Repeat("y", 2*maxReason-before)
		w := &work{agent: &swarm.Agent{}, task: &swarm.Task{Expect: &swarm.Expect{Matches: pattern}}}
		verdicts := h.examine(t.Context(), w, nil)
		if len(verdicts) != 1 || verdicts[0].OK {
			t.Fatalf("%+v", verdicts)
		}
		if why := verdicts[0].Reason; strings.Contains(why, "sk-can") || strings.Contains(why, "456789") {
			t.Fatalf("after %d bytes: %s", before, why)
		}
	}
}
