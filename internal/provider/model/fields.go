package model

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// fields are fields of a JSON object, by name.
type fields map[string]json.RawMessage

// decodeFields decodes an object, takes the known fields out of it, and returns the others.
func decodeFields(data []byte, known map[string]any) (f fields, err error) {
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	for name, to := range known {
		raw, ok := f[name]
		if !ok {
			continue
		}
		delete(f, name)
		if to == nil || isNull(raw) {
			continue
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// A kept has the fields of a message that this package does not know. Servers want them back in the
// next request: signatures of thoughts, encrypted reasoning. They go back as they came. A stream
// sends them in pieces, which are joined when the answer has ended.
type kept map[string][]json.RawMessage

func (k *kept) add(f fields) {
	for name, value := range f {
		if isNull(value) {
			continue
		}
		if *k == nil {
			*k = kept{}
		}
		(*k)[name] = append((*k)[name], bytes.Clone(value))
	}
}

// join returns the whole fields.
func (k kept) join() fields {
	f := fields{}
	for name, pieces := range k {
		f[name] = joinPieces(pieces, true)
	}
	return f
}

// joinPieces puts the pieces of one value together. goesOn says whether a text goes on with the next
// piece, or is repeated in it.
func joinPieces(pieces []json.RawMessage, goesOn bool) json.RawMessage {
	last := pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return last
	}
	pieces = slices.DeleteFunc(pieces, func(p json.RawMessage) bool { return p[0] != last[0] })
	switch {
	case last[0] == '"' && goesOn:
		var b strings.Builder
		for _, p := range pieces {
			b.WriteString(decodeText(p))
		}
		return encodeValue(b.String())
	case last[0] == '{':
		return joinObjects(pieces)
	case last[0] == '[':
		return joinLists(pieces)
	}
	return last
}

// pieceFields are the fields of an object in which a text comes in pieces. Other texts, such as a
// type or an id, are repeated.
var pieceFields = []string{"text", "summary", "data", "thinking"}

func joinObjects(pieces []json.RawMessage) json.RawMessage {
	var k kept
	for _, p := range pieces {
		var f fields
		if json.Unmarshal(p, &f) == nil {
			k.add(f)
		}
	}
	whole := fields{}
	for name, pieces := range k {
		whole[name] = joinPieces(pieces, slices.Contains(pieceFields, name))
	}
	return encodeValue(whole)
}

// joinLists appends lists to each other. Elements with the same type and index are pieces of one.
func joinLists(pieces []json.RawMessage) json.RawMessage {
	var groups [][]json.RawMessage
	at := map[string]int{}
	for _, p := range pieces {
		var list []json.RawMessage
		if json.Unmarshal(p, &list) != nil {
			continue
		}
		for _, element := range list {
			var e struct{ Type, Index json.RawMessage }
			_ = json.Unmarshal(element, &e) // an element of another kind has neither
			name := string(e.Type) + " " + string(e.Index)
			if i, ok := at[name]; ok && len(e.Index) > 0 {
				groups[i] = append(groups[i], element)
				continue
			}
			at[name] = len(groups)
			groups = append(groups, []json.RawMessage{element})
		}
	}
	return joinGroups(groups)
}

func joinGroups(groups [][]json.RawMessage) json.RawMessage {
	list := make([]json.RawMessage, len(groups))
	for i, g := range groups {
		list[i] = joinPieces(g, false)
	}
	return encodeValue(list)
}

// A content is the content of a message, or a piece of it: a text, or a list of parts, of which
// some are thoughts.
type content struct {
	text, thought string
	list          []json.RawMessage // nil = it is a text
}

func (c *content) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, &c.text)
	case '{': // one part without its list
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	if err := json.Unmarshal(data, &c.list); err != nil {
		return err
	}
	for _, raw := range c.list {
		var part struct {
			Text     json.RawMessage `json:"text"`
			Refusal  json.RawMessage `json:"refusal"`
			Thinking json.RawMessage `json:"thinking"` // Mistral's: a list of parts again, or a text
		}
		if json.Unmarshal(raw, &part) != nil {
			c.text += decodeText(raw)
			continue
		}
		c.text += decodeText(part.Text) + decodeText(part.Refusal)
		var thought content
		if !isNull(part.Thinking) && json.Unmarshal(part.Thinking, &thought) == nil {
			c.thought += thought.text
		}
	}
	return nil
}

// joinContent puts pieces of a content together. Parts of one type that follow each other are one.
func joinContent(pieces []content) json.RawMessage {
	var groups [][]json.RawMessage
	last := ""
	for _, p := range pieces {
		list := p.list
		if list == nil {
			list = []json.RawMessage{encodeValue(map[string]string{"type": "text", "text": p.text})}
		}
		for _, part := range list {
			var is struct{ Type string }
			_ = json.Unmarshal(part, &is) // a part of another kind has no type
			if is.Type != "" && is.Type == last {
				groups[len(groups)-1] = append(groups[len(groups)-1], part)
				continue
			}
			last, groups = is.Type, append(groups, []json.RawMessage{part})
		}
	}
	return joinGroups(groups)
}

// with returns some fields of a request, and those of f that the server does not refuse.
func (f fields) with(c *conversation, others map[string]any) map[string]any {
	all := maps.Clone(others)
	for name, value := range f {
		if _, known := all[name]; !known && !c.leftOut[fieldOption(name)] {
			all[name] = value
		}
	}
	return all
}

// refused returns the field that the words of a server refuse, or "".
func (f fields) refused(words string) (field string) {
	for name := range f { // reasoning stands in reasoning_content too
		if strings.Contains(words, name) && len(name) > len(field) {
			field = name
		}
	}
	return field
}

// mergeObjects puts the fields of an object into another one. Objects in both are merged too.
func mergeObjects(body, extra json.RawMessage) json.RawMessage {
	var to, from fields
	if json.Unmarshal(body, &to) != nil || json.Unmarshal(extra, &from) != nil {
		return body
	}
	for name, value := range from {
		if old := to[name]; len(old) > 0 && old[0] == '{' && value[0] == '{' {
			value = mergeObjects(old, value)
		}
		to[name] = value
	}
	return encodeValue(to)
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// decodeText returns a JSON text, or "" for any other value.
func decodeText(raw json.RawMessage) (text string) {
	if len(raw) > 0 && raw[0] == '"' {
		_ = json.Unmarshal(raw, &text) // it is a part of what was decoded already
	}
	return text
}

// encodeValue encodes what was decoded from JSON, or a text, which cannot fail.
func encodeValue(v any) json.RawMessage {
	b, _ := marshal(v)
	return bytes.TrimSuffix(b, []byte("\n"))
}
