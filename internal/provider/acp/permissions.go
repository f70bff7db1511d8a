package acp

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/provider"
	"swarm/internal/toolrule"
)

// ourServer is the name of our own MCP server in agents' configurations.
const ourServer = "swarm"

// isOurs says whether a call is one of our server's tools, which check permissions themselves.
// Agents name such tools differently: Claude Code, opencode and older codex-acp by a prefix, Gemini
// CLI by a suffix. The name of a command could be any of these, so a command is not ours.
//
// codex-acp since 1.0 reports a tool of a server as a command too. There the input decides: Codex
// itself names the server in it, and for a command it has another form.
func (x tool) isOurs() bool {
	if x.kind == "execute" {
		var in struct{ Server, Tool, ServerName string }
		if json.Unmarshal(x.input, &in) != nil {
			return false
		}
		return in.Server == ourServer && isName(in.Tool) && x.name == "mcp."+ourServer+"."+in.Tool ||
			in.ServerName == ourServer && x.name == "MCP tool call approval" // it does not know for which call
	}
	for _, before := range []string{"mcp__swarm__", "mcp.swarm.", "swarm_", "swarm/"} {
		if rest, found := strings.CutPrefix(x.name, before); found && isName(rest) {
			return true
		}
	}
	rest, found := strings.CutSuffix(x.name, " (swarm MCP Server)")
	return found && isName(rest)
}

// isName says whether a text could be the name of one of our tools. Anything else, such as a
// command after the name, is not ours.
func isName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// decidePermission answers an agent's request for a permission. It never allows anything for good,
// because the agent would write that into the user's settings.
func (t *turn) decidePermission(params json.RawMessage) (any, *rpcError) {
	var p permissionRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &rpcError{Code: codeBadParams, Message: "cannot decode the permission request: " + err.Error()}
	}
	t.mu.Lock()
	known := t.toolOf(p.Tool.ID)
	known.merge(p.Tool)
	text, files := p.Tool.contents()
	if text == "" && known.title != known.name {
		text = known.title
	}
	if isBlank(known.input) && text != "" {
		known.input, _ = json.Marshal(text)
	}
	known.files = append(known.files, files...)
	known.addPaths(files...)
	asked := *known
	asked.files, asked.paths = slices.Clone(known.files), slices.Clone(known.paths)
	t.newMessage = true
	t.mu.Unlock()
	allow, reject := p.option("allow_once"), p.option("reject_once")
	shut := t.phaseError(asked)
	err := permission.Checks{
		Phase: func() error { return shut },
		Capability: func() error {
			if allow == "" {
				return errors.New("it can only be allowed for good")
			}
			return nil
		},
		Approval: func() error {
			if t.isListed(asked) && !t.editsGuarded(asked) { // the compose file allows it
				return nil
			}
			return t.askPerson(p.Tool.ID, asked)
		},
	}.Pass()
	if t.isCut() {
		return outcome("cancelled", ""), nil
	}
	if err == nil {
		return outcome("selected", allow), nil
	}
	_, byPerson := errors.AsType[provider.PersonRefused](err)
	t.refuse(p.Tool.ID, refusal{asked.name, asked.kind, err.Error(), shut, byPerson})
	if reject == "" {
		return outcome("cancelled", ""), nil
	}
	return outcome("selected", reject), nil
}

// refuse notes a refusal. The first one becomes the error of a turn that fails for it. id is the call
// that was refused, or "".
func (t *turn) refuse(id string, r refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.tools[id]; x != nil {
		x.refused = true // not every agent says that it has ended
	}
	t.refusals = append(t.refusals, r)
}

// readOnlyKinds are the kinds of tools that change nothing.
var readOnlyKinds = []string{"read", "search", "fetch", "think"}

// phaseError says why the phase forbids a tool call. No list of tools and no person can lift that.
func (t *turn) phaseError(x tool) error {
	if t.r.Phase != swarm.PlanningPhase || x.isOurs() || slices.Contains(readOnlyKinds, x.kind) {
		return nil
	}
	if x.kind != editKind && x.kind != "delete" && x.kind != "move" || len(x.files) == 0 {
		return permission.Acting(t.r.Phase, x.name)
	}
	for _, path := range x.files {
		name, err := relativeTo(t.r.Folder(), path)
		if err != nil {
			name = path
		}
		if err := permission.Writing(t.r.Phase, filepath.ToSlash(name)); err != nil {
			return err
		}
	}
	return nil
}

// isCut says whether the turn was cut. Then no answer is waited for any more.
func (t *turn) isCut() bool { return t.ctx.Err() != nil }

// option returns the id of the option of a kind, or "".
func (p permissionRequest) option(kind string) string {
	for _, o := range p.Options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

// outcome makes the answer to a request for a permission.
func outcome(word, option string) object {
	o := object{"outcome": word}
	if option != "" {
		o["optionId"] = option
	}
	return object{"outcome": o}
}

// isListed says whether the agent's `tools` allow a call: by the program's name for the tool, or by
// the protocol's word for its kind. Our own tools need no entry.
func (t *turn) isListed(x tool) bool {
	return slices.Contains(t.r.Tools, x.name) || x.kind != "" && slices.Contains(t.r.Tools, x.kind) || x.isOurs()
}

// editsGuarded says whether a call changes a file that programs execute or obey. A list that allows
// all edits does not mean such a file, so a person decides.
func (t *turn) editsGuarded(x tool) bool {
	if x.kind != editKind && x.kind != "delete" && x.kind != "move" {
		return false
	}
	return slices.ContainsFunc(slices.Concat(x.files, x.paths), func(path string) bool { return swarm.KindOf(t.checkGuard(path)) == swarm.Denied })
}

// askPerson asks for an approval. The error says why it was refused.
func (t *turn) askPerson(id string, x tool) error {
	t.mu.Lock()
	input := provider.ShowInput(t.redactor, x.input)
	t.mu.Unlock()
	// Everything that is known of the call makes it the same.
	same := []any{x.name, x.kind, x.title, x.stableInput(id), string(x.content), slices.Sorted(slices.Values(x.paths))}
	return t.r.AskPerson(t.ctx, same, swarm.Approval{Tool: x.name, Input: input, Paths: x.paths})
}

// stableInput returns a tool's input without the fields that Codex adds, which differ each time the
// turn is begun. Only fields that repeat the id of the call are Codex's: many tools have an
// argument named id.
func (x tool) stableInput(id string) string {
	var parts map[string]json.RawMessage
	if json.Unmarshal(x.input, &parts) != nil {
		return string(x.input)
	}
	passing := false
	for _, name := range []string{"call_id", "id"} {
		var text string
		if json.Unmarshal(parts[name], &text) == nil && id != "" && text == id {
			passing = true
			delete(parts, name)
		}
	}
	if passing {
		delete(parts, "turn_id")
		delete(parts, "started_at_ms")
	}
	input, _ := json.Marshal(parts) // sorted by name
	return string(input)
}

// deniedError makes the error of a turn in which a permission was refused, or nil. gaveUp says that
// the agent has ended its turn for it. Otherwise a person's refusal does not count: the agent was
// told, and went on. Any other fails the turn whatever the agent made of it, because it is not what
// was asked for.
func (t *turn) deniedError(gaveUp bool) *swarm.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	refusals := slices.DeleteFunc(slices.Clone(t.refusals), func(r refusal) bool { return r.byPerson && !gaveUp })
	if len(refusals) == 0 {
		return nil
	}
	first := refusals[0]
	if shut, ok := errors.AsType[*swarm.Error](first.phaseErr); ok {
		return swarm.Errorf(swarm.Denied, "%s", t.redactor.String(shut.Msg)).WithHint("%s", shut.Hint)
	}
	name := first.name
	if name == "" {
		name = first.kind
	}
	var names []string
	for _, r := range refusals {
		if word := r.toolsEntry(); !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	e := swarm.Errorf(swarm.Denied, "it may not use %s", t.redactor.String(swarm.Quote(name)))
	if first.reason != "" {
		e.Msg += ": " + t.redactor.String(first.reason)
	}
	return e.WithHint("if it may, write %s", t.redactor.String(toolrule.Lines(t.r.Agent, t.r.Tools, names...)))
}

// toolsEntry returns the entry of `tools` that would allow the call: the tool's name if it is a
// plain word, else its kind.
func (r refusal) toolsEntry() string {
	if r.kind != "" && (r.name == "" || strings.ContainsAny(r.name, " `\n\"'/\\")) {
		return r.kind
	}
	return r.name
}
