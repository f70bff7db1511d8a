package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/permission"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

const (
	maxTitle = 2000   // bytes of a tool's name and title
	maxPaths = 100    // paths of one tool call that are kept
	maxTools = 10_000 // running tool calls, and changed files of a turn, that are kept
)

// A turn is the state of one turn: what the agent has said and done so far. Several goroutines
// report to it, so mu guards everything below it. Deltas are sent under mu: observers get them one
// at a time, and none after close.
type turn struct {
	ctx context.Context
	r   provider.Request

	hidden []string         // as its host has them
	guard  permission.Guard // the same

	mu          sync.Mutex
	live        func(swarm.Delta)
	redactor    *secret.Redactor
	streams     map[swarm.DeltaKind]*secret.Stream
	session     string // the session whose updates count; "" while updates may still repeat earlier turns
	output      process.Tail
	message     string // the id of the message that is being streamed
	newMessage  bool   // the next text begins another message
	tools       map[string]*tool
	toolCount   int // tool calls so far
	files       map[string]bool
	usage       swarm.Usage
	costBefore  float64 // of the session before this turn; -1 = unknown
	sessionCost float64 // of the session now
	refusals    []refusal
	heard       time.Time // when the agent has last said or asked something
	serving     int       // requests of the agent that are being answered
}

// A tool is a tool call of the agent.
type tool struct {
	name, kind string
	input      json.RawMessage
	output     string
	files      []string // that it changes
	paths      []string // all that it concerns
	title      string   // its last title
	content    json.RawMessage
	shown      bool
	refused    bool
}

// A refusal is a permission that was refused.
type refusal struct {
	name, kind, reason string
	phaseErr           error // set if the phase forbids it
	byPerson           bool
}

// newTurn makes the state of a turn. It follows no session yet.
func newTurn(ctx context.Context, r provider.Request, live func(swarm.Delta)) *turn {
	return &turn{
		ctx:     ctx,
		r:       r,
		live:    live,
		streams: map[swarm.DeltaKind]*secret.Stream{},
		tools:   map[string]*tool{},
		files:   map[string]bool{},
		heard:   time.Now(),
	}
}

// close ends the deltas of the turn.
func (t *turn) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = nil
}

// setRedactor sets the secrets that no observer may see.
func (t *turn) setRedactor(secrets *secret.Redactor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.redactor = secrets
}

// publish sends a delta to all observers.
func (t *turn) publish(d swarm.Delta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.show(d)
}

// show sends a delta to the observers, without secrets. The caller holds mu.
func (t *turn) show(d swarm.Delta) {
	if t.live == nil {
		return
	}
	if d.Text != "" {
		if t.streams[d.Kind] == nil {
			t.streams[d.Kind] = t.redactor.Stream()
		}
		if d.Text = t.streams[d.Kind].Write(d.Text); d.Text == "" {
			return
		}
	}
	t.live(d)
}

// flush sends the text that was held back because it might have been the beginning of a secret.
func (t *turn) flush() {
	for kind, s := range t.streams {
		if rest := s.Flush(); rest != "" && t.live != nil {
			t.live(swarm.Delta{Kind: kind, Text: rest})
		}
	}
}

// followSession makes what happens in the session from now on a part of the turn. cost is what the
// session has cost before.
func (t *turn) followSession(session string, spent float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.costBefore, t.sessionCost, t.heard = session, spent, spent, time.Now()
}

// spent returns what the session has cost by now.
func (t *turn) spent() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessionCost
}

// serve notes that a request of the agent is being answered, until the returned function is called.
func (t *turn) serve() (done func()) {
	count := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.serving += n
		t.heard = time.Now()
	}
	count(1)
	return func() { count(-1) }
}

// patienceLeft returns how long the agent may still say nothing. While it uses a tool, or waits for
// an answer of ours, its model has no reason to speak, and that time does not count.
func (t *turn) patienceLeft(now time.Time, limit time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.tools {
		if !x.refused {
			return limit
		}
	}
	if t.serving > 0 {
		return limit
	}
	return limit - now.Sub(t.heard)
}

// handleUpdate takes an update of the session. Updates of other sessions, and those that repeat a
// loaded session, are dropped.
func (t *turn) handleUpdate(session string, u update) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == "" || session != t.session {
		return
	}
	t.heard = time.Now()
	switch u.Kind {
	case "agent_message_chunk":
		t.addText(u.Message, textOf(u.Content))
	case "agent_thought_chunk":
		if text := textOf(u.Content); text != "" {
			t.show(swarm.Delta{Kind: swarm.DeltaThinking, Text: text})
		}
	case "tool_call", "tool_call_update":
		t.updateTool(u)
	case "usage_update":
		if c := u.Cost; c.Given && strings.EqualFold(c.Value.Currency, "USD") {
			f := provider.Figures{Unusable: c.Unusable}
			if amount := f.Dollars(c.Value.Amount); !f.Unusable {
				t.sessionCost = amount
			}
			t.usage.Estimated = t.usage.Estimated || f.Unusable
			t.updateCost()
			t.show(swarm.Delta{Kind: swarm.DeltaUsage, Usage: t.usage})
		}
	}
}

// addText adds a piece of a message. The output is the last message only: text before a tool call
// was said on the way.
func (t *turn) addText(message, text string) {
	if text == "" {
		return
	}
	if t.newMessage || message != "" && t.message != "" && message != t.message {
		if t.output.Len() > 0 {
			t.show(swarm.Delta{Kind: swarm.DeltaText, Text: "\n"})
		}
		t.output, t.newMessage = process.Tail{}, false
	}
	t.message = message
	_, _ = t.output.Write([]byte(text))
	t.show(swarm.Delta{Kind: swarm.DeltaText, Text: text})
}

// updateTool takes news about a tool call. Its beginning is shown when its input is known, and its
// end when it has ended.
func (t *turn) updateTool(u update) {
	if u.ID == "" {
		return
	}
	if u.Kind == "tool_call" {
		t.newMessage = true
	}
	x := t.toolOf(u.ID)
	x.merge(u.toolCall)
	text, files := u.contents()
	x.files = append(x.files, files...)
	x.addPaths(files...)
	if text == "" {
		text = outputText(u.Output)
	}
	if text != "" {
		x.output = provider.ShowText(t.redactor, text)
	}
	over := u.Status == "completed" || u.Status == "failed"
	if !x.shown && (over || u.Status == "in_progress" || u.Kind == "tool_call_update" && !isBlank(x.input)) {
		x.shown = true
		t.show(swarm.Delta{
			Kind: swarm.DeltaTool,
			Tool: &swarm.ToolUse{ID: u.ID, Name: x.name, Input: provider.ShowInput(t.redactor, x.input)},
		})
	}
	if !over {
		return
	}
	t.newMessage = true
	t.endTool(u.ID, x, u.Status == "failed")
}

// toolOf returns what is known of a tool call. Beyond maxTools calls nothing is remembered.
func (t *turn) toolOf(id string) *tool {
	x := t.tools[id]
	if x == nil {
		x = &tool{}
		if t.toolCount++; len(t.tools) < maxTools {
			t.tools[id] = x
		}
	}
	return x
}

// endTool shows the end of a tool call.
func (t *turn) endTool(id string, x *tool, failed bool) {
	delete(t.tools, id)
	t.show(swarm.Delta{
		Kind: swarm.DeltaToolDone,
		Tool: &swarm.ToolUse{ID: id, Name: x.name, Output: x.output, Failed: failed},
	})
	if !failed {
		for _, path := range x.files {
			t.reportFile(path)
		}
	}
}

// merge takes over what a message says about the call.
func (x *tool) merge(c toolCall) {
	switch {
	case c.Meta.Claude.Tool != "" || c.Meta.Tool != "":
		x.name = excerpt.Head(cmp.Or(c.Meta.Claude.Tool, c.Meta.Tool), maxTitle)
	case x.name == "": // later titles say what the tool is doing
		x.name = excerpt.Head(strings.TrimPrefix(c.Title, "Tool: "), maxTitle)
	}
	if c.Title != "" {
		x.title = excerpt.Head(c.Title, maxTitle)
	}
	if c.Kind != "" {
		x.kind = c.Kind
	}
	if !isBlank(c.Content) {
		x.content = slices.Clone(c.Content)
	}
	if !isBlank(c.Input) {
		x.input = slices.Clone(c.Input)
	}
	for _, l := range c.Locations {
		x.addPaths(l.Path)
		if x.kind == "edit" || x.kind == "delete" || x.kind == "move" {
			x.files = append(x.files, l.Path)
		}
	}
}

// addPaths notes files and folders that the call concerns.
func (x *tool) addPaths(paths ...string) {
	for _, path := range paths {
		if path != "" && !slices.Contains(x.paths, path) && len(x.paths) < maxPaths {
			x.paths = append(x.paths, path)
		}
	}
}

// reportFile reports a changed file, once.
func (t *turn) reportFile(path string) {
	if path == "" || t.files[path] || len(t.files) == maxTools {
		return
	}
	t.files[path] = true
	t.show(swarm.Delta{Kind: swarm.DeltaFile, File: path})
}

// updateCost computes the turn's cost from the session's.
func (t *turn) updateCost() {
	if t.costBefore >= 0 && t.sessionCost > t.costBefore {
		t.usage.USD = t.sessionCost - t.costBefore
	}
}

// finish takes the agent's account of the whole turn, and returns what the session has cost by now.
func (t *turn) finish(end promptResult) (spent float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := provider.Figures{Unusable: t.usage.Estimated}
	if u := end.Usage.Value; end.Usage.Given {
		f.Unusable = f.Unusable || end.Usage.Unusable
		in, cached := f.Count(u.Input, u.Read, u.Wrote), f.Count(u.Read)
		out := f.CountOutput(in, u.Output, u.Thought, u.Total)
		t.usage = f.Usage(in, out, cached, t.usage.USD)
	} else if q := end.Meta.Value.Quota.Tokens; end.Meta.Given {
		f.Unusable = f.Unusable || end.Meta.Unusable
		in, out := f.Count(q.Input), f.Count(q.Output)
		t.usage = f.Usage(in, out, 0, t.usage.USD)
	}
	t.updateCost()
	t.flush()
	for _, id := range slices.Sorted(maps.Keys(t.tools)) { // mostly calls that were refused
		if x := t.tools[id]; x.shown {
			t.endTool(id, x, true)
		}
	}
	if t.usage != (swarm.Usage{}) {
		t.show(swarm.Delta{Kind: swarm.DeltaUsage, Usage: t.usage})
	}
	t.session = ""
	return t.sessionCost
}

// reply makes the reply of the turn.
func (t *turn) reply(p *agentProgram) provider.Reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	reply := provider.Reply{
		Output:  t.redactor.Bytes(t.output.Bytes()),
		Bytes:   t.output.Len(),
		Usage:   t.usage,
		Session: p.session.ID,
	}
	select {
	case <-p.done:
		reply.Exit, reply.Stderr = process.ExitCode(p.status), t.redactor.Bytes(p.proc.Stderr().Bytes())
	default: // still running, and it may be writing to stderr
	}
	return reply
}

// isBlank says whether a tool's input is empty.
func isBlank(input json.RawMessage) bool {
	return len(input) == 0 || string(input) == "null" || string(input) == "{}"
}

// outputText returns the text in a tool's raw output, or all of it.
func outputText(output json.RawMessage) string {
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
