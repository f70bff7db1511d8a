package excerpt

import (
	"strings"
	"testing"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Head("abc", 3), "abc"},
		{Head("abcd", 3), "abc…"},
		{Head("aé", 2), "a…"}, // é has two bytes
		{Head("", 0), ""},
		{HeadWithSize("abc", 3), "abc"},
		{HeadWithSize("abcd", 3), "abc… (4 bytes)"},
		{OneLine(" a\n\tb  c\r\n"), "a b c"},
		{Reason(""), ""},
		{Reason("it is late"), ": it is late"},
		{Said(" \n"), ""},
		{Said("a\xff\nb"), ": a\uFFFD b"},
		{Said(strings.Repeat("x", 301)), ": " + strings.Repeat("x", 300) + "…"},
		{List(nil, 2), ""},
		{List([]string{"a", "b"}, 2), "a, b"},
		{List([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
