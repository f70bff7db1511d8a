package term

import (
	"math/rand/v2"
	"strings"
	"testing"

	"swarm/internal/termtest"
)

// However a stream is cut into pieces, its lines are the same, and nothing in them acts on a
// terminal.
func FuzzLineSplitter(f *testing.F) {
	f.Add([]byte("one\r\ntwo \x1b[31mred\xff\r日本語\n\nthree"), uint64(1))
	f.Add([]byte("\xe6\x97"), uint64(3))
	f.Fuzz(func(t *testing.T, spoken []byte, seed uint64) {
		hear := func(pieces ...[]byte) string {
			var b strings.Builder
			var s LineSplitter
			tell := func(part string, ends bool) {
				if b.WriteString(part); ends {
					b.WriteString("\n")
				}
			}
			for _, p := range pieces {
				s.Add(string(p), tell)
			}
			s.End(tell)
			return b.String()
		}
		random := rand.New(rand.NewPCG(seed, 1))
		var pieces [][]byte
		for rest := spoken; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(4))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole := hear(spoken)
		if got := hear(pieces...); got != whole {
			t.Errorf("%q in pieces is %q, want %q", spoken, got, whole)
		}
		termtest.Safe(t, strings.ReplaceAll(whole, "\t", " "))
	})
}
