package acp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

const (
	maxTitle = 2000   // bytes of a tool's name and title
	maxPaths = 100    // of one tool that are told
	maxTools = 10_000 // tools in use at once, and files changed in a turn, that are remembered
)

// A turn is one turn on its way: what the agent has said and done so far.
type turn struct {
	ctx context.Context
	r   provider.Request

	mu       sync.Mutex // whoever looks is told by one at a time, and nothing after the end
	live     func(swarm.Delta)
	hide     *secret.Redactor
	streams  map[swarm.DeltaKind]*secret.Stream
	session  string // the one that is listened to; "" = none yet: what is told is of earlier turns
	output   process.Tail
	message  string // the id of the message that is being said
	fresh    bool   // what is said next is another message
	tools    map[string]*tool
	used     int // tools
	files    map[string]bool
	usage    swarm.Usage
	spent    float64 // what the session had cost before; less than 0 = not known
	cost     float64 // what it has cost since it began
	refusals []refusal
}

// A tool is one that the agent uses.
type tool struct {
	name, kind string
	input      json.RawMessage
	output     string
	files      []string // that it changes
	paths      []string // all that it is about
	title      string   // what it was called last
	content    json.RawMessage
	shown      bool
}

// A refusal is what the agent was not allowed to do.
type refusal struct {
	name, kind, reason string
	shut               error // it is the phase that forbids it
}

func newTurn(ctx context.Context, r provider.Request, live func(swarm.Delta)) *turn {
	return &turn{ctx: ctx, r: r, live: live, streams: map[swarm.DeltaKind]*secret.Stream{}, tools: map[string]*tool{}, files: map[string]bool{}}
}

// close makes sure that nobody is told anything any more.
func (t *turn) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = nil
}

// hides says what nobody may see.
func (t *turn) hides(secrets *secret.Redactor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hide = secrets
}

// tell tells whoever looks.
func (t *turn) tell(d swarm.Delta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.show(d)
}

func (t *turn) show(d swarm.Delta) {
	if t.live == nil {
		return
	}
	if d.Text != "" {
		if t.streams[d.Kind] == nil {
			t.streams[d.Kind] = t.hide.Stream()
		}
		if d.Text = t.streams[d.Kind].Write(d.Text); d.Text == "" {
			return
		}
	}
	t.live(d)
}

// flush shows what was held back because it might have been the beginning of a secret.
func (t *turn) flush() {
	for kind, s := range t.streams {
		if rest := s.Flush(); rest != "" && t.live != nil {
			t.live(swarm.Delta{Kind: kind, Text: rest})
		}
	}
}

// listen makes what happens in the session from now on a part of the turn.
func (t *turn) listen(session string, spent float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.spent, t.cost = session, spent, spent
}

func (t *turn) hear(session string, u update) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == "" || session != t.session {
		return
	}
	switch u.Kind {
	case "agent_message_chunk":
		t.say(u.Message, textOf(u.Content))
	case "agent_thought_chunk":
		if text := textOf(u.Content); text != "" {
			t.show(swarm.Delta{Kind: swarm.DeltaThinking, Text: text})
		}
	case "tool_call", "tool_call_update":
		t.use(u)
	case "usage_update":
		if u.Cost != nil && strings.EqualFold(u.Cost.Currency, "USD") {
			t.cost = u.Cost.Amount
			t.count()
			t.show(swarm.Delta{Kind: swarm.DeltaUsage, Usage: t.usage})
		}
	}
}

// say is a piece of a message. What counts is the last one: what was said before a tool was used was said on the way.
func (t *turn) say(message, text string) {
	if text == "" {
		return
	}
	if t.fresh || message != "" && t.message != "" && message != t.message {
		if t.output.Len() > 0 {
			t.show(swarm.Delta{Kind: swarm.DeltaText, Text: "\n"})
		}
		t.output, t.fresh = process.Tail{}, false
	}
	t.message = message
	_, _ = t.output.Write([]byte(text))
	t.show(swarm.Delta{Kind: swarm.DeltaText, Text: text})
}

// use takes what is told of a tool. Its beginning is shown when it is known what it was given, and its end when it has one.
func (t *turn) use(u update) {
	if u.ID == "" {
		return
	}
	if u.Kind == "tool_call" {
		t.fresh = true
	}
	x := t.find(u.ID)
	x.learn(u.toolCall)
	text, files := u.made()
	x.files = append(x.files, files...)
	x.about(files...)
	if text == "" {
		text = plain(u.Output)
	}
	if text != "" {
		x.output = provider.ShowText(t.hide, text)
	}
	over := u.Status == "completed" || u.Status == "failed"
	if !x.shown && (over || u.Status == "in_progress" || u.Kind == "tool_call_update" && !blank(x.input)) {
		x.shown = true
		t.show(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: u.ID, Name: x.name, Input: provider.ShowInput(t.hide, x.input)}})
	}
	if !over {
		return
	}
	t.fresh = true
	t.done(u.ID, x, u.Status == "failed")
}

// find is what is known of a tool. Of more than are remembered nothing is.
func (t *turn) find(id string) *tool {
	x := t.tools[id]
	if x == nil {
		x = &tool{}
		if t.used++; len(t.tools) < maxTools {
			t.tools[id] = x
		}
	}
	return x
}

// done shows the end of a tool.
func (t *turn) done(id string, x *tool, failed bool) {
	delete(t.tools, id)
	t.show(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: id, Name: x.name, Output: x.output, Failed: failed}})
	if !failed {
		for _, path := range x.files {
			t.changed(path)
		}
	}
}

// learn takes over what is told of a tool now.
func (x *tool) learn(c toolCall) {
	switch {
	case c.Meta.Claude.Tool != "":
		x.name = c.Meta.Claude.Tool
	case x.name == "": // what it is called later tells what it is doing
		x.name = excerpt.Head(strings.TrimPrefix(c.Title, "Tool: "), maxTitle)
	}
	if c.Title != "" {
		x.title = excerpt.Head(c.Title, maxTitle)
	}
	if c.Kind != "" {
		x.kind = c.Kind
	}
	if !blank(c.Content) {
		x.content = slices.Clone(c.Content)
	}
	if !blank(c.Input) {
		x.input = slices.Clone(c.Input)
	}
	for _, l := range c.Locations {
		x.about(l.Path)
		if x.kind == "edit" || x.kind == "delete" || x.kind == "move" {
			x.files = append(x.files, l.Path)
		}
	}
}

// about notes a file or a folder that a tool is about.
func (x *tool) about(paths ...string) {
	for _, path := range paths {
		if path != "" && !slices.Contains(x.paths, path) && len(x.paths) < maxPaths {
			x.paths = append(x.paths, path)
		}
	}
}

// changed tells of a file, once.
func (t *turn) changed(path string) {
	if path == "" || t.files[path] || len(t.files) == maxTools {
		return
	}
	t.files[path] = true
	t.show(swarm.Delta{Kind: swarm.DeltaFile, File: path})
}

// count is what the turn has cost of what the session has.
func (t *turn) count() {
	if t.spent >= 0 && t.cost > t.spent {
		t.usage.USD = t.cost - t.spent
	}
}

// ended takes what the agent says of the whole turn, and returns what its session has cost by now.
func (t *turn) ended(end ending) (spent float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := end.Usage; u != nil {
		t.usage.InputTokens, t.usage.OutputTokens, t.usage.CachedTokens = u.Input+u.Read+u.Wrote, u.Output+u.Thought, u.Read
	} else if q := end.Meta.Quota.Tokens; q.Input+q.Output > 0 {
		t.usage.InputTokens, t.usage.OutputTokens = q.Input, q.Output
	}
	t.count()
	t.flush()
	for _, id := range slices.Sorted(maps.Keys(t.tools)) { // those that were refused, mostly
		if x := t.tools[id]; x.shown {
			t.done(id, x, true)
		}
	}
	if t.usage != (swarm.Usage{}) {
		t.show(swarm.Delta{Kind: swarm.DeltaUsage, Usage: t.usage})
	}
	t.session = ""
	return t.cost
}

// reply is what is known of the turn.
func (t *turn) reply(g *guest) provider.Reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	reply := provider.Reply{Output: t.hide.Bytes(t.output.Bytes()), Bytes: t.output.Len(), Usage: t.usage, Session: g.session.ID}
	select {
	case <-g.ended:
		reply.Exit, reply.Stderr = process.ExitCode(g.how), t.hide.Bytes(g.proc.Stderr().Bytes())
	default: // it goes on, and may be writing
	}
	return reply
}

// blank says that a tool's input tells nothing.
func blank(input json.RawMessage) bool {
	return len(input) == 0 || string(input) == "null" || string(input) == "{}"
}

// plain is the text in a tool's raw output, or all of it.
func plain(output json.RawMessage) string {
	var text string
	if len(output) == 0 || string(output) == "null" || json.Unmarshal(output, &text) == nil {
		return text
	}
	var codex struct {
		Text *string `json:"formatted_output"`
	}
	if json.Unmarshal(output, &codex) == nil && codex.Text != nil {
		return *codex.Text
	}
	return string(output)
}
