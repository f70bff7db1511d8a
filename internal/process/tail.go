package process

import (
	"strings"
	"unicode/utf8"

	"swarm"
	"swarm/internal/excerpt"
)

// A Tail is a writer that keeps the last Max bytes and counts all of them. Its memory never exceeds
// Max.
type Tail struct {
	Max   int // bytes to keep; 0 = swarm.MaxOutput
	ring  []byte
	next  int // index of the oldest byte, once the ring is full
	total int64
}

// Write always succeeds.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	t.total += int64(n)
	limit := t.limit()
	if len(p) >= limit {
		t.ring, t.next = append(t.ring[:0], p[len(p)-limit:]...), 0
		return n, nil
	}
	if room := limit - len(t.ring); room > 0 {
		k := min(room, len(p))
		t.ring, p = append(t.ring, p[:k]...), p[k:]
	}
	for len(p) > 0 {
		k := copy(t.ring[t.next:], p)
		t.next, p = (t.next+k)%limit, p[k:]
	}
	return n, nil
}

// Len returns how many bytes were written.
func (t *Tail) Len() int64 { return t.total }

// Bytes returns a copy of the kept bytes. If the beginning was dropped, the copy starts at a rune.
func (t *Tail) Bytes() []byte {
	b := make([]byte, 0, len(t.ring))
	b = append(append(b, t.ring[t.next:]...), t.ring[:t.next]...)
	if t.total > int64(len(b)) {
		b = b[excerpt.RestOfRune(b):]
	}
	return b
}

func (t *Tail) limit() int {
	if t.Max > 0 {
		return t.Max
	}
	return swarm.MaxOutput
}

// StderrText returns the kept standard error as text. It starts with … if the beginning was
// dropped. The … tells the redaction of secrets that a secret may be cut in two there.
func StderrText(stderr []byte) string {
	text := strings.ToValidUTF8(string(stderr), "\uFFFD")
	if len(stderr) > maxStderr-utf8.UTFMax {
		return "…" + text
	}
	return text
}

// LastWords returns the last lines of standard error, which mostly say why a program failed.
func LastWords(stderr []byte) string {
	const lines, most = 3, 400
	var last []string
	for line := range strings.SplitSeq(StderrText(stderr), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			last = append(last, line)
		}
	}
	if len(last) == 0 {
		return ""
	}
	said := strings.Join(last[max(0, len(last)-lines):], " | ")
	if len(said) > most {
		from := len(said) - most
		from += excerpt.RestOfRune(said[from:])
		said = "…" + said[from:]
	}
	return ": " + said
}
