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

// These patterns match prompts that ask to run something. They are narrow on purpose. A missing
// notice costs one approval while the agent works. False notices teach people to ignore all of
// them.
var (
	asksToRun = sync.OnceValue(func() *regexp.Regexp {
		const what = "(?:unit |integration |test )?(?:tests?|suite|test suite|build|linters?|benchmarks?|commands?|scripts?|programs?|migrations?)"
		return regexp.MustCompile("(?i)" +
			`(?:\b(?:not|never|nor|without|cannot|can't|don't|won't)\b[^.;:\n]{0,20})?` + // a negation, which saysNot finds in the match
			`\b(?:re-?)?(?:run|running|execute|executing)\s+` +
			"(?:`[^`\n]+`|(?:it|them|these|those)\\s+with\\s+`[^`\n]+`|(?:the |its |all |your |all the |all of the |these |those )?" + what + `\b)`)
	})
	saysNot = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:not|never|nor|without|cannot|can't|don't|won't)\b`)
	})
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
)

// checkCommands adds a notice for each coding agent whose prompt asks to run something and whose
// `tools` list no command. Each command of such an agent needs an approval.
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
		c.notice(at, "a prompt of %q asks to run commands (%q), but its tools allow none: each command waits for an approval", name, asked).
			WithHint("write agents: {%s: {tools: [%s]}}", name, toolsWithCommand(a, asked))
	}
}

// allowsCommands reports whether the `tools` of an agent let it run commands without asking.
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

// toolsWithCommand returns an agent's tools, and one more that allows the command in the prompt,
// ready to paste into the file.
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
