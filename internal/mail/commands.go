package mail

import "strings"

// commands maps tools to the commands that agents without tools type instead. Such an agent is a
// program with the agent's token in its environment.
var commands = strings.NewReplacer(
	"send_handoff", "swarm send",
	"read_inbox", "swarm inbox",
	"publish_data", "swarm publish",
	"put_artifact", "swarm send --artifact FILE",
	"read_artifact", "swarm artifact cat",
	"wait_for", "swarm wait-for",
	"spawn_node", "swarm spawn",
	"request_help", "swarm ask",
	"report_done", "swarm done",
)

// InCommands replaces the tools that a text of ours names by commands.
func InCommands(text string) string { return commands.Replace(text) }

// Say adapts a text of ours to an agent: with commands, if it acts by commands.
func (r *Rules) Say(agent, text string) string {
	if r.commands[agent] {
		return InCommands(text)
	}
	return text
}
