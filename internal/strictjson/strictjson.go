// Package strictjson reads untrusted JSON: the arguments of tools, envelopes, context packs, the
// bodies of requests.
//
// encoding/json accepts duplicate keys, ignores the case of names, ignores text after the value, and
// replaces half of a surrogate pair by U+FFFD. This package refuses all of that. It returns accepted
// values in canonical form, so equal values are equal bytes.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"swarm"
)

const (
	maxArgs  = 16 << 20 // bytes of a call's arguments
	maxDepth = 100      // of lists and objects within each other
)

// An Object is one JSON object, such as the arguments of a tool. It keeps the first error, and Err
// returns it. So callers can read all fields without a check after each.
type Object struct {
	words  *words
	path   string          // of a nested object: "response."
	whole  json.RawMessage // the outermost object, in canonical form
	fields map[string]json.RawMessage
	err    *error // shared with nested objects
}

// words are the names of an object and its fields in error messages.
type words struct{ whole, are, have, field string }

var (
	ofTool = words{"the arguments", "are", "have", "argument"}
	ofText = words{"the text", "is", "has", "field"}
)

// ReadArgs reads one object with the named fields only. Empty input is an empty object.
func ReadArgs(text []byte, names ...string) *Object {
	if len(bytes.TrimSpace(text)) == 0 {
		return &Object{words: &ofTool, err: new(error)}
	}
	return readObject(&ofTool, text, maxArgs, names...)
}

// ReadObject reads one object of at most `most` bytes. Errors call it by the name whole: "the
// envelope".
func ReadObject(whole string, text []byte, most int, names ...string) *Object {
	return readObject(&words{whole, "is", "has", "field"}, text, most, names...)
}

func readObject(w *words, text []byte, most int, names ...string) *Object {
	a := &Object{words: w, err: new(error)}
	if len(text) > most {
		a.Fail(swarm.Errorf(swarm.BadInput, "%s %s %d bytes; %d are allowed", w.whole, w.have, len(text), most))
		return a
	}
	one, err := canonical(w, text, nil, nil)
	if err != nil {
		a.Fail(err)
		return a
	}
	a.whole = one
	a.open(one, names)
	return a
}

// ReadValue reads one JSON value of any kind.
func ReadValue(text []byte) (json.RawMessage, error) { return canonical(&ofText, text, nil, nil) }

// ReadMessage reads one message of a protocol whose library may ignore the case of keys. A key that
// differs from one of names in its case only is refused: the library could take it for that name,
// although ours did not check it. The values of the names in free are the sender's own data, in
// which any key may stand.
func ReadMessage(text []byte, names, free []string) (json.RawMessage, error) {
	return canonical(&ofText, text, names, free)
}

// Decode decodes one JSON value into a struct. It refuses unknown fields, and text after the value.
func Decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind it")
	}
	return nil
}

// Redact removes secrets from a value that this package read. If the result is not JSON, because a
// number was a secret, it becomes a string.
func Redact(value json.RawMessage, redact func([]byte) []byte) json.RawMessage {
	if value == nil {
		return nil
	}
	clean := redact(slices.Clone(value))
	if json.Valid(clean) {
		return clean
	}
	return swarm.Encode(string(clean))
}

// Into decodes all fields at once into a struct with the same field names.
func (a *Object) Into(into any) error {
	if err := a.Err(); err != nil || a.whole == nil {
		return err
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(a.whole, into); {
	case errors.As(err, &wrong):
		a.Fail(swarm.Errorf(swarm.BadInput, "the %s %q cannot be %s", a.words.field, wrong.Field, article(wrong.Value)).WithHint("%s", wanted(wrong.Type)))
	case err != nil:
		a.Fail(swarm.Errorf(swarm.BadInput, "%s cannot be read: %w", a.words.whole, err))
	}
	return a.Err()
}

// wanted says what a value of a type is in JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "write true or false"
	case reflect.String:
		return `write a text: "…"`
	case reflect.Slice, reflect.Array:
		return "write a list: […]"
	case reflect.Struct, reflect.Map:
		return "write an object: {…}"
	case reflect.Float32, reflect.Float64:
		return "write a number"
	}
	return "write a whole number"
}

func article(noun string) string {
	if noun == "array" || noun == "object" {
		return "an " + noun
	}
	return "a " + noun
}

// Err returns the first error.
func (a *Object) Err() error { return *a.err }

// Fail records an error, if it is the first.
func (a *Object) Fail(err error) {
	if *a.err == nil {
		*a.err = err
	}
}

// Wrong records that a field must be something else.
func (a *Object) Wrong(name, want string) {
	a.Fail(swarm.Errorf(swarm.BadInput, "the %s %q must be %s", a.words.field, a.path+name, want))
}

// open decodes the fields of an object, and refuses unknown ones.
func (a *Object) open(object json.RawMessage, names []string) {
	if string(object) == "null" {
		return
	}
	if object[0] != '{' {
		wrong := swarm.Errorf(swarm.BadInput, "%s must be an object", a.noun())
		if len(names) > 0 {
			wrong.Hint = `write it as {"` + strings.Join(names, `": …, "`) + `": …}`
		}
		a.Fail(wrong)
		return
	}
	a.fields = map[string]json.RawMessage{}
	var unknown []string
	s := canonicalizer{in: object, out: make([]byte, 0, len(object))} // which is in canonical form
	s.take(1)
	for s.more('}') {
		name := s.text()
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
		s.take(1)
		start := len(s.out)
		_ = s.value(maxDepth)
		a.fields[name] = s.out[start:len(s.out):len(s.out)]
	}
	if len(unknown) > 0 {
		name := slices.Min(unknown)
		a.Fail(swarm.Errorf(swarm.BadInput, "there is no %s %s", a.words.field, swarm.Quote(a.path+name)).
			WithHint("%s", swarm.DidYouMean(name, names)))
	}
}

func (a *Object) noun() string {
	if a.path == "" {
		return a.words.whole
	}
	return fmt.Sprintf("the %s %q", a.words.field, strings.TrimSuffix(a.path, "."))
}

// Need records an error for each missing field.
func (a *Object) Need(names ...string) {
	for _, name := range names {
		if !a.Has(name) {
			a.Fail(swarm.Errorf(swarm.BadInput, "the %s %q is missing", a.words.field, a.path+name))
		}
	}
}

// Has reports whether a field is given. null counts as missing, because models write it for what
// they leave out.
func (a *Object) Has(name string) bool {
	value, ok := a.fields[name]
	return ok && string(value) != "null"
}

// Text returns a string field, or "".
func (a *Object) Text(name string) string {
	if !a.Has(name) {
		return ""
	}
	raw := a.fields[name]
	if raw[0] != '"' {
		a.Wrong(name, "a string")
		return ""
	}
	return (&canonicalizer{in: raw}).text()
}

// Texts returns a field that is a list of strings.
func (a *Object) Texts(name string) (texts []string) {
	if a.Has(name) && json.Unmarshal(a.fields[name], &texts) != nil {
		a.Wrong(name, "a list of strings")
	}
	return texts
}

// Bool returns a field that is true or false.
func (a *Object) Bool(name string) (yes bool) {
	if a.Has(name) && json.Unmarshal(a.fields[name], &yes) != nil {
		a.Wrong(name, "true or false")
	}
	return yes
}

// Int returns a whole number from least to most, or otherwise if the field is missing.
func (a *Object) Int(name string, otherwise, least, most int64) int64 {
	if !a.Has(name) {
		return otherwise
	}
	n, err := strconv.ParseInt(string(a.fields[name]), 10, 64)
	if err != nil || n < least || n > most {
		a.Wrong(name, fmt.Sprintf("a whole number from %d to %d", least, most))
		return otherwise
	}
	return n
}

// Time returns a time field, in UTC.
func (a *Object) Time(name string) time.Time {
	var t time.Time
	err := t.UnmarshalText([]byte(a.Text(name)))
	if t = t.UTC(); a.Has(name) && (err != nil || t.Year() < 0 || t.Year() > 9999) { // RFC 3339 has no other years
		a.Wrong(name, "a time such as 2026-01-01T00:00:00Z")
	}
	return t
}

// JSON returns a field of any kind, or nil.
func (a *Object) JSON(name string) json.RawMessage {
	if !a.Has(name) {
		return nil
	}
	return a.fields[name]
}

// Object returns a field that is an object.
func (a *Object) Object(name string, names ...string) *Object {
	in := &Object{words: a.words, path: a.path + name + ".", err: a.err}
	if a.Has(name) {
		in.open(a.fields[name], names)
	}
	return in
}

// Objects returns a field that is a list of objects.
func (a *Object) Objects(name string, names ...string) []*Object {
	if !a.Has(name) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(a.fields[name], &list) != nil {
		a.Wrong(name, "a list")
		return nil
	}
	var all []*Object
	for i, item := range list {
		in := &Object{words: a.words, path: fmt.Sprintf("%s%s[%d].", a.path, name, i), err: a.err}
		in.open(item, names)
		all = append(all, in)
	}
	return all
}

// canonical rewrites a JSON value: without blanks, each string in its shortest form, each number as
// it was. So equal values are equal bytes, and a secret cannot hide behind an escape.
func canonical(w *words, text []byte, names, free []string) (json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, swarm.Errorf(swarm.BadInput, "%s %s not UTF-8", w.whole, w.are)
	}
	if !json.Valid(text) { // also if text follows the value
		var whole json.RawMessage
		return nil, w.notJSON(json.Unmarshal(text, &whole)).WithHint("write one JSON object and nothing after it")
	}
	if half := loneSurrogate(text); half != nil {
		return nil, swarm.Errorf(swarm.BadInput, "%s %s half of a surrogate pair: %s", w.whole, w.have, half).
			WithHint(`a character beyond U+FFFF is two escapes, as in \ud83d\ude00, or stands there itself`)
	}
	s := canonicalizer{words: w, names: names, free: free, in: text, out: make([]byte, 0, len(text))}
	if err := s.value(maxDepth); err != nil {
		return nil, err
	}
	return s.out, nil
}

// loneSurrogate returns the first escape in valid JSON that is half of a surrogate pair, or nil. It
// stands for no character, so it could only become U+FFFD, which is not what was sent.
func loneSurrogate(text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return nil
		}
		text = text[i:]
		high := escapedUnit(text)
		switch {
		case !utf16.IsSurrogate(high):
			text = text[2:]
		case utf16.DecodeRune(high, escapedUnit(text[6:])) == utf8.RuneError:
			return text[:6]
		default:
			text = text[12:]
		}
	}
}

// escapedUnit returns the UTF-16 code unit that an escape at the start of a text stands for: \ud83d.
// It is 0 for everything else.
func escapedUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // four hexadecimal digits, as the JSON is valid
	return rune(unit)
}

func (w *words) notJSON(err error) *swarm.Error {
	return swarm.Errorf(swarm.BadInput, "%s %s not JSON: %w", w.whole, w.are, err)
}

// A canonicalizer rewrites a valid JSON value. It looks at each byte once, because every call of a
// tool pays for it.
type canonicalizer struct {
	*words
	names []string // keys that must be spelled exactly so
	free  []string // of them, those whose values may have any key
	in    []byte   // what is left to be read
	out   []byte
}

// value rewrites one value. depth counts down, so that deep nesting cannot exhaust the stack.
func (s *canonicalizer) value(depth int) error {
	c := s.peek()
	if c == '"' {
		s.text()
		return nil
	}
	if c != '{' && c != '[' {
		n := 0
		for n < len(s.in) && strings.IndexByte(" \t\r\n,]}", s.in[n]) < 0 {
			n++
		}
		s.take(n)
		return nil
	}
	if depth == 0 {
		return swarm.Errorf(swarm.BadInput, "%s %s nested deeper than %d levels", s.whole, s.are, maxDepth)
	}
	s.take(1)
	if c == '{' {
		return s.members(depth - 1)
	}
	return s.items(depth - 1)
}

// members rewrites the members of an object in their order, and refuses duplicate keys.
func (s *canonicalizer) members(depth int) error {
	seen := map[string]bool{}
	for s.more('}') {
		key := s.text()
		if seen[key] {
			return swarm.Errorf(swarm.BadInput, "the key %s stands there twice", swarm.Quote(key))
		}
		seen[key] = true
		if err := s.checkSpelling(key); err != nil {
			return err
		}
		s.peek()
		s.take(1) // the colon
		names := s.names
		if slices.Contains(s.free, key) {
			s.names = nil
		}
		if err := s.value(depth); err != nil {
			return err
		}
		s.names = names
	}
	return nil
}

// checkSpelling refuses a key that is one of the names but for its case.
func (s *canonicalizer) checkSpelling(key string) error {
	if slices.Contains(s.names, key) {
		return nil
	}
	for _, name := range s.names {
		if strings.EqualFold(key, name) {
			return swarm.Errorf(swarm.BadInput, "the key %s is not spelled so", swarm.Quote(key)).WithHint("write %q", name)
		}
	}
	return nil
}

func (s *canonicalizer) items(depth int) error {
	for s.more(']') {
		if err := s.value(depth); err != nil {
			return err
		}
	}
	return nil
}

// more reports whether a list or an object goes on, and takes the comma or the end.
func (s *canonicalizer) more(end byte) bool {
	c := s.peek()
	if c == end || c == ',' {
		s.take(1)
		s.peek()
	}
	return c != end
}

// text rewrites a string, and returns what it says. Most strings are in their shortest form already.
func (s *canonicalizer) text() string {
	n, short := 1, true
	for ; s.in[n] != '"'; n++ {
		switch s.in[n] {
		case '\\':
			n++
			short = false
		case 0xE2: // U+2028 and U+2029 begin with it, and are escaped
			short = false
		}
	}
	raw := s.in[:n+1]
	if short {
		s.take(n + 1)
		return string(raw[1:n])
	}
	var t string
	_ = json.Unmarshal(raw, &t) // it is valid
	s.out = append(s.out, swarm.Encode(t)...)
	s.in = s.in[n+1:]
	return t
}

// peek skips blanks and returns the next byte.
func (s *canonicalizer) peek() byte {
	for len(s.in) > 0 && s.in[0] <= ' ' {
		s.in = s.in[1:]
	}
	if len(s.in) == 0 {
		return 0
	}
	return s.in[0]
}

// take copies the next n bytes.
func (s *canonicalizer) take(n int) {
	s.out = append(s.out, s.in[:n]...)
	s.in = s.in[n:]
}
