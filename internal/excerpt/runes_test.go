package excerpt

import (
	"testing"
	"unicode/utf8"
)

func TestCutAt(t *testing.T) {
	for _, c := range []struct {
		text       string
		most, want int
	}{{"a€b", 0, 0}, {"a€b", 1, 1}, {"a€b", 2, 1}, {"a€b", 3, 1}, {"a€b", 4, 4}, {"a€b", 5, 5}, {"a€b", 9, 5}, {"€", 2, 0}, {"\x80\x80\x80\x80\x80\x80", 5, 5}} {
		if got := CutAt(c.text, c.most); got != c.want || CutAt([]byte(c.text), c.most) != got {
			t.Errorf("%q is cut at %d and not at %d", c.text, got, c.want)
		}
	}
}

// FuzzWholeRunes checks that pieces are never cut inside a rune and that nothing is held for ever.
func FuzzWholeRunes(f *testing.F) {
	f.Add([]byte("a€"))
	f.Add([]byte("\xe2\x82"))
	f.Add([]byte("\xff\xf0\x9f\x98"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := WholeRunes(b)
		if n < len(b)-(utf8.UTFMax-1) || n > len(b) {
			t.Fatalf("%d of %d bytes are passed on", n, len(b))
		}
		if n < len(b) && utf8.FullRune(b[n:]) {
			t.Fatalf("%q is held, though it is whole", b[n:])
		}
		if utf8.Valid(b) && n != len(b) {
			t.Fatalf("%q is held of a valid text", b[n:])
		}
		if last := len(b) - 1; utf8.Valid(b) && last >= 0 && !utf8.Valid(b[:WholeRunes(b[:last])]) {
			t.Fatalf("a rune is cut in %q", b[:last])
		}
	})
}
