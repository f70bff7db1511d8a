package replay

import (
	"fmt"
	"strings"
	"testing"
)

func TestLineDiff(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	long := strings.Repeat("x", 1000)
	for _, c := range []struct{ name, before, after, want string }{
		{"a line more", "a\nb\n", "a\nnew\nb\n", "@@ line 1, now line 1 @@\n a\n+new\n b\n "},
		{"a line less", "a\nb\nc", "a\nc", "@@ line 1, now line 1 @@\n a\n-b\n c"},
		{"far down", numbers(1, 100), strings.Replace(numbers(1, 100), "\n50\n", "\nfifty\n", 1), "@@ line 48, now line 48 @@\n 48\n 49\n-50\n+fifty\n 51\n 52"},
		{"two places", numbers(1, 20), strings.NewReplacer("\n5\n", "\n", "\n15\n", "\n15\nx\n").Replace(numbers(1, 20)),
			"@@ line 3, now line 3 @@\n 3\n 4\n-5\n 6\n 7\n@@ line 14, now line 13 @@\n 14\n 15\n+x\n 16\n 17"},
		{"a newline at the end", "a", "a\n", "@@ line 1, now line 1 @@\n a\n+"},
		{"blanks at the end", "a", "a  ", "@@ line 1, now line 1 @@\n-a\n+a··"},
		{"what cannot be seen", "a\tb", "a\r\x1b[31m\xff", "@@ line 1, now line 1 @@\n-a\\tb\n+a\\r\\x1b[31m\\xff"},
		{"far right", long + "old" + long, long + "new" + long,
			"@@ line 1, now line 1 @@\n-…" + strings.Repeat("x", 40) + "old" + strings.Repeat("x", 117) + "…\n+…" + strings.Repeat("x", 40) + "new" + strings.Repeat("x", 117) + "…"},
	} {
		if got := lineDiff(c.before, c.after); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestDiffStaysShort(t *testing.T) {
	for name, texts := range map[string][2]string{
		"other texts":       {strings.Repeat("a\n", 1000), strings.Repeat("b\n", 1000)},
		"much longer texts": {strings.Repeat("a\n", 100_000), strings.Repeat("b\n", 100_000)},
		"every second line": {strings.Repeat("a\nb\nc\nd\ne\nf\ng\n", 100), strings.Repeat("a\nb\nx\nd\ne\nf\ng\n", 100)},
	} {
		got := lineDiff(texts[0], texts[1])
		if n := strings.Count(got, "\n"); n > 60 || n < 30 || !strings.Contains(got, "more lines") {
			t.Errorf("%s: %d lines\n%s", name, n, got)
		}
	}
}

func FuzzLineDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc")
	f.Add("", "\n\n")
	f.Add(strings.Repeat("€", 200), strings.Repeat("€", 100)+"\xe2"+strings.Repeat("€", 100))
	f.Fuzz(func(t *testing.T, a, b string) {
		got := lineDiff(a, b)
		if (got == "") != (a == b) {
			t.Fatalf("%q and %q give %q", a, b, got)
		}
		// Without the added lines the edits are the old text, without the removed ones the new
		// text.
		edits, _ := diff(strings.Split(a, "\n"), strings.Split(b, "\n"))
		var before, after []string
		for _, e := range edits {
			if e.op != '+' {
				before = append(before, e.text)
			}
			if e.op != '-' {
				after = append(after, e.text)
			}
		}
		if !strings.Contains(a, strings.Join(before, "\n")) || !strings.Contains(b, strings.Join(after, "\n")) {
			t.Fatalf("%q and %q give %v", a, b, edits)
		}
	})
}
