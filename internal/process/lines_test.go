package process

import (
	"strings"
	"testing"
)

func TestALineThatIsTooLongIsSaidOnce(t *testing.T) {
	l := Lines{Max: 4}
	var got []string
	hear := func(line []byte) { got = append(got, string(line)) }
	for i, c := range []struct {
		piece string
		ok    bool
	}{{"abcd\nab", true}, {"cde", false}, {"f\ng\n", true}} {
		if l.Write(c.piece, hear) != c.ok {
			t.Errorf("piece %d: not %v", i, c.ok)
		}
	}
	if strings.Join(got, "|") != "abcd" || l.Rest != nil {
		t.Errorf("the lines are %q, and %q is left", got, l.Rest)
	}
}

// FuzzLines compares a stream in pieces with the same stream at once.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\r\n\nc", uint8(2))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		l := Lines{Max: 1 << 20}
		var got []string
		for rest := text; rest != ""; {
			n := min(int(size)+1, len(rest))
			if !l.Write(rest[:n], func(line []byte) { got = append(got, string(line)) }) {
				t.Fatal("a line is too long")
			}
			rest = rest[n:]
		}
		want := strings.Split(text, "\n")
		if string(l.Rest) != want[len(want)-1] {
			t.Errorf("%q is left of %q", l.Rest, text)
		}
		want = want[:len(want)-1]
		for i := range want {
			want[i] = strings.TrimSuffix(want[i], "\r")
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Errorf("the lines are %q, want %q", got, want)
		}
	})
}
