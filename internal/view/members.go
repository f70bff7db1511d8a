package view

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"swarm"
)

// members iterates over the members of a JSON object.
//
// Folding a million events with encoding/json takes eight seconds, and the fold needs very little
// of a body. So the kinds that come with every turn are read by members, which skips unneeded
// values without decoding them. It reads what encoding/json has written, and reports what it cannot
// read.
type members struct {
	rest       []byte
	key, value []byte // of the current member; a string still has its quotes
	begun, bad bool
}

// next moves to the next member and reports whether there is one.
func (m *members) next() bool {
	m.space()
	if !m.begun {
		m.begun = true
		if !m.take('{') {
			return m.fail()
		}
		if m.space(); m.take('}') {
			return false
		}
	} else {
		if m.take('}') {
			return false
		}
		if !m.take(',') {
			return m.fail()
		}
		m.space()
	}
	key, ok := m.text()
	if !ok {
		return m.fail()
	}
	if m.space(); !m.take(':') {
		return m.fail()
	}
	m.space()
	value, ok := m.any()
	if !ok {
		return m.fail()
	}
	m.key, m.value = key[1:len(key)-1], value
	return true
}

func (m *members) fail() bool {
	m.bad, m.rest = true, nil
	return false
}

func (m *members) space() {
	for len(m.rest) > 0 && (m.rest[0] == ' ' || m.rest[0] == '\n' || m.rest[0] == '\t' || m.rest[0] == '\r') {
		m.rest = m.rest[1:]
	}
}

func (m *members) take(c byte) bool {
	if len(m.rest) == 0 || m.rest[0] != c {
		return false
	}
	m.rest = m.rest[1:]
	return true
}

func (m *members) cut(n int) []byte {
	v := m.rest[:n]
	m.rest = m.rest[n:]
	return v
}

// text consumes a string with its quotes.
func (m *members) text() ([]byte, bool) {
	n := textLen(m.rest)
	if n == 0 {
		return nil, false
	}
	return m.cut(n), true
}

// textLen returns the length of the string at the beginning of b, with its quotes, or 0.
func textLen(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for n := 1; ; {
		q := bytes.IndexByte(b[n:], '"')
		if q < 0 {
			return 0
		}
		n += q
		slashes := 0
		for b[n-1-slashes] == '\\' {
			slashes++
		}
		n++
		if slashes%2 == 0 {
			return n
		}
	}
}

// any consumes a value of any kind.
func (m *members) any() ([]byte, bool) {
	if len(m.rest) == 0 {
		return nil, false
	}
	switch m.rest[0] {
	case '"':
		return m.text()
	case '{', '[':
		return m.nested()
	}
	n := 0
	for n < len(m.rest) && m.rest[n] != ',' && m.rest[n] != '}' && m.rest[n] > ' ' {
		n++
	}
	return m.cut(n), n > 0
}

// nested consumes an object or a list.
func (m *members) nested() ([]byte, bool) {
	depth := 0
	for n := 0; n < len(m.rest); n++ {
		switch m.rest[n] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return m.cut(n + 1), true
			}
		case '"':
			l := textLen(m.rest[n:])
			if l == 0 {
				return nil, false
			}
			n += l - 1
		}
	}
	return nil, false
}

// set stores a JSON string in to, and allocates only if it differs.
func set[S ~string](to *S, value []byte) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	raw := value[1 : len(value)-1]
	if plain := bytes.IndexByte(raw, '\\') < 0; plain && string(*to) == string(raw) {
		return true
	} else if plain && utf8.Valid(raw) {
		*to = S(raw)
		return true
	}
	var s string
	err := json.Unmarshal(value, &s)
	*to = S(s)
	return err == nil
}

func setInt[N ~int | ~int64](to *N, value []byte) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	*to = N(n)
	return err == nil
}

// setUsage reads a swarm.Usage.
func setUsage(to *swarm.Usage, value []byte) bool {
	*to = swarm.Usage{}
	m, ok := members{rest: value}, true
	for m.next() && ok {
		switch string(m.key) {
		case "calls":
			ok = setInt(&to.Calls, m.value)
		case "input_tokens":
			ok = setInt(&to.InputTokens, m.value)
		case "output_tokens":
			ok = setInt(&to.OutputTokens, m.value)
		case "cached_tokens":
			ok = setInt(&to.CachedTokens, m.value)
		case "usd":
			var err error
			to.USD, err = strconv.ParseFloat(string(m.value), 64)
			ok = err == nil
		case "estimated":
			to.Estimated = string(m.value) == "true"
		}
	}
	return ok && !m.bad
}

// setLastUsage reads the usage of the last request in a list of requests. It skips the others
// without decoding them.
func setLastUsage(to *swarm.Usage, value []byte) bool {
	m := members{rest: value}
	if !m.take('[') {
		return false
	}
	var one []byte
	for m.space(); !m.take(']'); m.space() {
		m.take(',')
		m.space()
		next, ok := m.any()
		if !ok {
			return false
		}
		one = next
	}
	last := members{rest: one}
	for one != nil && last.next() {
		if string(last.key) == "usage" {
			return setUsage(to, last.value)
		}
	}
	return !last.bad
}
