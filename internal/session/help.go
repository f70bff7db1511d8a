package session

import (
	"fmt"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/line"
)

// topics are the pages of /help beside the list of commands.
var topics = []struct{ name, text string }{
	{"lines", `@pm Make a plan                     give an agent a task
@pm,ba Read the issue               the same to several, side by side
@pm Plan -> @builder-1 Build it     one after the other; the output before stands in front
@pm Plan a long trip &              in the background
@pm --model large Plan              with another model, by its name or tier
Make a plan                         to the default agent: /use @agent
# this is for people                a comment; \# at the beginning sends it
`},
	{"references", `$pm                the newest good output of @pm, at this place; waits while @pm works
$pm and $ba        several, at most ten different ones
\$pm               the text $pm
A line that refers to an agent without output is refused; with & it waits for the first one.
`},
	{"waiting", `A reference waits for every task of the agent that was entered before.
/status shows who waits for whom, /why @agent the whole path.
A blocked agent asks for something: /approve @agent allows it, /deny @agent does not.
A wait ends after wait_timeout. Lines that would wait for each other in a cycle are refused.
`},
}

func help(topic string) (string, error) {
	var b strings.Builder
	if topic == "" {
		b.WriteString(topics[0].text)
		b.WriteString("\n")
		for _, c := range line.Commands {
			fmt.Fprintf(&b, "%-26s %s\n", c.String(), c.Doc)
		}
		b.WriteString("\nmore: /help " + strings.Join(topicNames(), ", /help ") + "; Ctrl-C cancels the line that runs, Ctrl-D leaves\n")
		return b.String(), nil
	}
	for _, t := range topics {
		if t.name == topic {
			return t.text, nil
		}
	}
	if i := slices.IndexFunc(line.Commands, func(c line.CommandSpec) bool { return c.Name == strings.TrimPrefix(topic, "/") }); i >= 0 {
		return fmt.Sprintf("%s  %s\n", line.Commands[i], line.Commands[i].Doc), nil
	}
	return "", swarm.Errorf(swarm.BadInput, "there is no help on %q", topic).WithHint("%s", swarm.DidYouMean(topic, topicNames()))
}

func topicNames() (names []string) {
	for _, t := range topics {
		names = append(names, t.name)
	}
	return names
}
