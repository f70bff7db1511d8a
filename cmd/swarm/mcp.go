package main

import (
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/httpd"
	"swarm/internal/process"
)

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve an agent's tools over MCP on standard input and output",
		Long: `Serve the tools of an agent as an MCP server on standard input and output, for agents that support
only such servers. The agent itself starts this command, inside a run, where SWARM_URL and
SWARM_AGENT_TOKEN identify the agent. The server ends when its input or the run ends.

Agents that support MCP over HTTP find the same tools at $SWARM_URL/mcp.`,
		Example: "  swarm mcp\n  # in an agent's configuration:\n  # {\"mcpServers\": {\"swarm\": {\"command\": \"swarm\", \"args\": [\"mcp\"]}}}",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			door := swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}
			if door.URL == "" || door.Token == "" {
				return swarm.Errorf(swarm.BadInput, "swarm mcp works only inside a run, started by an agent: SWARM_URL and SWARM_AGENT_TOKEN are not set").
					WithHint("name it in the agent's configuration as an MCP server, and start the run with `swarm up`")
			}
			process.AllowInspection()
			return httpd.Stdio(cmd.Context(), door, version, a.stdin, a.stdout)
		},
	}
}
