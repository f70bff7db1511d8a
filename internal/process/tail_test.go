package process

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"swarm"
)

func TestTail(t *testing.T) {
	for _, c := range []struct {
		name   string
		max    int
		pieces []string
		want   string
	}{
		{"nothing", 4, nil, ""},
		{"less than it keeps", 4, []string{"a", "b"}, "ab"},
		{"as much", 4, []string{"ab", "cd"}, "abcd"},
		{"one more", 4, []string{"abcd", "e"}, "bcde"},
		{"around twice", 4, []string{"abc", "def", "ghi"}, "fghi"},
		{"a long piece", 4, []string{"ab", "cdefghij"}, "ghij"},
		{"a long piece, then a short one", 4, []string{"abcdef", "g"}, "defg"},
		{"cut inside a rune", 4, []string{"€", "ab"}, "ab"},
		{"cut before a rune", 5, []string{"x€", "ab"}, "€ab"},
		{"whole, though it begins like half a rune", 4, []string{"\x82ab"}, "\x82ab"},
		{"not UTF-8", 4, []string{strings.Repeat("\x82", 9)}, "\x82"},
	} {
		tail := Tail{Max: c.max}
		for _, p := range c.pieces {
			if n, err := tail.Write([]byte(p)); n != len(p) || err != nil {
				t.Errorf("%s: Write says %d, %v", c.name, n, err)
			}
		}
		if got := string(tail.Bytes()); got != c.want {
			t.Errorf("%s: kept %q, want %q", c.name, got, c.want)
		}
		if want := int64(len(strings.Join(c.pieces, ""))); tail.Len() != want {
			t.Errorf("%s: counted %d, want %d", c.name, tail.Len(), want)
		}
	}
}

// Runes that arrive in two pieces are delivered whole. Incomplete ones are delivered at the end.
func TestStreamPassesOnWholeRunes(t *testing.T) {
	var pieces []string
	s := stream{live: func(piece string) { pieces = append(pieces, piece) }}
	var buf chunk
	for _, read := range []string{"\xe2\x82", "\xac", "a\xc3", "\xbcx\xc3"} {
		s.deliver(&buf, copy(s.next(&buf), read))
	}
	s.flush()
	if got, want := strings.Join(pieces, "|"), "€|a|üx|\xc3"; got != want || string(s.tail.Bytes()) != "€aüx\xc3" {
		t.Errorf("passed on %q, want %q; kept %q", got, want, s.tail.Bytes())
	}
}

func TestTailKeepsMaxOutputByItself(t *testing.T) {
	var tail Tail
	_, _ = tail.Write(bytes.Repeat([]byte("x"), 3*swarm.MaxOutput))
	if n := len(tail.Bytes()); n != swarm.MaxOutput {
		t.Errorf("kept %d bytes", n)
	}
}

// FuzzTail compares the ring with the end of the whole stream.
func FuzzTail(f *testing.F) {
	f.Add([]byte("héllo wörld €€€"), uint8(3), uint8(7))
	f.Add([]byte("\x82\x82\x82\x82\x82"), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, text []byte, piece, most uint8) {
		tail := Tail{Max: int(most) + 1}
		for rest := text; len(rest) > 0; {
			n := min(int(piece)+1, len(rest))
			_, _ = tail.Write(rest[:n])
			rest = rest[n:]
		}
		want := text[max(0, len(text)-tail.Max):]
		got := tail.Bytes()
		if !bytes.HasSuffix(text, got) || len(want)-len(got) > utf8.UTFMax-1 {
			t.Fatalf("kept %q of %q", got, text)
		}
		if utf8.Valid(text) && !utf8.Valid(got) {
			t.Fatalf("cut a rune: %q of %q", got, text)
		}
	})
}
