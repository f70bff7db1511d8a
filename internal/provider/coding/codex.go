package coding

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
)

// codex is OpenAI's Codex. Each turn is a process of its own, and continues the session by name.
type codex struct {
	confined bool // by our own sandbox
}

func (*codex) facts() facts {
	return facts{
		defaultEnv:  map[string]string{"RUST_BACKTRACE": "0"}, // the last lines on stderr are to say why it failed
		sessionGone: "no rollout found for thread id",
	}
}

// launch never lets Codex ask for an approval: without a person at its terminal it would wait for
// ever. Its sandbox limits it instead, or ours.
func (c *codex) launch(r provider.Request, session string) launch {
	args := []string{"exec"}
	if session != "" {
		args = append(args, "resume")
	}
	set := func(key, value string) { args = append(args, "-c", key+"="+value) }
	args = append(args, "--json", "--skip-git-repo-check")
	set("approval_policy", `"never"`)
	docs := r.Docs()
	switch {
	case c.confined:
		// Its sandbox needs namespaces, or sockets, that ours forbids. Ours holds it to docs/ too.
		set("sandbox_mode", `"danger-full-access"`)
	case docs == "":
		set("sandbox_mode", `"workspace-write"`)
	case strings.ContainsAny(docs, "*?[]{}"):
		// A profile would read the path as a pattern, and allows no writing by pattern.
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
	}
	for _, tool := range r.Tools {
		if server, _, ok := mcpServer(tool); ok && docs == "" {
			set("mcp_servers."+server+".default_tools_approval_mode", `"approve"`)
		}
	}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if session != "" {
		args = append(args, "--", session)
	}
	return launch{args: append(args, "-")}
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

func (*codex) encodePrompt(prompt, _ string) string { return prompt }

func (*codex) signedIn(
	ctx context.Context,
	env lookup,
	ask func(context.Context, ...string) (string, int),
) (string, bool) {
	if env("CODEX_API_KEY") != "" {
		return "CODEX_API_KEY", true
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

func (*codex) newListener(t *turn) listener { return &codexListener{turn: t} }

// A codexListener reads Codex's stream in one turn.
type codexListener struct {
	*turn
	lastMessage string       // the agent's last message
	denied      *swarm.Error // the first permission that was refused
	lastError   string       // the last error that the stream reported
}

// A codexLine is one event of the stream.
type codexLine struct {
	Type     string
	ThreadID string `json:"thread_id"`
	Message  string
	Error    struct{ Message string }
	Item     codexItem
	Usage    provider.Reported[struct {
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Output int64 `json:"output_tokens"`
	}]
}

// A codexItem is one thing that the agent does. Its type says which fields are set.
type codexItem struct {
	ID, Type, Text, Message, Status string
	Command                         string
	Output                          string `json:"aggregated_output"`
	Query                           string
	Server, Tool                    string
	Arguments                       json.RawMessage
	Changes                         []codexChange
	Error                           *struct{ Message string }
	Result                          *struct{ Content content }
}

type codexChange struct {
	Path string `json:"path"`
	Kind string `json:"kind,omitempty"` // add, update, delete
}

// codexItems are the types of items that are understood. Other types may have any form.
var codexItems = []string{
	"agent_message",
	"reasoning",
	"command_execution",
	"file_change",
	"mcp_tool_call",
	"web_search",
	"error",
}

// hearLine decodes an event. A line with an unknown type of item may have any form, so an error in
// it does not count.
func (e *codexListener) hearLine(line []byte) error {
	var l codexLine
	if err := e.decode(line, &l); err != nil && (l.Item.Type == "" || slices.Contains(codexItems, l.Item.Type)) {
		return err
	}
	switch l.Type {
	case "thread.started":
		e.setSession(l.ThreadID)
	case "item.started", "item.updated", "item.completed":
		e.handleItem(&l.Item, l.Type == "item.completed")
	case "error":
		e.lastError = l.Message
		if status, limit, _ := provider.Blame(l.Message); limit || status >= 500 {
			e.waitForModel(l.Message)
		} else {
			e.writeStderr(l.Message + "\n")
		}
	case "turn.failed":
		e.fail(e.failure(0, cmp.Or(l.Error.Message, e.lastError)))
	case "turn.completed":
		e.reportUsage(&l)
		if e.denied != nil {
			e.setOutput(e.lastMessage)
			e.fail(e.denied)
		} else {
			e.succeed(e.lastMessage)
		}
	}
	return nil
}

// handleItem takes one thing that the agent does. Messages and reasoning are shown when they are
// complete.
func (e *codexListener) handleItem(i *codexItem, done bool) {
	switch i.Type {
	case "agent_message":
		if done {
			e.lastMessage = i.Text
			e.endLine()
			e.showText(i.Text)
		}
	case "reasoning":
		if done {
			e.showThinking(i.Text)
		}
	case "error":
		e.writeStderr(i.Message + "\n")
	case "command_execution":
		e.reportTool(i, "shell", object{"command": i.Command}, i.Output, done)
	case "web_search":
		e.reportTool(i, "web_search", object{"query": i.Query}, "", done)
	case "file_change":
		e.reportTool(i, "file_change", object{"changes": i.Changes}, "", done)
		for _, c := range i.Changes {
			if done && i.Status == "completed" {
				e.reportFile(c.Path)
			}
		}
	case "mcp_tool_call":
		output := ""
		if i.Result != nil {
			output = i.Result.Content.text()
		}
		e.reportTool(i, "mcp__"+i.Server+"__"+i.Tool, i.Arguments, output, done)
	}
}

// An object is encoded as a JSON object.
type object map[string]any

// reportTool reports the call of a tool, and its result when it is done. The first refused
// permission fails the turn at its end.
func (e *codexListener) reportTool(i *codexItem, name string, input any, output string, done bool) {
	b, _ := json.Marshal(input)
	e.startTool(i.ID, name, b, "")
	if !done {
		return
	}
	if i.Error != nil {
		output += i.Error.Message
	}
	e.endTool(i.ID, output, i.Status == "failed" || i.Status == "declined" || i.Error != nil)
	if e.denied != nil {
		return
	}
	switch {
	case i.Error != nil && strings.Contains(i.Error.Message, "approval"):
		e.denied = e.deniedError(name, string(b), "mcp__"+i.Server)
	case i.Status == "declined":
		e.denied = swarm.Errorf(swarm.Denied, "Codex was not allowed to use %s%s", name, excerpt.Said(e.redactor.String(string(b)))).
			WithHint("its sandbox and its rules forbid it: see `codex execpolicy`, or let a task of another agent do it")
	}
}

// reportUsage reports the cost of the turn: the total of the session less what it was before the
// turn. Codex counts reasoning as a part of the output.
func (e *codexListener) reportUsage(l *codexLine) {
	f := provider.Figures{Unusable: l.Usage.Unusable}
	k := l.Usage.Value
	in, out, cached := f.Count(k.Input), f.Count(k.Output), f.Count(k.Cached)
	total := f.Usage(in, out, cached, 0)
	e.setSessionTotal(total)
	if before, known := e.spentBefore(); known {
		e.setUsage(total.Minus(before))
	}
}
