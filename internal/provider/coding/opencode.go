package coding

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
)

// opencode is opencode. Each turn is a process of its own, and continues the session by name.
type opencode struct{}

func (opencode) facts() facts {
	return facts{
		defaultEnv: map[string]string{
			"OPENCODE_DISABLE_AUTOUPDATE": "1", // the program must not change while a team uses it
			// Only its log says that it is retrying, which can take minutes.
			"OPENCODE_PRINT_LOGS": "1", "OPENCODE_LOG_LEVEL": "ERROR",
		},
		nestedVars:  []string{"OPENCODE_PID", "OPENCODE_CLIENT", "OPENCODE_ROUTE", "OPENCODE_WORKSPACE_ID"},
		sessionGone: "Session not found",
	}
}

// launch passes permissions and the address of the swarm tools in variables. {env:…} keeps the
// token out of them; opencode fills it in itself.
func (opencode) launch(r provider.Request, session string, _ lookup) launch {
	args := []string{"run", "--format=json", "--thinking"}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if session != "" {
		args = append(args, "--session="+session)
	}
	over := map[string]object{"OPENCODE_PERMISSION": permissions(r)}
	if r.Door.URL != "" {
		over["OPENCODE_CONFIG_CONTENT"] = object{"mcp": object{"swarm": object{
			"type": "remote", "enabled": true, "oauth": false, "url": r.Door.URL + "/mcp",
			"headers": object{"Authorization": "Bearer {env:SWARM_AGENT_TOKEN}"},
			"timeout": 3_600_000, // a tool that waits for other agents may wait long
		}}}
	}
	return launch{args: args, overlay: over}
}

// permissions makes the settings that add to what the user's own settings allow: changing files,
// the swarm tools, and the agent's `tools`. An entry allows a whole tool or what a pattern matches:
// bash, bash(go test*).
func permissions(r provider.Request) object {
	if docs := r.Docs(); docs != "" {
		return planning(r, docs)
	}
	allowed := object{"edit": "allow"}
	if r.Door.URL != "" {
		allowed["swarm_*"] = "allow"
	}
	if r.Root != "" && r.Root != r.Dir {
		allowed["external_directory"] = object{"*": "ask", filepath.Join(r.Root, "*"): "allow"}
	}
	for _, entry := range r.Tools {
		name, pattern, some := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
		if !some {
			allowed[name] = "allow"
			continue
		}
		patterns, _ := allowed[name].(object)
		if patterns == nil {
			patterns = object{"*": "ask"} // the last match counts, and "*" sorts first
		}
		patterns[pattern] = "allow"
		allowed[name] = patterns
	}
	return allowed
}

// planning makes the permissions of PLANNING: the agent writes below docs/ only and runs nothing,
// whatever the user's settings allow.
func planning(r provider.Request, docs string) object {
	edit := object{"*": "deny"}
	if rel, err := filepath.Rel(worktree(r.Dir), docs); err == nil {
		edit[filepath.ToSlash(rel)+"/*"] = "allow"
	}
	all := object{"*": "deny", "edit": edit}
	// By name as well, because the user's settings may allow them by name.
	for _, tool := range []string{"bash", "task", "skill", "external_directory"} {
		all[tool] = "deny"
	}
	if r.Folder() != r.Dir {
		all["external_directory"] = object{"*": "deny", filepath.Join(r.Folder(), "*"): "allow"}
	}
	for _, tool := range []string{"read", "glob", "grep", "list", "todoread", "todowrite"} {
		all[tool] = "allow"
	}
	for _, entry := range entriesFor(r.Tools, []string{"webfetch", "websearch"}) {
		name, _, _ := strings.Cut(entry, "(")
		all[name] = "allow"
	}
	if r.Door.URL != "" {
		all["swarm_*"] = "allow"
	}
	return all
}

// worktree returns the folder to which opencode's rules for files are relative: the repository
// around dir, or the root of the file system. As for git, a folder .git without HEAD is none.
func worktree(dir string) string {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Lstat(filepath.Join(dir, ".git"))
		if err == nil && info.IsDir() {
			_, err = os.Lstat(filepath.Join(dir, ".git", "HEAD"))
		}
		if err == nil {
			break
		}
	}
	return dir
}

func (opencode) begin(t *turn, _ launch) string { return t.prompt }

func (opencode) signedIn(
	_ context.Context,
	env lookup,
	_ func(context.Context, ...string) (string, int),
) (string, bool) {
	if env("OPENCODE_API_KEY") != "" {
		return "OPENCODE_API_KEY", true
	}
	folder := env("XDG_DATA_HOME")
	if folder == "" {
		folder = filepath.Join(env("HOME"), ".local", "share")
	}
	var logins map[string]json.RawMessage
	if text, err := os.ReadFile(filepath.Join(folder, "opencode", "auth.json")); err == nil &&
		json.Unmarshal(text, &logins) == nil &&
		len(logins) > 0 {
		var names []string
		for name := range logins {
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, ", "), true
	}
	return "no account: models that need none", true // it has free models, and its settings may name others
}

func (opencode) newListener(t *turn, _ launch) listener { return &opencodeListener{turn: t} }

// An opencodeListener reads opencode's stream in one turn.
type opencodeListener struct {
	*turn
	lastMessage string       // the agent's last message
	denied      *swarm.Error // the first permission that was refused
	stops       bool         // opencode takes no further step
	sum         swarm.Usage  // of the steps so far
	failing     bool         // the model could not be reached, and nothing has come since
}

// hearStderr reads the log for failed calls of the model. opencode waits longer after each failure,
// so one time limit covers all retries together. A limit that lasts longer than that is not waited for.
func (e *opencodeListener) hearStderr(piece string) {
	if !e.failing && strings.Contains(piece, `message="stream error"`) {
		e.failing = true
		wait, now := e.patience, time.Now()
		if provider.ResetAt(piece, now).After(now.Add(wait)) {
			wait = 0
		}
		e.modelWait.Reset(wait)
	}
}

// An opencodeLine is one event of the stream: a part of a message, or an error.
type opencodeLine struct {
	Type      string
	SessionID string
	Part      struct {
		Text   string
		Tool   string
		CallID string
		State  struct {
			Status, Output, Error string
			Input                 json.RawMessage
		}
		Reason string
		Cost   provider.Reported[float64]
		Tokens provider.Reported[struct {
			Input, Output, Reasoning, Total int64
			Cache                           struct{ Read, Write int64 }
		}]
	}
	Error struct {
		Name string
		Data struct {
			Message    string
			StatusCode int
		}
	}
}

// hearLine decodes a line in two steps: first its type, because lines of unknown types may have any
// form.
func (e *opencodeListener) hearLine(line []byte) error {
	e.modelWait.Stop()
	var kind struct{ Type string }
	if err := e.decode(line, &kind); err != nil || !slices.Contains(opencodeTypes, kind.Type) {
		return err
	}
	var l opencodeLine
	if err := e.decode(line, &l); err != nil {
		return err
	}
	e.failing = false
	e.setSession(l.SessionID)
	switch part := &l.Part; l.Type {
	case "text":
		e.lastMessage = part.Text
		e.endLine()
		e.showText(part.Text)
	case "reasoning":
		e.showThinking(part.Text)
	case "tool_use":
		e.reportTool(&l)
	case "step_finish":
		e.endStep(&l)
	case "error":
		e.reportError(&l)
	}
	return nil
}

// opencodeTypes are the types of lines that are understood. Other types may have any form.
var opencodeTypes = []string{"step_start", "text", "reasoning", "tool_use", "step_finish", "error"}

// reportTool reports the call of a tool with its result. opencode writes the line when the tool is
// done.
func (e *opencodeListener) reportTool(l *opencodeLine) {
	part, state := &l.Part, &l.Part.State
	var input struct{ FilePath string }
	_ = json.Unmarshal(state.Input, &input) // the model wrote it, so it may be anything
	if part.Tool != "edit" && part.Tool != "write" {
		input.FilePath = ""
	}
	failed := state.Status == "error"
	e.startTool(part.CallID, part.Tool, state.Input, input.FilePath)
	e.endTool(part.CallID, state.Output+state.Error, failed)
	rejected := failed && strings.Contains(state.Error, "rejected permission")
	if e.denied == nil && (rejected || failed && strings.Contains(state.Error, "prevents you from using")) {
		e.denied = e.deniedError(part.Tool, string(state.Input), part.Tool)
	}
	e.stops = e.stops || rejected
}

// endStep takes the end of one call of the model with its tool calls. The last step ends the turn.
// After a permission that nobody was there to give, there is no other step. What a rule refuses is
// told to the model, and opencode goes on.
func (e *opencodeListener) endStep(l *opencodeLine) {
	k := l.Part.Tokens.Value
	f := provider.Figures{Unusable: l.Part.Tokens.Unusable || l.Part.Cost.Unusable}
	in, cached := f.Count(k.Input, k.Cache.Read, k.Cache.Write), f.Count(k.Cache.Read)
	out := f.CountOutput(in, k.Output, k.Reasoning, k.Total)
	usd := f.Dollars(l.Part.Cost.Value)
	e.sum = e.sum.Plus(f.Usage(in, out, cached, usd))
	e.setUsage(e.sum)
	switch reason := l.Part.Reason; {
	case e.denied != nil && !e.stops && reason == "tool-calls":
		e.setFault(e.denied)
	case e.denied != nil:
		e.setOutput(e.lastMessage)
		e.fail(e.denied)
	case reason == "length":
		e.fail(
			swarm.Errorf(swarm.NoResult, "opencode's model has no more tokens for its answer").
				WithHint("ask for less at once, or choose another model"),
		)
	case reason == "content-filter":
		e.fail(
			swarm.Errorf(swarm.NoResult, "opencode's model refused to answer").
				WithHint("ask for it in other words, or ask another model"),
		)
	case reason != "tool-calls":
		e.succeed(e.lastMessage)
	}
}

// reportError takes an error of the stream. It ends the turn.
func (e *opencodeListener) reportError(l *opencodeLine) {
	text := l.Error.Data.Message
	if text == "" {
		text = l.Error.Name
	}
	if l.Error.Name == "ProviderAuthError" {
		e.fail(swarm.Errorf(swarm.NotSignedIn, "opencode failed%s", excerpt.Said(text)).WithHint("%s", e.facts.SignIn))
		return
	}
	e.fail(e.failure(l.Error.Data.StatusCode, text))
}
