package term

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// Lines get their colours, and the content of files is escaped.
func TestDiff(t *testing.T) {
	text := "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \x1b[2J\n same\n\\ No newline at end of file"
	want := strings.ReplaceAll(text, "\x1b", `\x1b`)
	if got := Diff(text, false); got != want {
		t.Errorf("got\n%s", got)
	}
	got := Diff(text, true)
	if plain := ansi.Strip(got); plain != want {
		t.Errorf("without its colours it is\n%s", plain)
	}
	for _, part := range []string{"\x1b[31m-old", "\x1b[32m+new", "\x1b[36m@@"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %q", part, got)
		}
	}
}
