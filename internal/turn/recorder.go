package turn

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// maxNoted is how much of what a tool was told, and of what it said, is noted. A session whose name is longer is not.
const maxNoted = 2000

// An eventRecorder writes into the log while a turn runs: which tools it used, and which files it changed. Nobody waits for
// them.
type eventRecorder struct {
	runner *Runner
	work   *work
	open   []toolCall // called, and not done yet

	session string // the one that the log says it is in
}

// A toolCall is one that is not done yet.
type toolCall struct {
	swarm.ToolUse
	at time.Time
}

// observe takes what happens, from one goroutine at a time.
func (e *eventRecorder) observe(d swarm.Delta) {
	switch {
	case d.Kind == swarm.DeltaTool && d.Tool != nil:
		e.open = append(e.open, toolCall{*d.Tool, time.Now()})
	case d.Kind == swarm.DeltaToolDone && d.Tool != nil:
		e.done(*d.Tool)
	case d.Kind == swarm.DeltaSession && d.Session != "" && d.Session != e.session && len(d.Session) <= maxNoted:
		e.session = d.Session
		e.write(swarm.TurnSession, swarm.TurnInSession{Session: e.runner.clean(d.Session)})
	case d.Kind == swarm.DeltaFile && d.File != "":
		e.work.name(e.runner.workdir(e.work), d.File)
		e.write(swarm.TurnFile, swarm.FileChange{Path: e.runner.clean(d.File)})
	}
	if e.runner.Watch != nil {
		e.runner.Watch.Delta(e.work.c, e.work.start, d)
	}
}

// done notes a tool's use whole: what it was told comes with its call, what it said with its end.
func (e *eventRecorder) done(u swarm.ToolUse) {
	if i := slices.IndexFunc(e.open, func(o toolCall) bool { return o.ID == u.ID }); i >= 0 {
		called := e.open[i].since()
		e.open = slices.Delete(e.open, i, i+1)
		called.Output, called.Failed = u.Output, u.Failed
		u = called
	}
	e.note(u)
}

// since is the call with the time that it took until now.
func (c toolCall) since() swarm.ToolUse {
	c.Took = time.Since(c.at).Truncate(time.Microsecond)
	return c.ToolUse
}

// end notes the tools that were still at work when the turn ended.
func (e *eventRecorder) end() {
	for _, c := range e.open {
		e.note(c.since())
	}
	e.open = nil
}

func (e *eventRecorder) note(u swarm.ToolUse) {
	e.work.nameTool(e.runner.folder(e.work), u)
	u.ID, u.Name, u.Input = e.runner.clean(u.ID), e.runner.clean(u.Name), json.RawMessage(e.runner.clean(string(u.Input)))
	if len(u.Input) > maxNoted || len(u.Input) > 0 && !json.Valid(u.Input) {
		u.Input = swarm.Encode(excerpt.Head(string(u.Input), maxNoted))
	}
	u.Output = excerpt.Head(e.runner.clean(u.Output), maxNoted)
	e.write(swarm.TurnTool, u)
	e.nudge(u)
}

func (e *eventRecorder) write(kind swarm.EventKind, body any) {
	c := e.work.c
	// What the log does not take now, it does not take at the turn's end either, and then the process stops.
	_, _ = e.runner.Log.Append(context.Background(), swarm.Batch{Fence: c.Fence, Lazy: true,
		Events: []swarm.Event{{Kind: kind, Task: c.Task, Agent: c.Agent, Turn: swarm.TurnID(c.ID), Data: swarm.Encode(body)}}})
}
