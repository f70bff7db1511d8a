package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
)

// Select returns the part of text that a selector names: `first_N_lines`, `last_N_lines`, or
// `.a.b[0].c` for JSON. Empty lines at the end do not count. A JSON string is returned unquoted.
// Any other value is compact JSON, with numbers as they were written.
func Select(text []byte, selector string) ([]byte, error) {
	s, err := parseSelector(selector)
	if err != nil {
		return nil, err
	}
	switch {
	case s.path != nil:
		return selectJSON(text, s.path)
	case s.first > 0:
		return firstLines(text, s.first), nil
	}
	return lastLines(text, s.last), nil
}

// A selection is a parsed selector. One of its fields is set.
type selection struct {
	first, last int
	path        []step // nil = the selector counts lines
}

// A step goes from a JSON value to a value inside it.
type step struct {
	key   string
	index int // -1 = the step is a key
}

const selectors = "write last_50_lines, first_3_lines, or a path into JSON such as .result.files[0]"

func parseSelector(selector string) (selection, error) {
	if strings.HasPrefix(selector, ".") {
		path, err := parsePath(selector)
		return selection{path: path}, err
	}
	side, rest, _ := strings.Cut(selector, "_")
	digits, ok := strings.CutSuffix(rest, "_lines")
	if n, good := number(digits); ok && good && n > 0 {
		switch side {
		case "first":
			return selection{first: n}, nil
		case "last":
			return selection{last: n}, nil
		}
	}
	return selection{}, swarm.Errorf(swarm.BadPrompt, "%q does not say which part of an output to take", selector).WithHint(selectors)
}

// number parses digits, at most nine of them.
func number(digits string) (int, bool) {
	if digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// parsePath parses `.a.b[0]["any key"]`. A single `.` is the whole value.
func parsePath(path string) ([]step, error) {
	bad := func(at string) error {
		return swarm.Errorf(swarm.BadPrompt, "the JSON path %q cannot be read at %q", path, at).
			WithHint(`keys follow a dot, places in a list stand in brackets: .files[0].name; other keys are quoted: ["any key"]`)
	}
	steps := []step{}
	rest := path
	if rest == "." {
		return steps, nil
	}
	for rest != "" {
		switch {
		case rest[0] == '.' && strings.HasPrefix(rest, ".[") && len(steps) == 0:
			rest = rest[1:]
		case rest[0] == '.':
			key := rest[1:]
			if end := strings.IndexAny(key, `.[]"`); end >= 0 {
				key = key[:end]
			}
			if key == "" {
				return nil, bad(rest)
			}
			steps, rest = append(steps, step{key: key, index: -1}), rest[1+len(key):]
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return nil, bad(rest)
			}
			key, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, bad(rest)
			}
			steps, rest = append(steps, step{key: key, index: -1}), rest[2+len(quoted):]
		default:
			digits, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]")
			n, good := number(digits)
			if rest[0] != '[' || !ok || !good {
				return nil, bad(rest)
			}
			steps, rest = append(steps, step{index: n}), after
		}
	}
	return steps, nil
}

func firstLines(text []byte, n int) []byte {
	text = bytes.TrimRight(text, newlines)
	end := 0
	for range n {
		next := bytes.IndexByte(text[end:], '\n')
		if next < 0 {
			return text
		}
		end += next + 1
	}
	return text[:end-1]
}

func lastLines(text []byte, n int) []byte {
	text = bytes.TrimRight(text, newlines)
	start := len(text)
	for range n {
		if start = bytes.LastIndexByte(text[:start], '\n'); start < 0 {
			return text
		}
	}
	return text[start+1:]
}

func selectJSON(text []byte, path []step) ([]byte, error) {
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, swarm.Errorf(swarm.BadPrompt, "it is not JSON: %w; it begins %s", err, head(text)).
			WithHint("have the task print JSON and nothing else, or take lines of it: last_50_lines")
	}
	for i, s := range path {
		next, err := into(value, s, pathOf(path[:i]))
		if err != nil {
			return nil, err
		}
		value = next
	}
	if value[0] == '"' {
		var s string
		err := json.Unmarshal(value, &s)
		return []byte(s), err
	}
	var b bytes.Buffer
	err := json.Compact(&b, value)
	return b.Bytes(), err
}

// into returns the value one step inside value. at is the path of value, for errors.
func into(value json.RawMessage, s step, at string) (json.RawMessage, error) {
	if s.index >= 0 {
		var list []json.RawMessage
		if value[0] != '[' || json.Unmarshal(value, &list) != nil {
			return nil, swarm.Errorf(swarm.BadPrompt, "%s is no list but %s", at, describe(value))
		}
		if s.index >= len(list) {
			return nil, swarm.Errorf(swarm.BadPrompt, "%s has no place %d: it is a list of %d", at, s.index, len(list)).WithHint("places are counted from 0")
		}
		return list[s.index], nil
	}
	var object map[string]json.RawMessage
	if value[0] != '{' || json.Unmarshal(value, &object) != nil {
		return nil, swarm.Errorf(swarm.BadPrompt, "%s has no key %q: it is %s", at, s.key, describe(value))
	}
	inner, ok := object[s.key]
	if !ok {
		keys := make([]string, 0, len(object))
		for k := range object {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		return nil, swarm.Errorf(swarm.BadPrompt, "%s has no key %q: it has %s", at, s.key, list(keys)).WithHint("%s", swarm.DidYouMean(s.key, keys))
	}
	return inner, nil
}

// pathOf writes steps as a selector.
func pathOf(steps []step) string {
	if len(steps) == 0 {
		return "the output"
	}
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.ContainsAny(s.key, `.[]" `):
			fmt.Fprintf(&b, "[%q]", s.key)
		default:
			b.WriteString("." + s.key)
		}
	}
	return b.String()
}

// describe describes a JSON value in a few words.
func describe(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return head(value)
}

// list writes names so that a message stays one line.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return excerpt.List(names, 20)
}

// head quotes the beginning of text.
func head(text []byte) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(strings.ToValidUTF8(string(text[:most]), "")) + "…"
	}
	return strconv.Quote(string(text))
}
