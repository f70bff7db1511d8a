package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/engine/local"
	"swarm/internal/httpd"
	"swarm/internal/line"
	"swarm/internal/mcpdrive"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/session"
	"swarm/internal/view"
)

// driveOptions say what an MCP client may do that drives runs.
type driveOptions struct {
	key        string
	budget     useBudget
	mayApprove bool
}

func (o *driveOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "mcp", "with --drive: the `name` under which runs and their budget are kept")
	f.Var(&o.budget, "budget", "with --drive: the most that all runs of the key use together, as in usd=5,calls=200 (also tokens)")
	f.BoolVar(&o.mayApprove, "may-approve", false, "with --drive: the client may answer what agents ask a person for")
}

// useBudget is a flag for a budget without wall time.
type useBudget struct{ swarm.Budget }

func (b *useBudget) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || n <= 0 || name != "usd" && n != float64(int64(n)):
			return errors.New("write it as usd=5, tokens=500000 or calls=200, or several with commas")
		case name == "usd":
			b.USD = n
		case name == "tokens":
			b.Tokens = int64(n)
		case name == "calls":
			b.Calls = int64(n)
		default:
			return errors.New("a budget has usd, tokens and calls, and no " + swarm.Quote(name))
		}
	}
	return nil
}

// String writes the budget as the flag takes it.
func (b *useBudget) String() string {
	var parts []string
	if b.USD > 0 {
		parts = append(parts, "usd="+strconv.FormatFloat(b.USD, 'g', -1, 64))
	}
	if b.Tokens > 0 {
		parts = append(parts, "tokens="+strconv.FormatInt(b.Tokens, 10))
	}
	if b.Calls > 0 {
		parts = append(parts, "calls="+strconv.FormatInt(b.Calls, 10))
	}
	return strings.Join(parts, ",")
}

func (b *useBudget) Type() string { return "budget" }

func (a *app) mcpCommand() *cobra.Command {
	var drive bool
	var o driveOptions
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve tools over MCP on standard input and output: an agent's, or those that drive runs",
		Long: `Serve tools as an MCP server on standard input and output.

Inside a run it serves the tools of an agent, for agents that support only such servers. The agent
itself starts this command. SWARM_URL and SWARM_AGENT_TOKEN identify the agent. The server ends when
its input or the run ends. Agents that support MCP over HTTP find the same tools at $SWARM_URL/mcp.

With --drive it serves Claude Code, Codex or any other MCP client outside of runs. The client starts
what the compose file of this folder has, waits for its runs, reads them, writes to their agents and
cancels them. This process drives these runs. When the client ends, they are interrupted, and
resume_run or swarm resume goes on with them.

The client acts with a key. It steers only runs that were begun with its key, and reads the others.
The budget of a key holds over all its runs, also after a restart. What a person has to confirm or to
approve stays with the person, unless --may-approve is given. Inside an agent's turn --drive is
refused.`,
		Example: "  swarm mcp\n  swarm mcp --drive --key claude --budget usd=5\n" +
			"  # in an agent's configuration:\n  # {\"mcpServers\": {\"swarm\": {\"command\": \"swarm\", \"args\": [\"mcp\"]}}}",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if drive {
				return a.driveByMCP(o)
			}
			for _, flag := range []string{"key", "budget", "may-approve"} {
				if cmd.Flags().Changed(flag) {
					return swarm.Errorf(swarm.BadInput, "--%s is for --drive", flag).WithHint("swarm mcp --drive --%s …", flag)
				}
			}
			door := swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}
			if door.URL == "" || door.Token == "" {
				return swarm.Errorf(swarm.BadInput, "swarm mcp works only inside a run, started by an agent: SWARM_URL and SWARM_AGENT_TOKEN are not set").
					WithHint("name it in the agent's configuration as an MCP server, and start the run with `swarm up`; to start runs from an MCP client: swarm mcp --drive")
			}
			process.AllowInspection()
			return httpd.Stdio(cmd.Context(), door, version, a.stdin, a.stdout)
		},
	}
	cmd.Flags().BoolVar(&drive, "drive", false, "serve the tools by which an MCP client starts runs and steers them")
	o.flags(cmd)
	cmd.AddCommand(a.mcpInstallCommand(), a.mcpUninstallCommand(), a.mcpLoginCommand(), a.mcpLogoutCommand())
	return cmd
}

// driveByMCP serves the tools that drive runs, until the client hangs up. Then its runs are
// interrupted.
func (a *app) driveByMCP(o driveOptions) error {
	c, err := a.control()
	if err != nil {
		return err
	}
	if c.Caller.Agent {
		return swarm.Errorf(swarm.Denied, "swarm mcp --drive is refused inside an agent's turn: an agent does not start runs in a person's name").
			WithHint("an agent acts on its own run: swarm mcp, or swarm send, publish, spawn; to begin a run of its own: swarm up")
	}
	key, err := control.NewClientKey(o.key)
	if err != nil {
		return err
	}
	key.Budget, key.MayApprove = o.budget.Budget, o.mayApprove
	s := stopSignals()
	defer s.end()
	ctx, hangUp := context.WithCancelCause(s.ctx)
	defer hangUp(nil)
	d := &control.Drivers{Control: c, Context: ctx, Version: version, Ended: func(_ view.Picture, err error) {
		if err != nil {
			a.complain(err)
		}
	}}
	d.Options.Engine, d.Options.Serve, d.Options.Telemetry = local.Run, httpd.Serve, a.runTelemetry()
	c.GoOn, c.Caller = d.Resume, control.Caller{How: swarm.HowMCP, Key: key}
	s.killing(d.Kill)
	server := &mcpdrive.Server{Control: c, Start: d.Start, StartLine: a.lineStarter(d)}
	err = httpd.ServePipes(ctx, server, mcpdrive.About, version, a.stdin, a.stdout)
	hangUp(swarm.Errorf(swarm.Stopped, "the MCP client has gone"))
	d.Wait()
	if s.ctx.Err() != nil { // a signal is the usual way to end such a server
		return nil
	}
	return err
}

// lineStarter returns the function that starts a conversation of one line.
func (a *app) lineStarter(d *control.Drivers) func(context.Context, control.Request, string) (string, error) {
	return func(ctx context.Context, r control.Request, text string) (string, error) {
		c := d.Control
		o, p, err := c.Compose(r)
		if err != nil {
			return "", err
		}
		defer p.Close()
		b, err := compose.CompileTeam(o)
		if err != nil {
			return "", err
		}
		team := sessionTeam(b)
		team.Actor = c.Caller.Actor()
		parsed, err := line.Parse(text, team.Lang())
		switch {
		case err != nil:
			return "", err
		case parsed.Command != nil, parsed.Comment:
			return "", swarm.Errorf(swarm.BadInput, "%s is no line for an agent", swarm.Quote(text)).WithHint("write @agent and its instructions")
		}
		if err := (&control.Begin{Bundle: b, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider}).Ready(c.Home); err != nil {
			return "", err
		}
		return d.StartBy(ctx, r, func(r control.Request) (swarm.RunID, func() (view.Picture, error), error) {
			team.Budget = team.Budget.Within(r.Budget)
			start := swarm.RunStart{Dir: o.Dir, File: o.File, NoFile: o.Source == nil, Set: o.Set, Provider: o.Provider, Sources: team.Sources,
				Args: []string{"run", text}, Version: version, Key: c.Caller.Actor().Client, Time: time.Now()}
			s, err := session.Start(ctx, c.Home, start, team)
			if err != nil {
				return "", nil, err
			}
			s.Drive(d.Context, run.Options{Engine: d.Options.Engine, Server: d.Options.Server, Serve: d.Options.Serve, Telemetry: d.Options.Telemetry})
			if err = r.Held(ctx); err == nil {
				_, err = s.Enter(ctx, text)
			}
			if err != nil {
				_, closed := s.Close(ctx)
				return "", nil, errors.Join(err, closed)
			}
			return s.ID(), func() (view.Picture, error) { return a.endSession(d.Context, s, true) }, nil
		})
	}
}
