package main

import (
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/httpd"
)

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Offer an agent its tools over standard input and output",
		Long: `Be an MCP server on standard input and output that offers an agent the tools of its run: for agents that know only such servers. It is
started by the agent itself, inside a run, where SWARM_URL and SWARM_AGENT_TOKEN say whose tools they are. It ends when its input ends or
the run does.

An agent that knows MCP servers over HTTP finds the same tools at $SWARM_URL/mcp.`,
		Example: "  swarm mcp\n  # in an agent's configuration:\n  # {\"mcpServers\": {\"swarm\": {\"command\": \"swarm\", \"args\": [\"mcp\"]}}}",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			door := swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}
			if door.URL == "" || door.Token == "" {
				return swarm.Errorf(swarm.BadInput, "swarm mcp is started by an agent inside a run, and this is none: SWARM_URL and SWARM_AGENT_TOKEN are not set").
					WithHint("name it in the agent's configuration as an MCP server, and start the run with `swarm up`")
			}
			return httpd.Stdio(cmd.Context(), door, version, a.stdin, a.stdout)
		},
	}
}
