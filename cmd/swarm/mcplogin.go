package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/tool"
)

func (a *app) mcpLoginCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Sign in at an MCP server over HTTP",
		Long: `Sign in at an MCP server of the compose file (tools.mcp) that asks for it, by OAuth. The command opens
the page at which you confirm, or prints its address, and waits for your answer. The tokens are kept in
the state folder, readable by you alone, and are refreshed when they expire. All runs use them.`,
		Example:           "  swarm mcp login tickets",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeToolServer,
		RunE: func(_ *cobra.Command, args []string) error {
			h, spec, err := a.toolServer(&src, args[0])
			if err != nil {
				return err
			}
			ctx, end := leaveSignals()
			defer end()
			ctx, stop := context.WithTimeout(ctx, tool.LoginTime)
			defer stop()
			if err := h.Make(); err != nil {
				return err
			}
			dir, err := a.dir()
			if err != nil {
				return err
			}
			needed, err := tool.Login(ctx, spec, tool.ServerOptions{Dir: dir, Environ: os.Environ(), Logins: h}, a.showLogin)
			if err != nil {
				return err
			}
			return a.loginDone(spec.Name, needed, true)
		},
	}
	loginFlags(cmd, &src)
	a.restrict(cmd, people)
	return cmd
}

func (a *app) mcpLogoutCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:               "logout SERVER",
		Short:             "Forget the login at an MCP server",
		Long:              "Delete the tokens of an MCP server from the state folder. The server itself is not told.",
		Example:           "  swarm mcp logout tickets",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeToolServer,
		RunE: func(_ *cobra.Command, args []string) error {
			h, spec, err := a.toolServer(&src, args[0])
			if err != nil {
				return err
			}
			had, err := h.Login(spec.URL)
			if err == nil {
				err = h.SaveLogin(spec.URL, nil)
			}
			if err != nil {
				return err
			}
			return a.loginDone(spec.Name, had != nil, false)
		},
	}
	loginFlags(cmd, &src)
	a.restrict(cmd, people)
	return cmd
}

func loginFlags(cmd *cobra.Command, src *source) {
	cmd.Flags().VarP((*something)(&src.file), "file", "f", "the compose `file` (default swarm/swarm.yaml)")
}

// toolServers returns the tool servers of the compose file.
func (a *app) toolServers(src *source) ([]swarm.ToolServer, error) {
	o, p, err := src.read(a, nil)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	s, err := compose.ReadSettings(o)
	if err != nil {
		return nil, err
	}
	return s.MCP, nil
}

// toolServer finds a tool server of the compose file.
func (a *app) toolServer(src *source, name string) (*statedir.Home, swarm.ToolServer, error) {
	h, err := a.home()
	if err != nil {
		return nil, swarm.ToolServer{}, err
	}
	all, err := a.toolServers(src)
	if err != nil {
		return nil, swarm.ToolServer{}, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name {
			return h, s, nil
		}
		names = append(names, s.Name)
	}
	e := swarm.Errorf(swarm.BadInput, "the compose file has no tool server %s", swarm.Quote(name))
	if len(names) == 0 {
		return nil, swarm.ToolServer{}, e.WithHint("write it under tools.mcp: tools: {mcp: {%s: {url: https://…}}}", name)
	}
	return nil, swarm.ToolServer{}, e.WithHint("%s", swarm.DidYouMean(name, names))
}

func (a *app) completeToolServer(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	all, err := a.toolServers(&source{})
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, s := range all {
		if s.URL != "" {
			names = append(names, s.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// showLogin shows a person the page at which to confirm a login. It goes to standard error, because
// standard output holds the result.
func (a *app) showLogin(url string) {
	fmt.Fprintf(a.stderr, "open this page to sign in:\n%s\n", term.Escape(url))
	if !a.typed() {
		return
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	_ = exec.Command(opener, url).Start() // the address was printed too
}

// loginDone says what came of a login or a logout.
func (a *app) loginDone(name string, changed, in bool) error {
	if a.json {
		return a.print(map[string]any{"server": name, "signed_in": in && changed, "changed": changed})
	}
	text := "signed in at %s\n"
	switch {
	case in && !changed:
		text = "%s needs no login\n"
	case !in && changed:
		text = "the login at %s is forgotten\n"
	case !in:
		text = "there is no login at %s\n"
	}
	_, err := fmt.Fprintf(a.stdout, text, name)
	return err
}
