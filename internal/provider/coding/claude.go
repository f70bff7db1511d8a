package coding

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/provider"
)

// claude is Claude Code. It is kept between turns: it takes prompts as lines of JSON for as long as its standard input is open.
type claude struct{}

func (claude) facts() facts {
	return facts{
		usual: map[string]string{
			"CLAUDE_CODE_MAX_RETRIES":              "3", // of its own it tries for minutes, and holds the turn for as long
			"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", // see betweenTurns
			"CLAUDE_CODE_DISABLE_CRON":             "1",
			"ENABLE_TOOL_SEARCH":                   "false", // our tools are few, and are to be seen at once
		},
		forgot: "No conversation found with session ID",
		outer:  []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID"},
	}
}

// ourServer tells Claude Code of our tools. The variables are filled in by itself, so that the token stands in no argument.
const ourServer = `{"mcpServers":{"swarm":{"type":"http","url":"${SWARM_URL}/mcp","headers":{"Authorization":"Bearer ${SWARM_AGENT_TOKEN}"}}}}`

// betweenTurns are the tools by which Claude Code would wake up by itself. Whatever it did then is nobody's: no turn has it in the log,
// and no budget counts it.
const betweenTurns = "ScheduleWakeup,Monitor"

// looking are Claude Code's own tools that change nothing. In PLANNING it has these and those that edit files, which its permissions hold
// to docs/; whatever else it could be asked to do may change files.
var looking = []string{"Read", "Glob", "Grep", "WebFetch", "WebSearch"}

// onlyOf are the entries of an agent's `tools` that are about some tools.
func onlyOf(entries, tools []string) (some []string) {
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "(")
		if slices.Contains(tools, name) {
			some = append(some, entry)
		}
	}
	return some
}

// claudePath is a folder as a rule of Claude Code's permissions names it: from where it works, or by its whole path.
func claudePath(dir, folder string) string {
	if rel, err := filepath.Rel(dir, folder); err == nil && filepath.IsLocal(rel) {
		return "./" + plainPattern(filepath.ToSlash(rel))
	}
	return "/" + plainPattern(filepath.ToSlash(folder)) // two slashes are the root
}

// plainPattern is a path as a pattern that fits nothing else.
func plainPattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "(", `\(`, ")", `\)`).Replace(path)
}

func (claude) launch(r provider.Request, session string) launch {
	args := []string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		"--replay-user-messages", "--disallowedTools=" + betweenTurns}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if session != "" {
		args = append(args, "--resume="+session)
	}
	if r.Root != "" && r.Root != r.Dir {
		args = append(args, "--add-dir="+r.Root)
	}
	mode, allowed := "acceptEdits", r.Tools
	if docs := r.Docs(); docs != "" {
		mode, allowed = "default", append(onlyOf(r.Tools, looking), "Edit("+claudePath(r.Dir, docs)+"/**)")
		args = append(args, "--tools="+strings.Join(append([]string{"Edit", "Write"}, looking...), ","))
	}
	args = append(args, "--permission-mode="+mode)
	if r.Door.URL != "" {
		args = append(args, "--mcp-config="+ourServer)
		allowed = append([]string{"mcp__swarm"}, allowed...)
	}
	if len(allowed) > 0 {
		args = append(args, "--allowedTools="+strings.Join(allowed, ","))
	}
	return launch{args: args, kept: true}
}

func (claude) say(prompt, id string) string {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	b, _ := json.Marshal(struct {
		Type    string  `json:"type"`
		ID      string  `json:"uuid"`
		Message message `json:"message"`
	}{"user", id, message{"user", strings.ToValidUTF8(prompt, "\uFFFD")}})
	return string(b) + "\n"
}

func (claude) signed(ctx context.Context, env lookup, ask func(context.Context, ...string) (string, int)) (string, bool) {
	for _, key := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if env(key) != "" {
			return key, true
		}
	}
	said, _ := ask(ctx, "auth", "status", "--json")
	var status struct {
		LoggedIn     bool
		AuthMethod   string
		APIKeySource string `json:"apiKeySource"`
	}
	if json.Unmarshal([]byte(said), &status) == nil {
		if status.APIKeySource != "" {
			return status.APIKeySource, status.LoggedIn
		}
		return status.AuthMethod, status.LoggedIn
	}
	// An older one that cannot be asked.
	folder := env("CLAUDE_CONFIG_DIR")
	if folder == "" {
		folder = filepath.Join(env("HOME"), ".claude")
	}
	_, err := os.Stat(filepath.Join(folder, ".credentials.json"))
	return "claude.ai", err == nil
}

func (claude) listen(t *turn) listener { return &claudeEar{turn: t, mine: !t.later} }

// A claudeEar hears Claude Code in one turn.
type claudeEar struct {
	*turn
	mine     bool   // what comes belongs to this turn: in a program that was kept, only after it has repeated the turn's message
	inPieces bool   // the answer that is coming is shown in pieces, and not again when it is whole
	problem  string // how the program names what went wrong with the last answer
	before   swarm.Usage
	answer   swarm.Usage // of the answer that is coming
}

// A claudeLine is what lines have in common. What else they hold depends on their type.
type claudeLine struct {
	Type      string
	Subtype   string
	UUID      string
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"` // the tool call of a subagent, whose words are not the agent's
}

type claudeMessage struct {
	Message struct{ Content content }
	Error   string
}

type claudeEvent struct {
	Type         string
	Message      struct{ Usage claudeUsage }
	ContentBlock struct{ Type string } `json:"content_block"`
	Delta        struct{ Type, Text, Thinking string }
	Usage        claudeUsage
}

type claudeResult struct {
	IsError     bool `json:"is_error"`
	Result      string
	Errors      []string
	Status      int     `json:"api_error_status"`
	StopReason  string  `json:"stop_reason"`
	TotalUSD    float64 `json:"total_cost_usd"`
	Usage       claudeUsage
	SinceResult map[string]struct {
		InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
		CostUSD                                                                   float64
	} `json:"model_usage_since_last_result"`
	Denials []struct {
		Tool  string          `json:"tool_name"`
		ID    string          `json:"tool_use_id"`
		Input json.RawMessage `json:"tool_input"`
	} `json:"permission_denials"`
}

type claudeUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Read   int64 `json:"cache_read_input_tokens"`
	Wrote  int64 `json:"cache_creation_input_tokens"`
}

func (u claudeUsage) usage() swarm.Usage {
	return swarm.Usage{InputTokens: u.Input + u.Read + u.Wrote, OutputTokens: u.Output, CachedTokens: u.Read}
}

func (e *claudeEar) line(line []byte) error {
	var l claudeLine
	if err := e.understand(line, &l); err != nil {
		return err
	}
	if l.Type == "user" && l.UUID == e.id {
		e.mine = true
	}
	if !e.mine {
		return nil
	}
	switch l.Type {
	case "system":
		return e.system(l, line)
	case "stream_event":
		var v struct{ Event claudeEvent }
		if err := e.understand(line, &v); err != nil {
			return err
		}
		e.piece(l.Parent, &v.Event)
	case "assistant", "user":
		var m claudeMessage
		if err := e.understand(line, &m); err != nil {
			return err
		}
		e.message(l, &m)
	case "result":
		var r claudeResult
		if err := e.understand(line, &r); err != nil {
			return err
		}
		e.result(l, &r)
	}
	return nil
}

func (e *claudeEar) system(l claudeLine, line []byte) error {
	switch l.Subtype {
	case "init":
		e.continues(l.SessionID)
	case "api_retry":
		var retry struct{ Error string }
		if err := e.understand(line, &retry); err != nil {
			return err
		}
		e.waits("Claude Code asks its model again: " + retry.Error)
	}
	return nil
}

// piece is a part of an answer that is coming.
func (e *claudeEar) piece(parent string, v *claudeEvent) {
	switch v.Type {
	case "message_start":
		e.answer = v.Message.Usage.usage()
		e.inPieces = e.inPieces && parent != ""
	case "content_block_start":
		if parent == "" && v.ContentBlock.Type == "text" {
			e.paragraph()
		}
	case "content_block_delta":
		if parent != "" {
			return
		}
		e.text(v.Delta.Text)
		e.thinking(v.Delta.Thinking)
		e.inPieces = true
	case "message_delta":
		e.answer.OutputTokens = v.Usage.Output
		e.spent(e.before.Plus(e.answer))
	case "message_stop":
		e.before, e.answer = e.before.Plus(e.answer), swarm.Usage{}
	}
}

// message is an answer, or a block of it, that has come, or what tools have said to it.
func (e *claudeEar) message(l claudeLine, m *claudeMessage) {
	if l.Type == "assistant" {
		e.problem = m.Error
	}
	for _, b := range m.Message.Content {
		switch {
		case b.Type == "tool_result":
			e.called(b.ToolUseID, b.said(), b.IsError)
		case b.Type == "tool_use":
			e.calls(b.ID, b.Name, b.Input, fileOf(b))
		case b.Type == "text" && l.Type == "assistant" && l.Parent == "" && !e.inPieces && e.problem == "":
			e.paragraph()
			e.text(b.Text)
		}
	}
}

// fileOf is the file that a tool changes.
func fileOf(b block) string {
	switch b.Name {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		var in struct {
			File     string `json:"file_path"`
			Notebook string `json:"notebook_path"`
		}
		_ = json.Unmarshal(b.Input, &in)
		return in.File + in.Notebook
	}
	return ""
}

func (e *claudeEar) result(l claudeLine, r *claudeResult) {
	e.account(r)
	said := r.Result
	if said == "" {
		said = strings.Join(r.Errors, " | ")
	}
	switch {
	case r.IsError && e.request.Session != "" && strings.Contains(said, e.facts.forgot):
		e.forgotten()
		return
	case r.IsError:
		e.continues(l.SessionID)
		e.fail(e.blame(l.Subtype, r, said))
		return
	}
	e.continues(l.SessionID)
	switch {
	case len(r.Denials) > 0:
		d := r.Denials[0]
		e.answered(r.Result)
		e.fail(e.refused(d.Tool, string(d.Input), d.Tool))
	case r.StopReason == "refusal":
		e.fail(swarm.Errorf(swarm.NoResult, "the model refused to answer%s", excerpt.Said(e.hide.String(said))).WithHint("ask for it in other words, or ask another model"))
	default:
		e.finish(r.Result)
	}
}

// blame finds out why Claude Code has failed. It names the reason in the last answer, which it has made up itself.
func (e *claudeEar) blame(subtype string, r *claudeResult, said string) *swarm.Error {
	status := r.Status
	switch {
	case status != 0:
	case e.problem == "authentication_failed" || e.problem == "oauth_org_not_allowed":
		status = 401
	case e.problem == "rate_limit" || e.problem == "billing_error" || e.problem == "overloaded":
		status = 429
	}
	return e.blamed(status, cmp.Or(said, subtype))
}

// account says what the turn has cost. The sum in dollars is the whole session's; what has come since the last result is the
// turn's, with what subagents have spent.
func (e *claudeEar) account(r *claudeResult) {
	u := r.Usage.usage()
	if r.SinceResult != nil {
		u = swarm.Usage{}
		for _, m := range r.SinceResult {
			u = u.Plus(swarm.Usage{InputTokens: m.InputTokens + m.CacheReadInputTokens + m.CacheCreationInputTokens, OutputTokens: m.OutputTokens,
				CachedTokens: m.CacheReadInputTokens, USD: m.CostUSD})
		}
	} else if !e.later && e.request.Session == "" {
		u.USD = r.TotalUSD
	}
	e.spent(u)
}
