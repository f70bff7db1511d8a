package term

import (
	"bytes"
	"strings"
	"testing"
)

// An inline frame is erased line by line: tmux would keep what a cleared screen held.
func TestInlineRenderer(t *testing.T) {
	var out bytes.Buffer
	r := &inlineRenderer{out: &out}
	took := func(err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text := out.String()
		out.Reset()
		if strings.Contains(text, "\x1b[J") || strings.Contains(text, "\x1b[2J") {
			t.Errorf("the screen is cleared: %q", text)
		}
		return strings.TrimSuffix(strings.TrimPrefix(text, beginUpdate), endUpdate)
	}
	if got, want := took(r.draw("", "head\nrow\nfoot", 10, 24)), takeKeys+"\r"+eraseLine+"\r\r"+eraseLine+"head\r\n"+eraseLine+"row\r\n"+eraseLine+"foot\r\n\r"; got != want {
		t.Errorf("the first frame: %q, want %q", got, want)
	}
	if got := took(r.draw("", "head\nrow\nfoot", 10, 24)); got != "" {
		t.Errorf("the same frame: %q", got)
	}
	if got, want := took(r.draw("", "head\nnew\nfoot", 10, 24)), "\r\x1b[3A\r\n"+eraseLine+"new\r\n\r\n\r"; got != want {
		t.Errorf("another row: %q, want %q", got, want)
	}
	erased := func(rows string, lines int) string {
		return "\r" + rows + strings.Repeat(eraseLine+"\r\n", lines) + eraseLine + "\r" + rows
	}
	if got, want := took(r.draw("said\n", "head", 10, 24)), erased("\x1b[3A", 3)+"said\r\n\r"+eraseLine+"head\r\n\r"; got != want {
		t.Errorf("a line above a shorter frame: %q, want %q", got, want)
	}
	took(r.draw("", "0123456789\nfoot", 10, 24))
	if got, want := took(r.draw("", "0123\nfoot", 4, 24)), erased("\x1b[4A", 4)+"\r"+eraseLine+"0123\r\n"+eraseLine+"foot\r\n\r"; got != want {
		t.Errorf("a narrower terminal has wrapped the frame: %q, want %q", got, want)
	}
	if got, want := took(r.draw("", "longer\nfoot", 4, 24)), "\r\x1b[2A"+eraseLine+"long\r\n\r\n\r"; got != want {
		t.Errorf("a line that is too long would wrap: %q, want %q", got, want)
	}
	if got, want := took(r.draw("said\n", "", 0, 24)), erased("\x1b[2A", 2)+"said\r\n\r"+eraseLine+"\r\n\r"; got != want {
		t.Errorf("a terminal that tells no size: %q, want %q", got, want)
	}
	took(r.draw("", "0123\nfoot", 4, 24))
	if got, want := took(r.end("bye\n", 4, 24)), erased("\x1b[2A", 2)+"bye\r\n"+giveKeys; got != want {
		t.Errorf("the end: %q, want %q", got, want)
	}
	if got := took((&inlineRenderer{out: &out}).end("bye\n", 80, 24)); got != "bye\r\n" {
		t.Errorf("lines that came before the first frame are printed as %q", got)
	}
}
