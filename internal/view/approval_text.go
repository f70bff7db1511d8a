package view

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"swarm"
)

// telltale are the members of a tool's input that say most of what it does: they need no name in front.
var telltale = []string{"command", "cmd", "file_path", "path", "url"}

// How much is shown of what an agent asks for.
const (
	maxDescription = 320
	mostMain       = 200 // of what says most
	mostOther      = 60  // of anything else
)

// DescribeApproval says what an agent asks for in one line: what it wants to do, and with what input. Nobody can allow what he is not shown, so
// characters that hide something are written out, and of a long text the end is shown, too.
func DescribeApproval(a swarm.Approval) string {
	what := visible(a.What)
	if what == "" {
		what = "use " + visible(a.Tool)
	}
	if a.Retry != nil && a.Retry.Failure != "" {
		return shorten(what+" after: "+visible(a.Retry.Failure), maxDescription)
	}
	if a.Growth != nil && a.Growth.Spawn != nil {
		return shorten(what+": "+visible(a.Growth.Spawn.Instructions), maxDescription)
	}
	if with := input(a.Input); with != "" {
		what += " " + with
	}
	for _, path := range a.Paths {
		if path = shorten(visible(path), mostMain); !strings.Contains(" "+what+" ", " "+path+" ") {
			what += " " + path
		}
	}
	return shorten(what, maxDescription)
}

// input is the input of a tool in one line.
func input(body []byte) string {
	if len(body) == 0 || string(body) == "null" {
		return ""
	}
	if body[0] != '{' {
		return shorten(visible(value(body)), mostMain)
	}
	var first, rest []string
	m := members{rest: body}
	for m.next() {
		key := value([]byte(`"` + string(m.key) + `"`))
		text := visible(value(m.value))
		if len(first) == 0 && slices.Contains(telltale, key) {
			first = append(first, shorten(text, mostMain))
			continue
		}
		rest = append(rest, visible(key)+"="+shorten(text, mostOther))
	}
	if m.bad {
		return shorten(visible(string(body)), mostMain)
	}
	return strings.Join(append(first, rest...), " ")
}

// value is a string without its quotes, and anything else as it is written.
func value(body []byte) string {
	var text string
	if json.Unmarshal(body, &text) == nil {
		return text
	}
	return string(body)
}

// visible writes out what is not seen when it is printed: ends of lines, control codes, marks of direction.
func visible(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		if r == utf8.RuneError || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// shorten leaves out the middle of a text that is too long: what matters may stand at either end.
func shorten(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	tail := most / 3
	return string(r[:most-tail-1]) + "…" + string(r[len(r)-tail:])
}
