package repl

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"swarm/internal/term"
)

func TestEditor(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string // with | where the cursor is
	}{
		{[]string{"abc", "left", "left", "x"}, "ax|bc"},
		{[]string{"abc", "home", "delete", "end", "backspace"}, "b|"},
		{[]string{"one two,three", "alt+b", "x"}, "one two,x|three"},
		{[]string{"one two", "home", "alt+f", "alt+d"}, "one|"},
		{[]string{"one two  ", "ctrl+w"}, "one |"},
		{[]string{"one two", "ctrl+w", "home", "ctrl+y"}, "two|one "},
		{[]string{"one", "ctrl+j", "two", "ctrl+u"}, "one\n|"},
		{[]string{"one", "ctrl+j", "two", "up", "ctrl+k", "x"}, "onex|\ntwo"},
		{[]string{"one", "ctrl+j", "two", "left", "up", "ctrl+k"}, "on|\ntwo"},
		{[]string{"日本語", "left", "backspace"}, "日|語"},
		{[]string{"a👩‍👩‍👧b", "left", "backspace"}, "a|b"},
		{[]string{"e\u0301x", "left", "backspace"}, "|x"},
		{[]string{"a", "ctrl+j", "left", "left", "right", "right", "b"}, "a\nb|"},
		{[]string{"a\u00a0b", "alt+b", "x"}, "a\u00a0x|b"},
		{[]string{"backspace", "left", "delete", "ctrl+w", "ctrl+u", "ctrl+k", "right", "alt+b", "alt+f"}, "|"},
		{[]string{"long line", "ctrl+j", "x", "ctrl+j", "long line", "up", "up", "y"}, "long liney|\nx\nlong line"},
	} {
		d := newDesk(t, 80, 24, Options{})
		d.press(c.keys...)
		e := d.m.input
		if got := e.text[:e.cursor] + "|" + e.text[e.cursor:]; got != c.want {
			t.Errorf("%q makes %q, want %q", c.keys, got, c.want)
		}
	}
}

// The cursor stands where the next character comes, also at the end of a row that is just full.
func TestCursorInLongLines(t *testing.T) {
	for _, c := range []struct {
		text              string
		cursor            int
		rows, row, column int
	}{
		{"", 0, 1, 0, 0},
		{"12345", 5, 1, 0, 5},
		{"1234567890", 10, 2, 1, 0},
		{"1234567890", 9, 1, 0, 9},
		{"12345678901", 10, 2, 1, 0},
		{"1234567890\nab", 10, 3, 1, 0},
		{"1234567890\nab", 11, 2, 1, 0},
		{"日本語日本", 15, 2, 1, 0},
		{"\x1b", 1, 1, 0, 4},
	} {
		e := editor{text: c.text, cursor: c.cursor}
		rows, row, column := e.rows(10)
		if len(rows) != c.rows || row != c.row || column != c.column {
			t.Errorf("%q at %d: row %d of %d, column %d; want row %d of %d, column %d", c.text, c.cursor, row, len(rows), column, c.row, c.rows, c.column)
		}
	}
}

// Whatever is pasted and typed, the screen fits, the terminal is safe, and Enter gives the session
// what was pasted.
func FuzzPaste(f *testing.F) {
	f.Add("@pm $ba \x1b[2J\x9b31m\u202e\x00 日本語 👩‍👩‍👧", "lurlx", 80, 24)
	f.Add("a\r\nb\rc\n\n\n\td", "udbdke", 40, 10)
	f.Add(strings.Repeat("@pm ", 100), "hhhwwuy", 12, 3)
	f.Add("x", "", 11, 20)
	f.Fuzz(func(t *testing.T, pasted, pressed string, width, height int) {
		if width < 10 || width > 200 || height < 1 || height > 60 || len(pasted) > 5000 || len(pressed) > 30 {
			return
		}
		d := newDesk(t, width, height, Options{Terminal: term.Terminal{Color: len(pasted)%2 == 0}})
		d.do(tea.PasteMsg{Content: pasted})
		d.frame()
		want := strings.ReplaceAll(strings.ReplaceAll(pasted, "\r\n", "\n"), "\r", "\n")
		if d.m.input.text != want {
			t.Errorf("%q was pasted as %q", pasted, d.m.input.text)
		}
		names := []string{"left", "right", "up", "down", "home", "end", "backspace", "delete", "ctrl+w", "ctrl+u", "ctrl+k", "ctrl+y", "alt+b", "alt+f", "tab", "pgup", "esc", "alt+enter", "x"}
		for _, b := range []byte(pressed) {
			d.press(names[int(b)%len(names)])
			d.frame()
			if e := d.m.input; e.cursor < 0 || e.cursor > len(e.text) || utf8.ValidString(e.text) && !utf8.ValidString(e.text[:e.cursor]) {
				t.Fatalf("the cursor is at %d in %q", e.cursor, e.text)
			}
		}
		entered := d.m.input.text
		d.press("enter")
		d.frame()
		if got := d.lines(); strings.TrimSpace(entered) != "" && (len(got) != 1 || got[0] != entered) {
			t.Errorf("%q was entered, want %q", got, entered)
		}
	})
}
