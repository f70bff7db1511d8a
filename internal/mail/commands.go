package mail

// commands are what an agent without tools types instead: a program that is started for its turn, and has
// the agent's token in its environment.
var commands = map[string]string{
	"send_handoff":  "swarm send",
	"read_inbox":    "swarm inbox",
	"publish_data":  "swarm publish",
	"put_artifact":  "swarm send --artifact FILE",
	"read_artifact": "swarm artifact cat",
}

// tool is what an agent calls one of our tools by.
func (r *Rules) tool(agent, name string) string {
	if command := commands[name]; r.commands[agent] && command != "" {
		return command
	}
	return name
}
