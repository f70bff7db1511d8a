package view

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"swarm"
)

// mainKeys are the members of a tool's input that say most about the call. They are shown without
// their name.
var mainKeys = []string{"command", "cmd", "file_path", "path", "url"}

// The maximum lengths of the parts of a description, in characters.
const (
	maxDescription = 1200
	mostMain       = 1000 // of a main member
	mostOther      = 60   // of any other member
)

// verbs say in plain words what well-known tools of coding agents do to the main part of their input.
var verbs = map[string]string{
	"Bash": "run", "Write": "write", "Edit": "edit", "MultiEdit": "edit", "NotebookEdit": "edit", "Read": "read",
	"WebFetch": "fetch", "WebSearch": "search the web for",
}

// DescribeApproval returns in one line what an agent asks for: the action and its input. People can
// only approve what they see, so invisible characters are written out, and the end of a long text
// is shown, too.
func DescribeApproval(a swarm.Approval) string {
	what := visible(a.What)
	if plain := "use " + visible(a.Tool); what == "" || what == plain {
		what = plain
		if verb := verbs[a.Tool]; verb != "" && len(a.Input) > 0 && a.Input[0] == '{' {
			what = verb
		}
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

// AskApproval returns the question whether an agent may do something.
func AskApproval(who string, a swarm.Approval) string {
	return "may " + who + " " + strings.TrimRight(DescribeApproval(a), ".: ") + "?"
}

// input returns the input of a tool in one line.
func input(body []byte) string {
	if len(body) == 0 || string(body) == "null" {
		return ""
	}
	if body[0] != '{' {
		return shorten(visible(value(body)), mostMain)
	}
	var first, rest []string
	said := ""
	m := members{rest: body}
	for m.next() {
		key := value([]byte(`"` + string(m.key) + `"`))
		text := visible(value(m.value))
		if len(first) == 0 && slices.Contains(mainKeys, key) {
			first = append(first, shorten(text, mostMain))
			continue
		}
		if key == "description" && text != "" { // the agent's own words about the call
			said = " (" + shorten(text, mostOther) + ")"
			continue
		}
		rest = append(rest, visible(key)+"="+shorten(text, mostOther))
	}
	if m.bad {
		return shorten(visible(string(body)), mostMain)
	}
	return strings.Join(append(first, rest...), " ") + said
}

// value returns a string without its quotes, and any other value as it is written.
func value(body []byte) string {
	var text string
	if json.Unmarshal(body, &text) == nil {
		return text
	}
	return string(body)
}

// visible writes out invisible characters: line ends, control codes, direction marks.
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

// shorten leaves out the middle of a long text, because the important part may be at either end.
func shorten(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	tail := most / 3
	return string(r[:most-tail-1]) + "…" + string(r[len(r)-tail:])
}
