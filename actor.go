package swarm

// An Actor is the one that answered an approval or gave a command, and the way that it came. Logs
// of earlier versions have no way: By is a text then, such as "swarm approve". It is a text too when
// a rule of the compose file decided.
type Actor struct {
	By   string `json:"by,omitempty"`   // [ByPerson], [ByAgent], [ByClient] or a text
	How  string `json:"how,omitempty"`  // one of the ways below
	User string `json:"user,omitempty"` // of a person: their user name on this machine; "" = not known
	// Client is the key of an MCP client that drives runs.
	Client string `json:"client,omitempty"`
	// Agent is the turn of an agent that acted on a run which it began itself.
	Agent *TurnRef `json:"agent,omitempty"`
}

// The kinds of actors.
const (
	ByPerson = "person"
	ByAgent  = "agent"
	ByClient = "client" // a program that drives runs over MCP
)

// The ways to act on a run.
const (
	HowTerminal = "terminal" // a command
	HowBoard    = "board"    // a key on the board
	HowREPL     = "repl"
	HowHTTP     = "http" // a request with the server's token
	HowA2A      = "a2a"
	HowMCP      = "mcp" // a tool of `swarm mcp --drive`
)

// String describes the actor: "ada (terminal)".
func (a Actor) String() string {
	who := a.By
	switch {
	case a.By == ByAgent && a.Agent != nil && a.Agent.Turn != "":
		who = "the agent of turn " + string(a.Agent.Turn) + " in run " + string(a.Agent.Run)
	case a.By == ByAgent && a.Agent != nil:
		who = "an agent of run " + string(a.Agent.Run)
	case a.By == ByAgent:
		who = "an agent"
	case a.By == ByClient:
		who = "the MCP client " + a.Client
	case a.By == ByPerson && a.User != "":
		who = a.User
	case a.By == ByPerson:
		who = "a person"
	}
	if a.How != "" {
		who += " (" + a.How + ")"
	}
	return who
}
