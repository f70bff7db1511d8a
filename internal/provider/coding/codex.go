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

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/provider"
)

// codex is OpenAI's Codex. Each turn is a process; a later one continues the session by its name.
type codex struct {
	mu     sync.Mutex
	totals map[string]swarm.Usage // of sessions, which is what Codex tells
}

func (*codex) facts() facts {
	return facts{
		usual:  map[string]string{"RUST_BACKTRACE": "0"}, // its last words are why it failed
		forgot: "no rollout found for thread id",
	}
}

func (*codex) launch(r provider.Request, session string) launch {
	args := []string{"exec"}
	if session != "" {
		args = append(args, "resume")
	}
	set := func(key, value string) { args = append(args, "-c", key+"="+value) }
	args = append(args, "--json", "--skip-git-repo-check")
	set("approval_policy", `"never"`)
	docs := r.Docs()
	switch {
	case docs == "":
		set("sandbox_mode", `"workspace-write"`)
	case strings.ContainsAny(docs, "*?[]{}"): // a profile would take it for a pattern, and has none to write by
		set("sandbox_mode", `"read-only"`)
	default: // the working folder is always writable in workspace-write
		set("default_permissions", `"planning"`)
		set("permissions.planning.filesystem", `{":root"="read",`+strconv.Quote(docs)+`="write"}`)
	}
	set("features.shell_snapshot", "false") // it would write the environment, with our token and the keys, into a file that all can read
	if r.Root != "" && r.Root != r.Dir && docs == "" {
		set("sandbox_workspace_write.writable_roots", "["+strconv.Quote(r.Root)+"]")
	}
	if r.Door.URL != "" {
		set("mcp_servers.swarm.url", strconv.Quote(r.Door.URL+"/mcp"))
		set("mcp_servers.swarm.bearer_token_env_var", `"SWARM_AGENT_TOKEN"`)
		set("mcp_servers.swarm.default_tools_approval_mode", `"approve"`)
		set("mcp_servers.swarm.tool_timeout_sec", "3600") // one that waits for others may wait long
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

// mcpServer takes apart the name of a tool, or of all tools, of a server of the user's own: mcp__github__list, mcp__github.
func mcpServer(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	server, name, _ = strings.Cut(rest, "__")
	plain := !strings.ContainsFunc(server, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_' })
	return server, name, ok && server != "" && plain
}

func (*codex) say(prompt, _ string) string { return prompt }

func (*codex) signed(ctx context.Context, env lookup, ask func(context.Context, ...string) (string, int)) (string, bool) {
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

// codexProvider is the line by which a user has Codex work with models of somebody else's, or with his own.
var codexProvider = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*model_provider[ \t]*=[ \t]*["']([^"'\n]+)["']`)
})

// codexHasProvider says whether the user's own configuration names who has the models: then there is nobody to sign in to.
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

func (c *codex) listen(t *turn) listener { return &codexEar{turn: t, codex: c} }

// A codexEar hears Codex in one turn.
type codexEar struct {
	*turn
	codex  *codex
	newest string       // what the agent said last
	denied *swarm.Error // what it was not allowed, first
	told   string       // the last thing that went wrong
}

// A codexLine is one event.
type codexLine struct {
	Type     string
	ThreadID string `json:"thread_id"`
	Message  string
	Error    struct{ Message string }
	Item     codexItem
	Usage    struct {
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Output int64 `json:"output_tokens"`
	}
}

// A codexItem is something that the agent does. What it holds depends on its type.
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

// codexItems are the types of items that are understood; of others not even the form is known.
var codexItems = []string{"agent_message", "reasoning", "command_execution", "file_change", "mcp_tool_call", "web_search", "error"}

func (e *codexEar) line(line []byte) error {
	var l codexLine
	if err := e.understand(line, &l); err != nil && (l.Item.Type == "" || slices.Contains(codexItems, l.Item.Type)) {
		return err
	}
	switch l.Type {
	case "thread.started":
		e.continues(l.ThreadID)
	case "item.started", "item.updated", "item.completed":
		e.item(&l.Item, l.Type == "item.completed")
	case "error":
		e.told = l.Message
		if status, limit, _ := provider.Blame(l.Message); limit || status >= 500 {
			e.waits(l.Message)
		} else {
			e.noise(l.Message + "\n")
		}
	case "turn.failed":
		e.fail(e.blamed(0, cmp.Or(l.Error.Message, e.told)))
	case "turn.completed":
		e.account(&l)
		if e.denied != nil {
			e.answered(e.newest)
			e.fail(e.denied)
		} else {
			e.finish(e.newest)
		}
	}
	return nil
}

// item is something that the agent does. What is done at once is only told when it is.
func (e *codexEar) item(i *codexItem, done bool) {
	switch i.Type {
	case "agent_message":
		if done {
			e.newest = i.Text
			e.paragraph()
			e.text(i.Text)
		}
	case "reasoning":
		if done {
			e.thinking(i.Text)
		}
	case "error":
		e.noise(i.Message + "\n")
	case "command_execution":
		e.use(i, "shell", object{"command": i.Command}, i.Output, done)
	case "web_search":
		e.use(i, "web_search", object{"query": i.Query}, "", done)
	case "file_change":
		e.use(i, "file_change", object{"changes": i.Changes}, "", done)
		for _, c := range i.Changes {
			if done && i.Status == "completed" {
				e.changed(c.Path)
			}
		}
	case "mcp_tool_call":
		output := ""
		if i.Result != nil {
			output = i.Result.Content.text()
		}
		e.use(i, "mcp__"+i.Server+"__"+i.Tool, i.Arguments, output, done)
	}
}

// An object is written as JSON.
type object map[string]any

// use is a tool, whatever it is called.
func (e *codexEar) use(i *codexItem, name string, input any, output string, done bool) {
	b, _ := json.Marshal(input)
	e.calls(i.ID, name, b, "")
	if !done {
		return
	}
	if i.Error != nil {
		output += i.Error.Message
	}
	e.called(i.ID, output, i.Status == "failed" || i.Status == "declined" || i.Error != nil)
	if e.denied != nil {
		return
	}
	switch {
	case i.Error != nil && strings.Contains(i.Error.Message, "approval"):
		e.denied = e.refused(name, string(b), "mcp__"+i.Server)
	case i.Status == "declined":
		e.denied = swarm.Errorf(swarm.Denied, "Codex was not allowed to use %s%s", name, excerpt.Said(e.hide.String(string(b)))).
			WithHint("its sandbox and its rules forbid it: see `codex execpolicy`, or let a task of another agent do it")
	}
}

// account says what the turn has cost. Codex tells what the session has; of one that was begun by another process nobody here
// knows what it had cost before, and then nothing is said.
func (e *codexEar) account(l *codexLine) {
	total := swarm.Usage{InputTokens: l.Usage.Input, CachedTokens: l.Usage.Cached, OutputTokens: l.Usage.Output}
	e.codex.mu.Lock()
	before, known := e.codex.totals[e.session]
	e.codex.totals[e.session] = total
	e.codex.mu.Unlock()
	if known || e.request.Session == "" {
		e.spent(swarm.Usage{InputTokens: max(0, total.InputTokens-before.InputTokens), CachedTokens: max(0, total.CachedTokens-before.CachedTokens),
			OutputTokens: max(0, total.OutputTokens-before.OutputTokens)})
	}
}
