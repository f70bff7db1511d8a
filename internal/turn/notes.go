package turn

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"swarm/internal/excerpt"

	"swarm"
)

// maxNoted is how much of what a tool was told, and of what it said, is noted. A session whose name is longer is not.
const maxNoted = 2000

// notes are what is written into the log while a turn runs: which tools it used, and which files it changed. Nobody waits for
// them.
type notes struct {
	hand *Hand
	work *work
	open []toolCall // called, and not done yet

	session string // the one that the log says it is in
}

// A toolCall is one that is not done yet.
type toolCall struct {
	swarm.ToolUse
	at time.Time
}

// take takes what happens, from one goroutine at a time.
func (n *notes) take(d swarm.Delta) {
	switch {
	case d.Kind == swarm.DeltaTool && d.Tool != nil:
		n.open = append(n.open, toolCall{*d.Tool, time.Now()})
	case d.Kind == swarm.DeltaToolDone && d.Tool != nil:
		n.done(*d.Tool)
	case d.Kind == swarm.DeltaSession && d.Session != "" && d.Session != n.session && len(d.Session) <= maxNoted:
		n.session = d.Session
		n.write(swarm.TurnSession, swarm.TurnInSession{Session: n.hand.clean(d.Session)})
	case d.Kind == swarm.DeltaFile && d.File != "":
		n.work.name(n.hand.workdir(n.work), d.File)
		n.write(swarm.TurnFile, swarm.FileChange{Path: n.hand.clean(d.File)})
	}
	if n.hand.Watch != nil {
		n.hand.Watch.Delta(n.work.c, n.work.start, d)
	}
}

// done notes a tool's use whole: what it was told comes with its call, what it said with its end.
func (n *notes) done(u swarm.ToolUse) {
	if i := slices.IndexFunc(n.open, func(o toolCall) bool { return o.ID == u.ID }); i >= 0 {
		called := n.open[i].since()
		n.open = slices.Delete(n.open, i, i+1)
		called.Output, called.Failed = u.Output, u.Failed
		u = called
	}
	n.note(u)
}

// since is the call with the time that it took until now.
func (c toolCall) since() swarm.ToolUse {
	c.Took = time.Since(c.at).Truncate(time.Microsecond)
	return c.ToolUse
}

// end notes the tools that were still at work when the turn ended.
func (n *notes) end() {
	for _, c := range n.open {
		n.note(c.since())
	}
	n.open = nil
}

func (n *notes) note(u swarm.ToolUse) {
	n.work.nameTool(n.hand.folder(n.work), u)
	u.ID, u.Name, u.Input = n.hand.clean(u.ID), n.hand.clean(u.Name), json.RawMessage(n.hand.clean(string(u.Input)))
	if len(u.Input) > maxNoted || len(u.Input) > 0 && !json.Valid(u.Input) {
		u.Input = swarm.Encode(excerpt.Head(string(u.Input), maxNoted))
	}
	u.Output = excerpt.Head(n.hand.clean(u.Output), maxNoted)
	n.write(swarm.TurnTool, u)
	n.nudge(u)
}

func (n *notes) write(kind swarm.EventKind, body any) {
	c := n.work.c
	// What the log does not take now, it does not take at the turn's end either, and then the process stops.
	_, _ = n.hand.Log.Append(context.Background(), swarm.Batch{Fence: c.Fence, Lazy: true,
		Events: []swarm.Event{{Kind: kind, Task: c.Task, Agent: c.Agent, Turn: c.ID, Data: swarm.Encode(body)}}})
}
