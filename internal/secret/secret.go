// Package secret keeps secrets out of everything that is stored. A [Redactor] knows the secret
// values and replaces them by the names of their variables, in whole texts and in streams. Three
// sorts of values are secrets:
//   - the value of a variable whose name says so (see [LooksSecret]);
//   - a password or a key in an address or a connection string, in any variable;
//   - a key that is known by how it looks, in any variable.
//
// Most texts hold no secret, so the search must be cheap. It is one pass over the text for any
// number of values. It reads about every eighth byte and copies nothing.
package secret

import (
	"slices"
	"strings"
	"unsafe"
)

// minLength is the length of the shortest value that is replaced. Shorter values occur in ordinary
// text too often.
const minLength = 8

// A Redactor replaces secrets by their names. It is immutable, so many goroutines may use it at
// once. A nil one replaces nothing.
type Redactor struct {
	needles []needle // the longest first
	longest int
	// skip tells, by the last two bytes of a window of minLength bytes, how far the window can move
	// without passing the beginning of a needle. If it is 0, one of the needles in chains may begin
	// here.
	skip   [1 << 16]uint8
	chains map[uint16][]int32
	starts [256][]int32 // needles by their first byte
}

// A needle is one spelling of a value, or of the beginning of values.
type needle struct {
	text string
	mark string // the text that replaces it
	more int    // how many letters and digits may follow that belong to it
}

// A Beginning is the beginning of many secrets, such as the tokens of a run's agents. Their rest are
// letters, digits, - and _. One Beginning costs as much as one secret, however many there are.
type Beginning struct {
	Name string
	Text string
	Rest int // the most that follows, in bytes
}

// schemes are the words before a secret in an Authorization header.
var schemes = []string{"bearer", "basic", "token"}

// New makes a Redactor for the secrets in an environment, as os.Environ returns it, and for more
// secrets by name. All values in more are secrets, whatever their names, and all values with one of
// the beginnings.
func New(environ []string, more map[string]string, beginnings ...Beginning) *Redactor {
	values := map[string]string{} // value → name; if several names have the same value, the better one
	addValue := func(name, value string) {
		value = strings.TrimSpace(value)
		if old, ok := values[value]; !trivial(value) && (!ok || better(name, old)) {
			values[value] = name
		}
	}
	addHeader := func(name, value string) {
		addValue(name, value)
		if scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " "); ok && slices.Contains(schemes, strings.ToLower(scheme)) {
			addValue(name, rest)
		}
	}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case ok && holdsHeaders(name):
			for _, value := range headerValues(value) {
				addHeader(name, value)
			}
		case ok && holdsAddress(name):
			for _, value := range addressValues(value) {
				addValue(name, value)
			}
		case ok && LooksSecret(name):
			addHeader(name, value)
		}
		for _, value := range append(connectionSecrets(name, value), recognizedSecrets(value)...) {
			addValue(name, value)
		}
	}
	for name, value := range more {
		addValue(name, value)
	}
	r := &Redactor{}
	if len(values) == 0 && len(beginnings) == 0 {
		return r
	}
	names := map[string]string{} // by spelling
	for value, name := range values {
		for _, text := range spellings(value) {
			if old, ok := names[text]; !ok || better(name, old) {
				names[text] = name
			}
		}
	}
	for text, name := range names {
		r.needles = append(r.needles, needle{text: text, mark: "[secret " + printable(name) + "]"})
	}
	for _, b := range beginnings {
		for _, text := range spellings(b.Text) { // in hexadecimal the rest is twice as long
			r.needles = append(r.needles, needle{text, "[secret " + printable(b.Name) + "]", 2 * b.Rest})
		}
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

// Empty reports whether there is nothing to replace.
func (r *Redactor) Empty() bool { return r == nil || len(r.needles) == 0 }

// String returns s with every secret replaced. Without a secret it returns s itself.
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

// Bytes returns b with every secret replaced. Without a secret it returns b itself.
func (r *Redactor) Bytes(b []byte) []byte {
	if r.Empty() || len(b) < minLength {
		return b
	}
	view := unsafe.String(&b[0], len(b)) // shares the bytes of b only for the search: b does not change meanwhile, and nothing keeps view
	if r.find(view, 0).mark == "" {
		return b
	}
	return []byte(r.String(view))
}

// A Stream replaces secrets in a text that comes in pieces, wherever the pieces are cut. It holds
// back no more than a possible beginning of a secret. It belongs to one goroutine.
type Stream struct {
	r    *Redactor
	held string
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Write adds the next piece and returns the text that is safe to show now.
func (s *Stream) Write(piece string) string {
	if s.r.Empty() {
		return piece
	}
	text := piece
	if s.held != "" {
		text = s.held + piece
	}
	keep := s.r.undecided(text)
	// A secret that reaches into the undecided part may turn out to be a longer one.
	for at := 0; ; {
		found := s.r.find(text, at)
		if found.mark == "" || found.start >= keep {
			break
		}
		if found.end > keep || found.open && found.end == len(text) {
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

// better reports whether a name says more about a secret than another: it names a secret, or it is
// the first in the alphabet.
func better(name, than string) bool {
	if secret := LooksSecret(name); secret != LooksSecret(than) {
		return secret
	}
	return name < than
}
