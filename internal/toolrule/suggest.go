package toolrule

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Suggest returns the entry of `tools` that allows a call of a coding agent's tool: the tool, and of a
// shell the program with its subcommand.
func Suggest(tool string, input json.RawMessage) string {
	var in struct{ Command string }
	if tool != "Bash" || json.Unmarshal(input, &in) != nil {
		return tool
	}
	words := strings.Fields(in.Command)
	if len(words) == 0 || !plainWord.MatchString(words[0]) {
		return tool
	}
	program := words[0]
	if len(words) > 1 && subcommand.MatchString(words[1]) {
		program += " " + words[1]
	}
	return "Bash(" + program + ":*)"
}

var (
	plainWord  = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)
	subcommand = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// Lines returns what to paste into a compose file so that an agent has more tools: all that it has, and
// the new ones.
func Lines(agent string, tools []string, more ...string) string {
	var all []string
	for _, entry := range slices.Concat(tools, more) {
		if !plainWord.MatchString(entry) {
			entry = strconv.Quote(entry)
		}
		if !slices.Contains(all, entry) {
			all = append(all, entry)
		}
	}
	return "agents: {" + agent + ": {tools: [" + strings.Join(all, ", ") + "]}}"
}
