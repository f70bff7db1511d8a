// Package jsonedit changes one value in a JSON file that a person wrote, and keeps every other byte:
// order, indentation, and the comments and trailing commas of JSONC.
package jsonedit

import (
	"encoding/json"
	"errors"
	"strings"
)

// ErrForm says that a text is not one JSON object, so that nothing was changed.
var ErrForm = errors.New("it is not one JSON object")

// Set returns the text with a value, which is JSON, at a path of keys. Objects on the way that are
// missing are made. An empty text becomes an object.
func Set(text string, value string, path ...string) (string, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}\n"
	}
	o, err := readRoot(text)
	if err != nil {
		return "", err
	}
	for depth := 0; ; depth++ {
		m, found := o.member(path[depth])
		last := depth == len(path)-1
		switch {
		case !found:
			return o.insert(text, path[depth], wrapped(value, path[depth+1:]), depth+1), nil
		case last:
			return text[:m.from] + value + text[m.to:], nil
		case text[m.from] != '{':
			return "", ErrForm
		}
		r := &reader{text: text, at: m.from}
		if o, err = r.object(); err != nil {
			return "", err
		}
	}
}

// Delete returns the text without the member at a path of keys. found is false if there is none.
func Delete(text string, path ...string) (result string, found bool, err error) {
	if strings.TrimSpace(text) == "" {
		return text, false, nil
	}
	o, err := readRoot(text)
	for depth := 0; err == nil; depth++ {
		m, found := o.member(path[depth])
		switch {
		case !found:
			return text, false, nil
		case depth == len(path)-1:
			return o.delete(text, m), true, nil
		case text[m.from] != '{':
			return text, false, nil
		}
		r := &reader{text: text, at: m.from}
		o, err = r.object()
	}
	return text, false, err
}

// Get returns the value at a path of keys, as it stands in the text.
func Get(text string, path ...string) (value string, found bool, err error) {
	if strings.TrimSpace(text) == "" {
		return "", false, nil
	}
	o, err := readRoot(text)
	for depth := 0; err == nil; depth++ {
		m, found := o.member(path[depth])
		switch {
		case !found:
			return "", false, nil
		case depth == len(path)-1:
			return text[m.from:m.to], true, nil
		case text[m.from] != '{':
			return "", false, nil
		}
		r := &reader{text: text, at: m.from}
		o, err = r.object()
	}
	return "", false, err
}

// wrapped puts a value into objects.
func wrapped(value string, path []string) string {
	for i := len(path) - 1; i >= 0; i-- {
		value = "{" + quoted(path[i]) + ": " + value + "}"
	}
	return value
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string
	return string(b)
}

// A member is a key and its value in a text.
type member struct {
	name     string
	key      int // where the key begins
	from, to int // the value
	comma    int // after the comma that follows; 0 = none does
}

// An objectAt is an object in a text.
type objectAt struct {
	open, close int // of its braces
	members     []member
}

// member returns the last member of a name, which is the one that counts.
func (o *objectAt) member(name string) (m member, found bool) {
	for _, x := range o.members {
		if x.name == name {
			m, found = x, true
		}
	}
	return m, found
}

// insert adds a member at the end of the object.
func (o *objectAt) insert(text, name, value string, depth int) string {
	const indent = "  "
	entry := "\n" + strings.Repeat(indent, depth) + quoted(name) + ": " + value
	if len(o.members) == 0 {
		return text[:o.open+1] + entry + "\n" + strings.Repeat(indent, depth-1) + strings.TrimLeft(text[o.open+1:], " \t\r\n")
	}
	last := o.members[len(o.members)-1]
	begin := strings.LastIndexByte(text[:last.key], '\n') + 1
	if own := text[begin:last.key]; strings.TrimSpace(own) == "" { // the indentation of its neighbour
		entry = "\n" + own + quoted(name) + ": " + value
	} else {
		entry = " " + quoted(name) + ": " + value
	}
	comma, from, after := ",", last.to, ""
	if last.comma > 0 {
		comma, from, after = "", last.comma, "," // a trailing comma is the person's style
	}
	to := from
	if end := strings.IndexByte(text[from:], '\n'); end >= 0 && entry[0] == '\n' && isComment(text[from:from+end]) {
		to = from + end // the comment belongs to the neighbour
	}
	return text[:from] + comma + text[from:to] + entry + after + text[to:]
}

// isComment reports whether the rest of a line is empty, or one comment.
func isComment(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") && strings.Index(rest, "*/") == len(rest)-len("*/")
}

// delete removes a member with one of the commas beside it, and its line if nothing else is on it.
func (o *objectAt) delete(text string, m member) string {
	from, to := m.key, m.to
	for from > 0 && (text[from-1] == ' ' || text[from-1] == '\t') {
		from--
	}
	if from > 0 && text[from-1] == '\n' {
		from--
	}
	if m.comma > 0 {
		return text[:from] + text[m.comma:]
	}
	for i, x := range o.members {
		if x.key == m.key && i > 0 { // the last one: the comma before it goes
			comma := o.members[i-1].comma
			return text[:comma-1] + text[comma:from] + text[to:]
		}
	}
	return text[:from] + text[to:]
}

// A reader walks through JSON, with the comments and trailing commas of JSONC.
type reader struct {
	text string
	at   int
}

// readRoot reads a text that is one object.
func readRoot(text string) (*objectAt, error) {
	r := &reader{text: text, at: len(text) - len(strings.TrimPrefix(text, "\uFEFF"))}
	r.skip()
	o, err := r.object()
	if err != nil {
		return nil, err
	}
	if r.skip(); r.at != len(text) {
		return nil, ErrForm
	}
	return o, nil
}

// skip goes over white space and comments.
func (r *reader) skip() {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			r.at++
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				r.at += end
			} else {
				r.at = len(r.text)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				r.at = len(r.text)
				return
			}
			r.at += end + len("*/")
		default:
			return
		}
	}
}

func (r *reader) next(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// object reads an object.
func (r *reader) object() (*objectAt, error) {
	o := &objectAt{open: r.at}
	if !r.next('{') {
		return nil, ErrForm
	}
	for {
		if r.skip(); r.next('}') {
			o.close = r.at - 1
			return o, nil
		}
		m := member{key: r.at}
		name, err := r.str()
		if err != nil {
			return nil, err
		}
		m.name = name
		if r.skip(); !r.next(':') {
			return nil, ErrForm
		}
		r.skip()
		m.from = r.at
		if err := r.value(); err != nil {
			return nil, err
		}
		m.to = r.at
		more := false
		if r.skip(); r.next(',') {
			more, m.comma = true, r.at
		}
		o.members = append(o.members, m)
		if r.skip(); !more && (r.at >= len(r.text) || r.text[r.at] != '}') {
			return nil, ErrForm
		}
	}
}

// str reads a string.
func (r *reader) str() (string, error) {
	from := r.at
	if !r.next('"') {
		return "", ErrForm
	}
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case '\\':
			r.at++
		case '"':
			r.at++
			var s string
			if json.Unmarshal([]byte(r.text[from:r.at]), &s) != nil {
				return "", ErrForm
			}
			return s, nil
		}
		r.at++
	}
	return "", ErrForm
}

// value reads a value of any kind.
func (r *reader) value() error {
	if r.at >= len(r.text) {
		return ErrForm
	}
	switch r.text[r.at] {
	case '{':
		_, err := r.object()
		return err
	case '"':
		_, err := r.str()
		return err
	case '[':
		r.at++
		for {
			if r.skip(); r.next(']') {
				return nil
			}
			if err := r.value(); err != nil {
				return err
			}
			if r.skip(); !r.next(',') && (r.at >= len(r.text) || r.text[r.at] != ']') {
				return ErrForm
			}
		}
	}
	from := r.at
	for r.at < len(r.text) && !strings.ContainsRune(" \t\r\n,]}/", rune(r.text[r.at])) {
		r.at++
	}
	if !json.Valid([]byte(r.text[from:r.at])) {
		return ErrForm
	}
	return nil
}
