package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// What a prompt says when it asks to run something. The patterns are narrow: a missing warning costs a
// question while the agent works, and a false one teaches people to read none.
var (
	asksToRun = sync.OnceValue(func() *regexp.Regexp {
		const what = "(?:unit |integration |test )?(?:tests?|suite|test suite|build|linters?|benchmarks?|commands?|scripts?|programs?|migrations?)"
		return regexp.MustCompile("(?i)" +
			`(?:\b(?:not|never|nor|without|cannot|can't|don't|won't)\b[^.;:\n]{0,20})?` + // what it says not to do, so that this is a part of the match
			`\b(?:re-?)?(?:run|running|execute|executing)\s+` +
			"(?:`[^`\n]+`|(?:it|them|these|those)\\s+with\\s+`[^`\n]+`|(?:the |its |all |your |all the |all of the |these |those )?" + what + `\b)`)
	})
	saysNot = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:not|never|nor|without|cannot|can't|don't|won't)\b`)
	})
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
)

// checkCommands notes the coding agents whose prompts ask to run something, although each of their
// commands has to be approved: their `tools` list none.
func (c *compiler) checkCommands() {
	if c.settings().Approvals.Tools == "auto" {
		return
	}
	for _, name := range c.agentNames {
		a := c.agents[name]
		if a.spec == nil || allowsCommands(a) {
			continue
		}
		asked := c.askedToRun(a)
		if asked == "" {
			continue
		}
		at := a.node
		if a.keys != nil && a.keys.Tools.given() {
			at = a.keys.Tools.node
		}
		c.notice(at, "a prompt of %q says %q, and its tools allow no command: each one waits for an approval", name, asked).
			WithHint("write agents: {%s: {tools: [%s]}}", name, toolsWithCommand(a, asked))
	}
}

// allowsCommands reports whether an agent may run commands without asking, as far as its `tools` say.
func allowsCommands(a *agent) bool {
	command := providerkind.Of(a.spec.Kind).CommandTool
	return command == "" || a.keys != nil && slices.ContainsFunc(a.keys.Tools.items, func(entry text) bool {
		name, _, _ := strings.Cut(entry.value, "(")
		return name == command
	})
}

// askedToRun returns the words with which a prompt of an agent asks to run something, or "".
func (c *compiler) askedToRun(a *agent) string {
	pieces := []*piece{a.role}
	for _, i := range a.tasks {
		pieces = append(pieces, c.taskText(&c.tasks[i]))
	}
	for _, p := range pieces {
		if p == nil {
			continue
		}
		for _, part := range p.template.Parts {
			if part.Kind != prompt.KindText {
				continue
			}
			for _, words := range asksToRun().FindAllString(part.Text, -1) {
				if !saysNot().MatchString(words) {
					return strings.Join(strings.Fields(words), " ")
				}
			}
		}
	}
	return ""
}

// toolsWithCommand returns an agent's tools and one that allows the command that it is asked to run, to
// paste into the file.
func toolsWithCommand(a *agent, asked string) string {
	var entries []string
	if a.keys != nil {
		for _, entry := range a.keys.Tools.items {
			entries = append(entries, fmt.Sprintf("%q", entry.value))
		}
	}
	kind := providerkind.Of(a.spec.Kind)
	entry := kind.CommandTool
	if kind.CommandSample != "" {
		command := kind.CommandSample
		if found := inBackticks.FindStringSubmatch(asked); found != nil {
			words := strings.Fields(found[1])
			command = strings.Join(words[:min(2, len(words))], " ")
		}
		entry += "(" + command + ":*)"
	}
	return strings.Join(append(entries, fmt.Sprintf("%q", entry)), ", ")
}
