package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/provider"
)

// ourServer is what agents know our own MCP server by.
const ourServer = "swarm"

// isOurs says whether a tool is one of our server, by how agents name them: Claude's, opencode's and Codex's way, and Gemini's.
func isOurs(name string) bool {
	for _, before := range []string{"mcp__swarm__", "swarm_", "swarm/"} {
		if rest, found := strings.CutPrefix(name, before); found && isName(rest) {
			return true
		}
	}
	rest, found := strings.CutSuffix(name, " (swarm MCP Server)")
	return found && isName(rest)
}

func isName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// permit answers whether the agent may do something. It is never allowed for good: an agent would write that into the user's
// settings.
func (t *turn) permit(params json.RawMessage) (any, *complaint) {
	var p permissionRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &complaint{Code: codeBadParams, Message: "a permission that nobody can read: " + err.Error()}
	}
	t.mu.Lock()
	known := t.find(p.Tool.ID)
	known.learn(p.Tool)
	text, files := p.Tool.made()
	if text == "" && known.title != known.name {
		text = known.title
	}
	if blank(known.input) && text != "" {
		known.input, _ = json.Marshal(text)
	}
	known.files = append(known.files, files...)
	known.about(files...)
	asked := *known
	asked.files, asked.paths = slices.Clone(known.files), slices.Clone(known.paths)
	t.fresh = true
	t.mu.Unlock()
	allow, reject := p.option("allow_once"), p.option("reject_once")
	shut := t.forbids(asked)
	err := permission.Checks{
		Phase: func() error { return shut },
		Capability: func() error {
			if allow == "" {
				return errors.New("it can only be allowed for good")
			}
			return nil
		},
		Approval: func() error {
			if t.may(asked) { // the file has allowed it
				return nil
			}
			return t.consult(p.Tool.ID, asked)
		},
	}.Pass()
	if t.isCut() {
		return outcome("cancelled", ""), nil
	}
	if err == nil {
		return outcome("selected", allow), nil
	}
	t.refuse(refusal{asked.name, asked.kind, err.Error(), shut})
	if reject == "" {
		return outcome("cancelled", ""), nil
	}
	return outcome("selected", reject), nil
}

func (t *turn) refuse(r refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusals = append(t.refusals, r)
}

// harmless are the kinds of tools that change nothing.
var harmless = []string{"read", "search", "fetch", "think"}

// forbids says why the phase does not let the agent do it, whoever would allow it.
func (t *turn) forbids(x tool) error {
	if t.r.Phase != swarm.PlanningPhase || isOurs(x.name) && x.kind != "execute" || slices.Contains(harmless, x.kind) {
		return nil
	}
	if x.kind != "edit" && x.kind != "delete" && x.kind != "move" || len(x.files) == 0 {
		return permission.Acting(t.r.Phase, x.name)
	}
	for _, path := range x.files {
		name, err := inside(t.r.Folder(), path)
		if err != nil {
			name = path
		}
		if err := permission.Writing(t.r.Phase, filepath.ToSlash(name)); err != nil {
			return err
		}
	}
	return nil
}

// isCut says that nobody waits for the turn any more.
func (t *turn) isCut() bool { return t.ctx.Err() != nil }

func (p permissionRequest) option(kind string) string {
	for _, o := range p.Options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

func outcome(word, option string) object {
	o := object{"outcome": word}
	if option != "" {
		o["optionId"] = option
	}
	return object{"outcome": o}
}

// may says whether the agent's `tools` allow it: by the program's own name for the tool, or by the protocol's word for its kind. Our
// own tools look after themselves.
func (t *turn) may(x tool) bool {
	if slices.Contains(t.r.Tools, x.name) || x.kind != "" && slices.Contains(t.r.Tools, x.kind) {
		return true
	}
	return isOurs(x.name) && x.kind != "execute"
}

// consult asks a person, and says why not.
func (t *turn) consult(id string, x tool) error {
	if t.r.Ask == nil {
		return errors.New("nobody can be asked")
	}
	t.mu.Lock()
	input := provider.ShowInput(t.hide, x.input)
	t.mu.Unlock()
	ok, reason, err := t.r.Ask(t.ctx, swarm.Approval{ID: t.r.Turn + "/" + x.fingerprint(id), What: "use " + x.name, Tool: x.name, Input: input, Paths: x.paths})
	if err == nil && !ok {
		err = errors.New(reason)
	}
	return err
}

// fingerprint is the same for the same thing that is asked, so that its answer outlives a crash: whatever is told of it counts.
func (x tool) fingerprint(id string) string {
	text, _ := json.Marshal([]any{x.name, x.kind, x.title, x.lasting(id), string(x.content), slices.Sorted(slices.Values(x.paths))})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// lasting is a tool's input without what Codex puts into it beside it, which is another thing each time the turn is begun. It is Codex's
// when it names the use of the tool itself: many tools have an argument that is called id.
func (x tool) lasting(id string) string {
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
	input, _ := json.Marshal(parts) // in the order of the names
	return string(input)
}

// denied is the error of a turn in which something was refused: whatever the agent made of it, it is not what was asked for.
func (t *turn) denied() *swarm.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.refusals) == 0 {
		return nil
	}
	first := t.refusals[0]
	if shut, ok := errors.AsType[*swarm.Error](first.shut); ok {
		return swarm.Errorf(swarm.Denied, "%s", t.hide.String(shut.Msg)).WithHint("%s", shut.Hint)
	}
	name := first.name
	if name == "" {
		name = first.kind
	}
	var names []string
	for _, r := range t.refusals {
		if word := r.word(); !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	e := swarm.Errorf(swarm.Denied, "it may not use %s", t.hide.String(swarm.Quote(name)))
	if first.reason != "" {
		e.Msg += ": " + t.hide.String(first.reason)
	}
	return e.WithHint("if it should, add to the agent: tools: [%s]", t.hide.String(strings.Join(names, ", ")))
}

// word is what allows it when it stands in `tools`: the tool's name if it is one, else its kind.
func (r refusal) word() string {
	if r.kind != "" && (r.name == "" || strings.ContainsAny(r.name, " `\n\"'/\\")) {
		return r.kind
	}
	return r.name
}
