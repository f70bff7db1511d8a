package coding

import (
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

// opencode is opencode. Each turn is a process; a later one continues the session by its name.
type opencode struct{}

func (opencode) facts() facts {
	return facts{
		usual: map[string]string{
			"OPENCODE_DISABLE_AUTOUPDATE": "1", // a team's programs do not change under it
			// Only its log says that it tries again, which may be for minutes.
			"OPENCODE_PRINT_LOGS": "1", "OPENCODE_LOG_LEVEL": "ERROR",
		},
		outer:  []string{"OPENCODE_PID", "OPENCODE_CLIENT", "OPENCODE_ROUTE", "OPENCODE_WORKSPACE_ID"},
		forgot: "Session not found",
	}
}

func (opencode) launch(r provider.Request, session string) launch {
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
			"timeout": 3_600_000, // one that waits for others may wait long
		}}}
	}
	return launch{args: args, over: over}
}

// permissions are what the agent may do beside what the user's own settings allow: to change files, to use our tools, and what its
// `tools` list, all of a tool or what a pattern fits: bash, bash(go test*).
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
			patterns = object{"*": "ask"} // of two that fit, the one that was written later counts, and * is written first
		}
		patterns[pattern] = "allow"
		allowed[name] = patterns
	}
	return allowed
}

// planning are the permissions in which files are written below docs/ only, and nothing is run, whatever the user's settings allow.
func planning(r provider.Request, docs string) object {
	edit := object{"*": "deny"}
	if rel, err := filepath.Rel(worktree(r.Dir), docs); err == nil {
		edit[filepath.ToSlash(rel)+"/*"] = "allow"
	}
	all := object{"*": "deny", "edit": edit}
	for _, tool := range []string{"bash", "task", "skill", "external_directory"} { // by name, where the user's settings allow it by name
		all[tool] = "deny"
	}
	if r.Folder() != r.Dir {
		all["external_directory"] = object{"*": "deny", filepath.Join(r.Folder(), "*"): "allow"}
	}
	for _, tool := range []string{"read", "glob", "grep", "list", "todoread", "todowrite"} {
		all[tool] = "allow"
	}
	for _, entry := range onlyOf(r.Tools, []string{"webfetch", "websearch"}) {
		name, _, _ := strings.Cut(entry, "(")
		all[name] = "allow"
	}
	if r.Door.URL != "" {
		all["swarm_*"] = "allow"
	}
	return all
}

// worktree is where opencode names files from: the repository that it works in, or else the root of all folders.
func worktree(dir string) string {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
	}
	return dir
}

func (opencode) say(prompt, _ string) string { return prompt }

func (opencode) signed(_ context.Context, env lookup, _ func(context.Context, ...string) (string, int)) (string, bool) {
	if env("OPENCODE_API_KEY") != "" {
		return "OPENCODE_API_KEY", true
	}
	folder := env("XDG_DATA_HOME")
	if folder == "" {
		folder = filepath.Join(env("HOME"), ".local", "share")
	}
	var logins map[string]json.RawMessage
	if text, err := os.ReadFile(filepath.Join(folder, "opencode", "auth.json")); err == nil && json.Unmarshal(text, &logins) == nil && len(logins) > 0 {
		var names []string
		for name := range logins {
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, ", "), true
	}
	return "no account: models that need none", true // it has some, and may have others by its settings
}

func (opencode) listen(t *turn) listener { return &opencodeEar{turn: t} }

// An opencodeEar hears opencode in one turn.
type opencodeEar struct {
	*turn
	newest  string       // what the agent said last
	denied  *swarm.Error // what it was not allowed, first
	sum     swarm.Usage  // of the steps so far
	failing bool         // it has failed to reach its model, and has said nothing since
}

// mutters hears the log. It waits longer after each failure, and has patience for all of them together.
func (e *opencodeEar) mutters(piece string) {
	if !e.failing && strings.Contains(piece, `message="stream error"`) {
		e.failing = true
		e.tired.Reset(e.patience)
	}
}

// An opencodeLine is one event: a part of a message, or an error.
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
		Cost   float64
		Tokens struct {
			Input, Output, Reasoning int64
			Cache                    struct{ Read, Write int64 }
		}
	}
	Error struct {
		Name string
		Data struct {
			Message    string
			StatusCode int
		}
	}
}

func (e *opencodeEar) line(line []byte) error {
	var kind struct{ Type string }
	if err := e.understand(line, &kind); err != nil || !slices.Contains(opencodeTypes, kind.Type) {
		return err
	}
	var l opencodeLine
	if err := e.understand(line, &l); err != nil {
		return err
	}
	e.failing = false
	e.continues(l.SessionID)
	switch part := &l.Part; l.Type {
	case "text":
		e.newest = part.Text
		e.paragraph()
		e.text(part.Text)
	case "reasoning":
		e.thinking(part.Text)
	case "tool_use":
		e.use(&l)
	case "step_finish":
		e.step(&l)
	case "error":
		e.wrong(&l)
	}
	return nil
}

// opencodeTypes are the types of lines that are understood; of others not even the form is known.
var opencodeTypes = []string{"step_start", "text", "reasoning", "tool_use", "step_finish", "error"}

// use is a tool that was used: it is told when it is done.
func (e *opencodeEar) use(l *opencodeLine) {
	part, state := &l.Part, &l.Part.State
	var input struct{ FilePath string }
	_ = json.Unmarshal(state.Input, &input) // it is the model's, and may be anything
	if part.Tool != "edit" && part.Tool != "write" {
		input.FilePath = ""
	}
	failed := state.Status == "error"
	e.calls(part.CallID, part.Tool, state.Input, input.FilePath)
	e.called(part.CallID, state.Output+state.Error, failed)
	if failed && e.denied == nil && (strings.Contains(state.Error, "rejected permission") || strings.Contains(state.Error, "prevents you from using")) {
		e.denied = e.refused(part.Tool, string(state.Input), part.Tool)
	}
}

// step is the end of one question to the model, and of what the model wanted done. The last one ends the turn; after a refusal there
// is no other.
func (e *opencodeEar) step(l *opencodeLine) {
	k := l.Part.Tokens
	e.sum = e.sum.Plus(swarm.Usage{InputTokens: k.Input + k.Cache.Read + k.Cache.Write, OutputTokens: k.Output + k.Reasoning, CachedTokens: k.Cache.Read, USD: l.Part.Cost})
	e.spent(e.sum)
	switch reason := l.Part.Reason; {
	case e.denied != nil:
		e.answered(e.newest)
		e.fail(e.denied)
	case reason == "length":
		e.fail(swarm.Errorf(swarm.NoResult, "opencode's model has no more tokens for its answer").WithHint("ask for less at once, or choose another model"))
	case reason == "content-filter":
		e.fail(swarm.Errorf(swarm.NoResult, "opencode's model refused to answer").WithHint("ask for it in other words, or ask another model"))
	case reason != "tool-calls":
		e.finish(e.newest)
	}
}

func (e *opencodeEar) wrong(l *opencodeLine) {
	text := l.Error.Data.Message
	if text == "" {
		text = l.Error.Name
	}
	if l.Error.Name == "ProviderAuthError" {
		e.fail(swarm.Errorf(swarm.NotSignedIn, "opencode failed%s", excerpt.Said(text)).WithHint("%s", e.facts.SignIn))
		return
	}
	e.fail(e.blamed(l.Error.Data.StatusCode, text))
}
