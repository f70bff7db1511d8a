package term

import (
	"strings"
	"testing"

	"swarm/internal/termtest"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext":             "plain\n\ttext",
		"\x1b[2J\x1b]0;t\x07":       `\x1b[2J\x1b]0;t\x07`,
		"a\r\nb\rc":                 "a\nb" + `\rc`,
		"\x00\x7f":                  `\x00\x7f`,
		"\u009b31m":                 `\u009b31m`,
		"\x9b31m":                   "\uFFFD31m",
		"half \xe6\x97":             "half \uFFFD\uFFFD",
		"日本語 é 👩\u200d💻":            "日本語 é 👩\u200d💻",
		"x\u202egpj.exe":            `x\u202egpj.exe`,
		"\u2066a\u2069\u200e\u061c": `\u2066a\u2069\u200e\u061c`,
		"\u2028\ufeff":              `\u2028\ufeff`,
		"\U000e0041":                `\U000e0041`,
		"not an escape: \\x1b":      `not an escape: \x1b`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2Jb", "\r\n\r", "\xff\xfe", "\u009b\u202e", "é\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		termtest.Safe(t, got)
		if Escape(got) != got {
			t.Errorf("%q is escaped again as %q", got, Escape(got))
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q has other lines than %q", got, text)
		}
		if one := OneLine(text); strings.ContainsAny(one, "\n\t") {
			t.Errorf("%q is not one line", one)
		}
	})
}

func BenchmarkEscape(b *testing.B) {
	line := strings.Repeat("a line of output as agents write them, ", 3)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		Escape(line)
	}
}

func TestHangingLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"a | short\n", "a | short\n"},
		{"a | its own rules\nb | x\n", "a | its own\n    rules\nb | x\n"},
		{"a | one two three four five\n", "a | one two\n    three\n    four\n    five\n"},
		{"a |   x :=  y + z\n", "a |   x :=\n    y + z\n"},
		{"a | http://127.0.0.1/#code=x and now\n", "a | http://127.0.0.1/#code=x and\n    now\n"},
		{"a | x http://127.0.0.1/ y\n", "a | x http://127.0.0.1/ y\n"},
		{"a | \x1b[31mred word\x1b[0m here\n", "a | \x1b[31mred\n    word\x1b[0m\n    here\n"},
		{"a | one\ttwo three\n", "a | one\ttwo three\n"},
		{"a | its own  \n", "a | its own\n"},
		{"a | no newline", "a | no\n    newline"},
	} {
		if got := hangingLines(c.text, 11, 4); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	if got := hangingLines("a | its own rules\n", 0, 0); got != "a | its own rules\n" {
		t.Errorf("a terminal that tells no width: %q", got)
	}
}

func TestWrapWords(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""},
		{"swarm reply m-0a1b2c now", "swarm reply|m-0a1b2c now"},
		{"aaaaaaaaaaaaaaaaa b", "aaaaaaaaaaaa|aaaaa b"},
		{"one aaaaaaaaaaaaaaa", "one|aaaaaaaaaaaa|aaa"},
		{"日本語日本語日本", "日本語日本語|日本"},
	} {
		if got := strings.Join(wrapWords(c.line, 12), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}
