package swarm

import (
	"fmt"
	"slices"
	"strings"
)

// MaxName is the maximum length of a name, in bytes.
const MaxName = 63

// Reserved are the names with a meaning of their own. No agent, task or topic may have them.
var Reserved = []string{"user", "notify", "supervisor", "swarm-supervisor", "workspace", "orchestrator", "all", "last"}

// CheckAgentName returns what is wrong with an agent's name, or nil.
func CheckAgentName(name string) error {
	return checkName("agent", name, false, "a-z, 0-9 and -, beginning with a letter, not ending in -, at most 63 characters")
}

// CheckTaskName returns what is wrong with a task's name, or nil.
func CheckTaskName(name string) error { return checkName("task", name, true, taskRule) }

// CheckTopicName returns what is wrong with a topic's name, or nil.
func CheckTopicName(name string) error { return checkName("topic", name, true, taskRule) }

const taskRule = "a-z, 0-9, - and _, beginning with a letter, not ending in -, at most 63 characters"

func checkName(what, name string, underscore bool, rule string) error {
	switch {
	case slices.Contains(Reserved, name):
		return &Error{Kind: BadInput, Msg: fmt.Sprintf("the name %q is reserved", name), Hint: "choose another name; reserved are " + strings.Join(Reserved, ", ")}
	case !isName(name, underscore):
		return &Error{Kind: BadInput, Msg: fmt.Sprintf("%s is not a name for %s", Quote(name), article(what)), Hint: "names are made of " + rule}
	}
	return nil
}

// isName reads byte by byte. A prompt may hold a thousand names, and a regular expression would
// have to be compiled at every start of the program.
func isName(name string, underscore bool) bool {
	if name == "" || len(name) > MaxName || name[0] < 'a' || name[0] > 'z' || name[len(name)-1] == '-' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_' && underscore:
		default:
			return false
		}
	}
	return true
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// Quote quotes a user's text and cuts it so that a message stays on one line.
func Quote(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:60], ""))
	}
	return fmt.Sprintf("%q", s)
}

// AgentOf returns the name of the agent of a task that names none.
func AgentOf(task string) string { return strings.ReplaceAll(task, "_", "-") }

// Nearest returns the choice that the user probably meant by name, or "".
func Nearest(name string, choices []string) string {
	// Most characters must match: of a longer name, about one in four may differ.
	best, at := "", min(1+len(name)/4, (len(name)-1)/2)
	if len(name) > 1 {
		at = max(1, at)
	}
	for _, c := range choices {
		if d := distance(strings.ToLower(name), strings.ToLower(c), at); d <= at && (best == "" || d < at) {
			best, at = c, d
		}
	}
	if best == "" {
		best = continued(name, choices)
	}
	return best
}

// continued returns the only choice that begins with name as its first word: claude finds
// claude-code.
func continued(name string, choices []string) (found string) {
	for _, c := range choices {
		rest, ok := strings.CutPrefix(c, strings.ToLower(name))
		if ok && name != "" && rest != "" && strings.ContainsAny(rest[:1], "-_") {
			if found != "" {
				return ""
			}
			found = c
		}
	}
	return found
}

// DidYouMean returns a hint that names the nearest choice, or lists all choices if none is near.
func DidYouMean(name string, choices []string) string {
	if near := Nearest(name, choices); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(choices) == 0 {
		return ""
	}
	if len(choices) > 20 {
		return fmt.Sprintf("choose one of %s and %d more", strings.Join(choices[:20], ", "), len(choices)-20)
	}
	return "choose one of " + strings.Join(choices, ", ")
}

// UnknownAgent returns the error for an agent's name that does not exist.
func UnknownAgent(name string, valid []string) *Error {
	e := Errorf(BadInput, "Unknown agent: '%s'. Valid agents: %s", name, strings.Join(valid, ", "))
	if near := Nearest(name, valid); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// distance returns the edit distance of a and b, where a swap of neighbours counts once. Beyond
// most it returns any larger number.
func distance(a, b string, most int) int {
	if len(a) > 100 || len(b) > 100 || len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
