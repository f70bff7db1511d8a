package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"swarm"
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
	var p permission
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &complaint{Code: codeBadParams, Message: "a permission that nobody can read: " + err.Error()}
	}
	t.mu.Lock()
	known := t.find(p.Tool.ID)
	known.learn(p.Tool)
	if text, _ := p.Tool.made(); blank(known.input) && text != "" {
		known.input, _ = json.Marshal(text)
	}
	asked := *known
	t.fresh = true
	t.mu.Unlock()
	allow, reject := p.option("allow_once"), p.option("reject_once")
	ok, reason := t.may(asked), ""
	switch {
	case allow == "":
		ok, reason = false, "it can only be allowed for good"
	case !ok:
		ok, reason = t.consult(asked)
	}
	if t.isCut() {
		return outcome("cancelled", ""), nil
	}
	if ok {
		return outcome("selected", allow), nil
	}
	t.mu.Lock()
	t.refusals = append(t.refusals, refusal{asked.name, asked.kind, reason})
	t.mu.Unlock()
	if reject == "" {
		return outcome("cancelled", ""), nil
	}
	return outcome("selected", reject), nil
}

// isCut says that nobody waits for the turn any more.
func (t *turn) isCut() bool { return t.ctx.Err() != nil }

func (p permission) option(kind string) string {
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

// consult asks a person.
func (t *turn) consult(x tool) (ok bool, reason string) {
	if t.r.Ask == nil {
		return false, "nobody can be asked"
	}
	t.mu.Lock()
	input := t.shownInput(x.input)
	t.mu.Unlock()
	ok, reason, err := t.r.Ask(t.ctx, swarm.Approval{ID: t.r.Turn + "/" + x.fingerprint(), What: "use " + x.name, Tool: x.name, Input: input})
	if err != nil {
		return false, err.Error()
	}
	return ok, reason
}

// passing are what Codex puts into a tool's input beside it: another attempt of the turn has others.
var passing = []string{"call_id", "turn_id", "started_at_ms", "id"}

// fingerprint is the same for the same thing that is asked, so that its answer outlives a crash.
func (x tool) fingerprint() string {
	input := x.input
	var parts map[string]json.RawMessage
	if json.Unmarshal(input, &parts) == nil {
		for _, name := range passing {
			delete(parts, name)
		}
		input, _ = json.Marshal(parts) // in the order of the names
	}
	sum := sha256.Sum256([]byte(x.name + "\x00" + x.kind + "\x00" + string(input)))
	return hex.EncodeToString(sum[:8])
}

// denied is the error of a turn in which something was refused: whatever the agent made of it, it is not what was asked for.
func (t *turn) denied() *swarm.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.refusals) == 0 {
		return nil
	}
	first := t.refusals[0]
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
