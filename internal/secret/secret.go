// Package secret keeps secrets out of everything that is stored. A secret is the value of a variable whose name says so, and a
// password or key in an address or a connection string, whatever its variable is called; a [Redactor] knows the values and writes the variable's name in their place, in whole texts and in streams.
//
// Most texts hold no secret, so looking must be cheap: one pass over the text, however many values there are, that touches
// about every eighth byte and copies nothing.
package secret

import (
	"slices"
	"strings"
	"unsafe"
)

// minLength is the length of the shortest value that is replaced. Shorter ones stand in ordinary text too often.
const minLength = 8

// A Redactor replaces secrets by their names. It never changes, and may be used by many at once. A nil one replaces nothing.
type Redactor struct {
	needles []needle // the longest first
	longest int
	// skip tells by two bytes how far a window of minLength bytes that ends in them can move on without passing the beginning
	// of a needle. Where it is 0, the needles in chains may begin.
	skip   [1 << 16]uint8
	chains map[uint16][]int32
	starts [256][]int32 // needles by their first byte
}

// A needle is one spelling of a value.
type needle struct {
	text string
	mark string // what is written instead
}

// schemes stand before a secret in a header.
var schemes = []string{"bearer", "basic", "token"}

// New makes a Redactor for the secrets in an environment, as os.Environ gives it, and for more of them, by name. Those in more
// are secrets whatever they are called.
func New(environ []string, more map[string]string) *Redactor {
	values := map[string]string{} // the name by the value; of several names the first in the alphabet
	take := func(name, value string) {
		value = strings.TrimSpace(value)
		if old, ok := values[value]; !trivial(value) && (!ok || name < old) {
			values[value] = name
		}
	}
	takeHeader := func(name, value string) {
		take(name, value)
		if scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " "); ok && slices.Contains(schemes, strings.ToLower(scheme)) {
			take(name, rest)
		}
	}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case ok && holdsHeaders(name):
			for _, value := range headerValues(value) {
				takeHeader(name, value)
			}
		case ok && holdsAddress(name):
			for _, value := range addressValues(value) {
				take(name, value)
			}
		case ok && LooksSecret(name):
			takeHeader(name, value)
		}
		for _, value := range connectionSecrets(name, value) {
			take(name, value)
		}
	}
	for name, value := range more {
		take(name, value)
	}
	r := &Redactor{}
	if len(values) == 0 {
		return r
	}
	marks := map[string]string{}
	for value, name := range values {
		mark := "[secret " + printable(name) + "]"
		for _, text := range spellings(value) {
			if old, ok := marks[text]; !ok || mark < old {
				marks[text] = mark
			}
		}
	}
	for text, mark := range marks {
		r.needles = append(r.needles, needle{text, mark})
	}
	slices.SortFunc(r.needles, func(a, b needle) int {
		if d := len(b.text) - len(a.text); d != 0 {
			return d
		}
		return strings.Compare(a.text, b.text)
	})
	r.index()
	return r
}

// Empty says that there is nothing to replace.
func (r *Redactor) Empty() bool { return r == nil || len(r.needles) == 0 }

// String is s with every secret replaced; s itself when there is none.
func (r *Redactor) String(s string) string {
	if r.Empty() {
		return s
	}
	found := r.find(s, 0)
	if found.mark == "" {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for found.mark != "" {
		b.WriteString(s[at:found.start])
		b.WriteString(found.mark)
		at = found.end
		found = r.find(s, at)
	}
	b.WriteString(s[at:])
	return b.String()
}

// Bytes is b with every secret replaced; b itself when there is none.
func (r *Redactor) Bytes(b []byte) []byte {
	if r.Empty() || len(b) < minLength {
		return b
	}
	view := unsafe.String(&b[0], len(b)) // only for looking: b does not change meanwhile, and nothing keeps the view
	if r.find(view, 0).mark == "" {
		return b
	}
	return []byte(r.String(view))
}

// A Stream replaces secrets in a text that comes in pieces, wherever the pieces are cut. It holds back no more than what may be
// the beginning of a secret.
type Stream struct {
	r    *Redactor
	held string
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Write takes the next piece and returns what may be shown now.
func (s *Stream) Write(piece string) string {
	if s.r.Empty() {
		return piece
	}
	text := piece
	if s.held != "" {
		text = s.held + piece
	}
	keep := s.r.undecided(text)
	// A secret that reaches into what is undecided may turn out to be a longer one.
	for at := 0; ; {
		found := s.r.find(text, at)
		if found.mark == "" || found.start >= keep {
			break
		}
		if found.end > keep {
			keep = found.start
			break
		}
		at = found.end
	}
	s.held = strings.Clone(text[keep:])
	return s.r.String(text[:keep])
}

// Flush ends the text and returns the rest of it.
func (s *Stream) Flush() string {
	rest := s.held
	s.held = ""
	return s.r.String(rest)
}
