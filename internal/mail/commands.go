package mail

import "strings"

// commands are what an agent without tools types instead of calling one: a program that is started for its
// turn, and has the agent's token in its environment.
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

// InCommands is a text of ours in which commands stand for the tools that it names.
func InCommands(text string) string { return commands.Replace(text) }

// Say is a text of ours for an agent: one that acts by commands is told of commands.
func (r *Rules) Say(agent, text string) string {
	if r.commands[agent] {
		return InCommands(text)
	}
	return text
}
