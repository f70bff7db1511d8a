package coding

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// claude is Claude Code. It reads prompts as JSON lines as long as its standard input is open, so
// it is kept between turns.
type claude struct {
	cannotAsk atomic.Bool // the program does not know askFlag
}

func (*claude) facts() facts {
	return facts{
		defaultEnv: map[string]string{
			"CLAUDE_CODE_MAX_RETRIES":              "3", // its default retries for minutes
			"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", // see wakeTools
			"CLAUDE_CODE_DISABLE_CRON":             "1",
		},
		sessionGone: "No conversation found with session ID",
		nestedVars:  []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID"},
	}
}

// ourServer tells Claude Code about the swarm tools. Claude Code fills in the variables itself, so
// the token is in no argument.
const ourServer = `{"mcpServers":{"swarm":{"type":"http","url":"${SWARM_URL}/mcp","headers":{"Authorization":"Bearer ${SWARM_AGENT_TOKEN}"}}}}`

// wakeTools are the tools by which Claude Code would wake up between turns. Work done then belongs
// to no turn: the log does not show it and no budget counts it.
const wakeTools = "ScheduleWakeup,Monitor"

// dialogTools are the tools by which Claude Code has its user choose among answers, or approve a
// plan. An approval is a yes or a no to a tool, and answers neither. An agent asks by request_help.
const dialogTools = "AskUserQuestion,EnterPlanMode,ExitPlanMode"

// readOnlyTools are Claude Code's own tools that change nothing. In PLANNING it has these and the
// tools that edit files, which its permissions confine to docs/. Every other tool could change
// files.
var readOnlyTools = []string{"Read", "Glob", "Grep", "WebFetch", "WebSearch"}

// entriesFor returns the entries of an agent's `tools` that name one of some tools.
func entriesFor(entries, tools []string) (some []string) {
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "(")
		if slices.Contains(tools, name) {
			some = append(some, entry)
		}
	}
	return some
}

// claudePath writes a folder as Claude Code's permission rules name it: relative to its working
// folder, or as an absolute path.
func claudePath(dir, folder string) string {
	if rel, err := filepath.Rel(dir, folder); err == nil && filepath.IsLocal(rel) {
		return "./" + plainPattern(filepath.ToSlash(rel))
	}
	return "/" + plainPattern(filepath.ToSlash(folder)) // a rule writes the root as two slashes
}

// plainPattern escapes a path, so that as a pattern it matches only itself.
func plainPattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "(", `\(`, ")", `\)`).Replace(path)
}

// askFlag makes Claude Code ask for permissions in its stream, as a control_request.
const askFlag = "--permission-prompt-tool"

// downgrade has programs started without askFlag, once one has refused it. They refuse by themselves
// what they would ask for.
func (c *claude) downgrade(l launch, t *turn) string {
	if !slices.Contains(l.args, askFlag+"=stdio") || !strings.Contains(t.lastWords(), askFlag) {
		return ""
	}
	c.cannotAsk.Store(true)
	return cannotAsk
}

// launch keeps the user's settings in force and adds permissions by arguments. In PLANNING the
// tools are limited by name, because a rule of the user's could otherwise allow a command.
func (c *claude) launch(r provider.Request, session string, _ lookup) launch {
	args := []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--include-partial-messages", "--replay-user-messages", "--disallowedTools=" + wakeTools + "," + dialogTools}
	if r.Ask != nil && !c.cannotAsk.Load() {
		args = append(args, askFlag+"=stdio")
	}
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
		mode, allowed = "default", append(entriesFor(r.Tools, readOnlyTools), "Edit("+claudePath(r.Dir, docs)+"/**)")
		args = append(args, "--tools="+strings.Join(append([]string{"Edit", "Write"}, readOnlyTools...), ","))
	}
	args = append(args, "--permission-mode="+mode)
	if r.Door.URL != "" {
		args = append(args, "--mcp-config="+ourServer)
		allowed = append([]string{"mcp__swarm"}, allowed...)
	}
	if len(allowed) > 0 {
		args = append(args, "--allowedTools="+strings.Join(allowed, ","))
	}
	return launch{args: args, persistent: true}
}

// begin makes a user message of the stream-json input. Claude Code repeats its id, which separates
// the turns of a kept program.
func (*claude) begin(t *turn, _ launch) string {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	b, _ := json.Marshal(struct {
		Type    string  `json:"type"`
		ID      string  `json:"uuid"`
		Message message `json:"message"`
	}{"user", t.id, message{"user", strings.ToValidUTF8(t.prompt, "\uFFFD")}})
	return string(b) + "\n"
}

func (*claude) signedIn(
	ctx context.Context,
	env lookup,
	ask func(context.Context, ...string) (string, int),
) (string, bool) {
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
	// An older version has no such command; look for its file of credentials.
	folder := env("CLAUDE_CONFIG_DIR")
	if folder == "" {
		folder = filepath.Join(env("HOME"), ".claude")
	}
	_, err := os.Stat(filepath.Join(folder, ".credentials.json"))
	return "claude.ai", err == nil
}

// newListener makes a listener. In a kept program, lines before the repeated message still belong
// to the turn before.
func (*claude) newListener(t *turn, _ launch) listener {
	return &claudeListener{turn: t, mine: !t.later, asked: map[string]context.CancelFunc{}, refused: map[string]bool{}}
}

// A claudeListener reads Claude Code's stream in one turn.
type claudeListener struct {
	*turn
	mine     bool   // lines belong to this turn; a kept program first repeats the turn's message
	streamed bool   // the answer is streamed; its whole message must not be shown again
	problem  string // the reason that the last answer gives for a failure
	before   swarm.Usage
	answer   swarm.Usage                   // of the answer that is being streamed
	model    string                        // that gives it
	tokens   providerkind.Tokens           // of it
	paid     float64                       // the list price of the answers before it
	version  string                        // the program's, as it tells it when it begins
	asked    map[string]context.CancelFunc // by id: its open requests for permissions
	refused  map[string]bool               // tool calls that a person has refused, as callKey names them
}

// A claudeLine has the fields that all lines share. The type says which others there are.
type claudeLine struct {
	Type      string
	Subtype   string
	UUID      string
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"` // the tool call of a subagent, whose text is not the agent's
}

type claudeMessage struct {
	Message struct{ Content content }
	Error   string
}

type claudeEvent struct {
	Type    string
	Message struct {
		Model string
		Usage claudeUsage
	}
	ContentBlock struct{ Type string } `json:"content_block"`
	Delta        struct{ Type, Text, Thinking string }
	Usage        claudeUsage
}

type claudeResult struct {
	IsError     bool `json:"is_error"`
	Result      string
	Errors      []string
	Status      int                        `json:"api_error_status"`
	StopReason  string                     `json:"stop_reason"`
	TotalUSD    provider.Reported[float64] `json:"total_cost_usd"`
	Usage       claudeUsage
	SinceResult provider.Reported[map[string]struct {
		InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
		CostUSD                                                                   float64
	}] `json:"model_usage_since_last_result"`
	Denials []claudeDenial `json:"permission_denials"`
}

// A claudeDenial is a tool call that was refused, by a person or by Claude Code itself.
type claudeDenial struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
}

type claudeUsage struct {
	provider.Reported[struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Read   int64 `json:"cache_read_input_tokens"`
		Wrote  int64 `json:"cache_creation_input_tokens"`
	}]
}

func (u claudeUsage) usage() swarm.Usage {
	f, v := provider.Figures{Unusable: u.Unusable}, u.Value
	in, out, cached := f.Count(v.Input, v.Read, v.Wrote), f.Count(v.Output), f.Count(v.Read)
	return f.Usage(in, out, cached, 0)
}

// tokens returns the same figures in the kinds that have prices of their own.
func (u claudeUsage) tokens() providerkind.Tokens {
	f, v := provider.Figures{}, u.Value
	return providerkind.Tokens{In: f.Count(v.Input), Out: f.Count(v.Output), Read: f.Count(v.Read), Wrote: f.Count(v.Wrote)}
}

// hearLine decodes a line by its type. Unknown types are ignored, because newer versions add some.
func (e *claudeListener) hearLine(line []byte) error {
	e.modelWait.Stop()
	var l claudeLine
	if err := e.decode(line, &l); err != nil {
		return err
	}
	if l.Type == "user" && l.UUID == e.id {
		e.mine = true
	}
	switch l.Type { // whatever turn they belong to, the program waits for an answer
	case "control_request":
		return e.handleControl(line)
	case "control_cancel_request":
		return e.cancelControl(line)
	}
	if !e.mine {
		return nil
	}
	switch l.Type {
	case "system":
		return e.handleSystem(l, line)
	case "stream_event":
		var v struct{ Event claudeEvent }
		if err := e.decode(line, &v); err != nil {
			return err
		}
		e.handleEvent(l.Parent, &v.Event)
	case "assistant", "user":
		var m claudeMessage
		if err := e.decode(line, &m); err != nil {
			return err
		}
		e.handleMessage(l, &m)
	case "rate_limit_event":
		var v struct {
			Info struct {
				Status   string
				ResetsAt int64 `json:"resetsAt"`
			} `json:"rate_limit_info"`
		}
		if err := e.decode(line, &v); err != nil {
			return err
		}
		if e.resets = (time.Time{}); v.Info.Status == "rejected" && v.Info.ResetsAt > 0 {
			e.resets = time.Unix(v.Info.ResetsAt, 0)
		}
	case "result":
		var r claudeResult
		if err := e.decode(line, &r); err != nil {
			return err
		}
		e.handleResult(l, &r)
	}
	return nil
}

// handleSystem takes the beginning of a session, and the retries of calls to the model.
func (e *claudeListener) handleSystem(l claudeLine, line []byte) error {
	switch l.Subtype {
	case "init":
		var begun struct {
			Version string `json:"claude_code_version"`
		}
		_ = json.Unmarshal(line, &begun) // only old versions need it
		e.version = begun.Version
		e.setSession(l.SessionID)
	case "api_retry":
		var retry struct{ Error string }
		if err := e.decode(line, &retry); err != nil {
			return err
		}
		e.waitForModel("Claude Code asks its model again: " + retry.Error)
	}
	return nil
}

// handleEvent takes a part of an answer that is being streamed.
func (e *claudeListener) handleEvent(parent string, v *claudeEvent) {
	switch v.Type {
	case "message_start":
		e.answer, e.model = v.Message.Usage.usage(), v.Message.Model
		e.tokens, e.paid = v.Message.Usage.tokens(), e.listPrice
		e.streamed = e.streamed && parent != ""
	case "content_block_start":
		if parent == "" && v.ContentBlock.Type == "text" {
			e.endLine()
		}
	case "content_block_delta":
		if parent != "" {
			return
		}
		e.showText(v.Delta.Text)
		e.showThinking(v.Delta.Thinking)
		e.streamed = true
	case "message_delta":
		u := v.Usage.usage()
		e.answer.OutputTokens, e.answer.Estimated = u.OutputTokens, e.answer.Estimated || u.Estimated
		e.setUsage(e.before.Plus(e.answer))
		e.tokens.Out = u.OutputTokens
		e.listPrice = e.paid + providerkind.Cost(e.model, e.tokens)
	case "message_stop":
		e.before, e.answer = e.before.Plus(e.answer), swarm.Usage{}
	}
}

// handleMessage takes a whole answer or a block of it, or the results of tools.
func (e *claudeListener) handleMessage(l claudeLine, m *claudeMessage) {
	if l.Type == "assistant" {
		e.problem = m.Error
	}
	for _, b := range m.Message.Content {
		switch {
		case b.Type == "tool_result":
			e.endTool(b.ToolUseID, b.resultText(), b.IsError)
		case b.Type == "tool_use":
			e.startTool(b.ID, b.Name, b.Input, fileOf(b))
		case b.Type == "text" && l.Type == "assistant" && l.Parent == "" && !e.streamed && e.problem == "":
			e.endLine()
			e.showText(b.Text)
		}
	}
}

// fileOf returns the file that a tool call changes, or "".
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

// handleResult takes the end of a turn. A permission that was refused, and not by a person, fails it
// even if Claude Code reports success, because the work was not done as asked.
func (e *claudeListener) handleResult(l claudeLine, r *claudeResult) {
	e.reportUsage(r)
	said := r.Result
	if said == "" {
		said = strings.Join(r.Errors, " | ")
	}
	switch {
	case r.IsError && e.request.Session != "" && strings.Contains(said, e.facts.sessionGone):
		e.failSessionLost()
		return
	case r.IsError:
		e.setSession(l.SessionID)
		e.fail(e.resultError(l.Subtype, r, said))
		return
	}
	e.setSession(l.SessionID)
	denied := slices.IndexFunc(r.Denials, func(d claudeDenial) bool { return !e.refused[callKey(d.Tool, d.Input)] })
	switch {
	case denied >= 0:
		d := r.Denials[denied]
		e.setOutput(r.Result)
		e.fail(e.deniedError(d.Tool, string(d.Input), d.Tool))
	case r.StopReason == "refusal":
		e.fail(
			swarm.Errorf(swarm.NoResult, "the model refused to answer%s", excerpt.Said(e.redactor.String(said))).
				WithHint("ask for it in other words, or ask another model"),
		)
	default:
		e.succeed(r.Result)
	}
}

// resultError makes the error of a failed turn. Claude Code names the reason in the last answer,
// which it made up itself, and seldom gives a status.
func (e *claudeListener) resultError(subtype string, r *claudeResult, said string) *swarm.Error {
	status := r.Status
	switch {
	case status != 0:
	case e.problem == "authentication_failed" || e.problem == "oauth_org_not_allowed":
		status = 401
	case e.problem == "rate_limit" || e.problem == "billing_error" || e.problem == "overloaded":
		status = 429
	}
	return e.failure(status, cmp.Or(said, subtype))
}

// reportUsage reports the cost of the turn. The figures since the last result cover the turn,
// including its subagents. Versions without them report the turn's tokens and a running total of
// dollars.
func (e *claudeListener) reportUsage(r *claudeResult) {
	u := r.Usage.usage()
	if r.SinceResult.Given {
		f := provider.Figures{Unusable: r.SinceResult.Unusable}
		u = swarm.Usage{Estimated: f.Unusable}
		for _, m := range r.SinceResult.Value {
			in, out := f.Count(m.InputTokens, m.CacheReadInputTokens, m.CacheCreationInputTokens), f.Count(m.OutputTokens)
			cached, usd := f.Count(m.CacheReadInputTokens), f.Dollars(m.CostUSD)
			u = u.Plus(f.Usage(in, out, cached, usd))
		}
	} else if r.TotalUSD.Given {
		f := provider.Figures{Unusable: r.TotalUSD.Unusable}
		total := f.Usage(0, 0, 0, f.Dollars(r.TotalUSD.Value))
		e.setSessionTotal(total)
		before, known := e.spentBefore()
		if !e.later && (!resumesTotal(e.version) || total.USD < before.USD) {
			before, known = swarm.Usage{}, true // this process has counted from zero
		}
		if known {
			u.USD = total.Minus(before).USD
		}
		u.Estimated = u.Estimated || f.Unusable
	}
	e.setUsage(u)
}

// resumesTotal says whether a process of a version that resumes a session goes on from the total
// that the session had. Versions before 2.1.277 count from zero in each process.
func resumesTotal(version string) bool {
	return atLeast(version, 2, 1, 277)
}

// atLeast says whether a version is not older than another. A text that is no version is older.
func atLeast(version string, than ...int) bool {
	var major, minor, patch int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	return slices.Compare([]int{major, minor, patch}, than) >= 0
}
