package coding

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"swarm/internal/provider"
)

// codex is OpenAI's Codex. Each turn runs a new process, which continues the session by its name. A
// process that stayed alive after the turn could work between turns: Codex keeps running the
// commands and subagents that its model did not wait for.
//
// The process is `codex app-server`, which asks for permissions. `codex exec` cannot ask. It does
// the turns that app-server cannot do: those of older versions, of programs with arguments that
// app-server refuses, and those with CODEX_API_KEY, which app-server does not read.
type codex struct {
	confined bool        // by our own sandbox
	execOnly atomic.Bool // the program cannot be used as app-server
	onlyRead atomic.Bool // the program knows no profile for PLANNING
}

func (*codex) facts() facts {
	return facts{
		defaultEnv: map[string]string{
			"RUST_BACKTRACE": "0", // the last lines on stderr are to say why it failed
			"NO_COLOR":       "1", // its log has colours even in a pipe
		},
		sessionGone: "no rollout found for thread id",
	}
}

// codexKey is the variable with a key that `codex exec` takes in place of the user's login.
const codexKey = "CODEX_API_KEY"

// launch puts settings before the command, because 0.120 ignores the user's settings there
// otherwise. It puts the options of exec before resume, because resume accepts none in 0.58.
func (c *codex) launch(r provider.Request, session string, env lookup) launch {
	if c.execOnly.Load() || env(codexKey) != "" {
		args := append(c.settings(r, neverAsks), "exec", "--json", "--skip-git-repo-check")
		if r.Model != "" {
			args = append(args, "--model="+r.Model)
		}
		if session != "" {
			args = append(args, "resume", "--", session)
		}
		return launch{args: append(args, "-")}
	}
	return launch{args: append(c.settings(r, approvalPolicy(r)), "app-server"), talks: true}
}

// downgrade switches this provider to `codex exec` if the program is too old for app-server, or
// refuses app-server with the user's arguments. In PLANNING it switches to the sandbox that only
// reads if the program refuses our profile, as 0.120 does. Versions before app-server ignore
// profiles, so they only read, too.
func (c *codex) downgrade(l launch, t *turn) string {
	if t.request.Docs() != "" && strings.Contains(t.lastWords(), "permissions profile") && !c.onlyRead.Swap(true) {
		return "be held to docs/; it starts again, and only reads"
	}
	if !l.talks || !t.unfit && (t.heard || !codexRefuses().MatchString(t.lastWords())) {
		return ""
	}
	c.execOnly.Store(true)
	if said := t.lastWords(); t.unfit || !strings.Contains(said, "argument") && !strings.Contains(said, "only applies to") {
		c.onlyRead.Store(true)
	}
	return cannotAsk
}

// codexRefuses matches the errors of a program that does not know app-server, or refuses it
// together with other arguments. A program that does not know the command reads "app-server" as a
// prompt, and fails because it has no terminal.
var codexRefuses = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`only applies to|unexpected argument|unrecognized subcommand|not a terminal|No such device`)
})

// Values of Codex's approval_policy.
const (
	neverAsks     = "never"
	asksOnRequest = "on-request" // its model asks for what the sandbox forbids
)

// approvalPolicy returns whether Codex may ask. In PLANNING it never asks, because no person can
// lift what the phase forbids. Codex tells its model the policy, so a model that may not ask works
// without asking.
func approvalPolicy(r provider.Request) string {
	if r.Ask == nil || r.AskDenied || r.Docs() != "" {
		return neverAsks
	}
	return asksOnRequest
}

// settings returns the arguments that override the user's settings. Either Codex's own sandbox or
// ours confines the program.
func (c *codex) settings(r provider.Request, policy string) (args []string) {
	set := func(key, value string) { args = append(args, "-c", key+"="+value) }
	set("approval_policy", strconv.Quote(policy))
	docs := r.Docs()
	switch {
	case c.confined:
		// Its sandbox needs namespaces, or sockets, that ours forbids. Ours holds it to docs/ too.
		set("sandbox_mode", `"danger-full-access"`)
	case docs == "":
		set("sandbox_mode", `"workspace-write"`)
	case c.onlyRead.Load() || strings.ContainsAny(docs, "*?[]{}"):
		// A profile would read such a path as a pattern, and allows no writing by pattern.
		set("sandbox_mode", `"read-only"`)
	default:
		// The sandbox workspace-write cannot be used: it always lets the working folder be written.
		set("default_permissions", `"planning"`)
		set("permissions.planning.filesystem", `{":root"="read",`+strconv.Quote(docs)+`="write"}`)
	}
	// A shell snapshot would put the environment, with our token and the keys, into a file that
	// everybody can read.
	set("features.shell_snapshot", "false")
	if r.Root != "" && r.Root != r.Dir && docs == "" {
		set("sandbox_workspace_write.writable_roots", "["+strconv.Quote(r.Root)+"]")
	}
	if r.Door.URL != "" {
		set("mcp_servers.swarm.url", strconv.Quote(r.Door.URL+"/mcp"))
		set("mcp_servers.swarm.bearer_token_env_var", `"SWARM_AGENT_TOKEN"`)
		set("mcp_servers.swarm.default_tools_approval_mode", `"approve"`)
		set("mcp_servers.swarm.tool_timeout_sec", "3600") // a tool that waits for other agents may wait long
		// Codex begins a turn without the tools of a server that is slow to start, unless it needs that server.
		set("mcp_servers.swarm.required", "true")
		set("mcp_servers.swarm.startup_timeout_sec", "120")
	}
	for _, tool := range r.Tools {
		if server, _, ok := mcpServer(tool); ok && docs == "" {
			set("mcp_servers."+server+".default_tools_approval_mode", `"approve"`)
		}
	}
	return args
}

// mcpServer splits the name of a tool, or of all tools, of one of the user's MCP servers:
// mcp__github__list, mcp__github.
func mcpServer(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	server, name, _ = strings.Cut(rest, "__")
	plain := !strings.ContainsFunc(
		server,
		func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_' },
	)
	return server, name, ok && server != "" && plain
}

func (*codex) begin(t *turn, l launch) string {
	if l.talks {
		return codexHello
	}
	return t.prompt
}

func (*codex) newListener(t *turn, l launch) listener {
	items := codexItems{turn: t, decided: map[string]bool{}}
	if l.talks {
		return &codexServer{codexItems: items, started: map[string]codexItem{}, asked: map[string]context.CancelFunc{}}
	}
	return &codexExec{codexItems: items}
}

func (*codex) signedIn(
	ctx context.Context,
	env lookup,
	ask func(context.Context, ...string) (string, int),
) (string, bool) {
	if env(codexKey) != "" {
		return codexKey, true
	}
	if codexHasProvider(env) {
		return "the model provider in its config.toml", true
	}
	said, exit := ask(ctx, "login", "status")
	with := ""
	switch {
	case strings.Contains(said, "ChatGPT"):
		with = "ChatGPT"
	case strings.Contains(said, "API key"):
		with = "an API key"
	}
	return with, exit == 0
}

// codexProvider matches the line by which a user has Codex use another provider's models, or their
// own.
var codexProvider = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*model_provider[ \t]*=[ \t]*["']([^"'\n]+)["']`)
})

// codexHasProvider says whether the user's configuration names another provider of models. Then
// there is no account to sign in to.
func codexHasProvider(env lookup) bool {
	folder := env("CODEX_HOME")
	if folder == "" {
		folder = filepath.Join(env("HOME"), ".codex")
	}
	text, err := os.ReadFile(filepath.Join(folder, "config.toml"))
	if err != nil {
		return false
	}
	found := codexProvider().FindSubmatch(text)
	return found != nil && string(found[1]) != "openai"
}
