package process

import (
	"strings"
	"unicode/utf8"

	"swarm"
)

// A Tail is a writer that keeps the end of what it is given, and counts all of it. However much that is, it takes no more
// memory than what it keeps.
type Tail struct {
	Max   int // how many bytes are kept; 0 = swarm.MaxOutput
	ring  []byte
	next  int // where the oldest byte lies, once the ring is full
	total int64
}

// Write never fails.
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

// Len is how many bytes were written.
func (t *Tail) Len() int64 { return t.total }

// Bytes is what was kept, in memory of its own. When something was cut off, it begins with the beginning of a rune.
func (t *Tail) Bytes() []byte {
	b := make([]byte, 0, len(t.ring))
	b = append(append(b, t.ring[t.next:]...), t.ring[:t.next]...)
	if t.total > int64(len(b)) {
		b = b[RestOfRune(b):]
	}
	return b
}

func (t *Tail) limit() int {
	if t.Max > 0 {
		return t.Max
	}
	return swarm.MaxOutput
}

// RestOfRune is how many bytes at the beginning of b belong to a rune that began before it.
func RestOfRune(b []byte) int {
	n := 0
	for n < len(b) && n < utf8.UTFMax-1 && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}

// wholeRunes is how much of b can be passed on without cutting its last rune in two. Bytes that are not UTF-8 are passed on
// as they are.
func wholeRunes(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		at := len(b) - i
		if utf8.RuneStart(b[at]) {
			if utf8.FullRune(b[at:]) {
				return len(b)
			}
			return at
		}
	}
	return len(b)
}

// Ended is what is kept of what a program wrote to standard error, as a text. Where its beginning is missing, a … says so, by which
// those who look for secrets know that one may have been cut in two.
func Ended(stderr []byte) string {
	text := strings.ToValidUTF8(string(stderr), "\uFFFD")
	if len(stderr) > maxStderr-utf8.UTFMax {
		return "…" + text
	}
	return text
}

// LastWords are the last lines of what a program wrote to standard error: mostly why it failed.
func LastWords(stderr []byte) string {
	const lines, most = 3, 400
	var last []string
	for line := range strings.SplitSeq(Ended(stderr), "\n") {
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
		from += RestOfRune([]byte(said[from:]))
		said = "…" + said[from:]
	}
	return ": " + said
}
