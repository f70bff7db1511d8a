package session

import (
	"fmt"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/line"
)

// A topic is a page of /help beside the list of commands. In its rows, ONE and TWO stand for
// agents of the session. Rows with TWO are left out if the session has only one agent.
type topic struct {
	name string
	rows []helpRow
	text string
}

// A helpRow is an example and what it means.
type helpRow struct{ example, means string }

var topics = []topic{
	{"lines", []helpRow{
		{"@ONE Make a plan", "give an agent a task"},
		{"@ONE,TWO Read the issue", "the same to several, side by side"},
		{"@ONE Plan -> @TWO Build it", "one after the other; the output before stands in front"},
		{"@ONE Plan a long trip &", "in the background"},
		{"@ONE --model large Plan", "with another model, by its name or tier"},
		{"Make a plan", "to the default agent: /use @ONE"},
		{"# this is for people", "a comment; \\# at the beginning sends it"},
	}, ""},
	{"references", []helpRow{
		{"$ONE", "the newest good output of @ONE, at this place; waits while @ONE works"},
		{"$ONE and $TWO", "several, at most ten different ones"},
		{"\\$ONE", "the text $ONE"},
	}, `A line that refers to an agent without output is refused; with & it waits for the first one.
`},
	{"waiting", nil, `A reference waits for every task of the agent that was entered before.
/status shows who waits for whom, /why @agent the whole path.
A blocked agent asks for something: /approve @agent allows it, /deny @agent does not.
A wait ends after wait_timeout. Lines that would wait for each other in a cycle are refused.
`},
}

// write writes the page with examples of the session's own agents.
func (t *topic) write(b *strings.Builder, agents []string) {
	one, two := "agent", ""
	if len(agents) > 0 {
		one = agents[0]
	}
	if len(agents) > 1 {
		two = agents[1]
	}
	names := strings.NewReplacer("ONE", one, "TWO", two)
	var rows []helpRow
	width := 0
	for _, r := range t.rows {
		if two == "" && strings.Contains(r.example, "TWO") {
			continue
		}
		r = helpRow{names.Replace(r.example), names.Replace(r.means)}
		width = max(width, len(r.example))
		rows = append(rows, r)
	}
	for _, r := range rows {
		fmt.Fprintf(b, "%-*s  %s\n", width, r.example, r.means)
	}
	b.WriteString(t.text)
}

// help returns a page of the help, for a session with these agents.
func help(topic string, agents []string) (string, error) {
	var b strings.Builder
	if topic == "" {
		topics[0].write(&b, agents)
		b.WriteString("\n")
		for _, c := range line.Commands {
			fmt.Fprintf(&b, "%-26s %s\n", c.String(), c.Doc)
		}
		b.WriteString("\nmore: /help " + strings.Join(topicNames(), ", /help ") + "; Ctrl-C cancels the line that runs, Ctrl-D leaves\n")
		return b.String(), nil
	}
	for i := range topics {
		if topics[i].name == topic {
			topics[i].write(&b, agents)
			return b.String(), nil
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
