package turn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/excerpt"
)

// maxNoted limits how much of a tool's input and output is recorded. A session with a longer name
// is not recorded.
const maxNoted = 2000

// An eventRecorder appends events while a turn runs: the tools it used and the files it changed.
// The events are lazy: the turn does not wait until they are on disk.
type eventRecorder struct {
	runner *Runner
	work   *work
	open   []toolCall // calls without a result yet

	session string // the session that the log has for this turn
}

// A toolCall is a call without a result yet.
type toolCall struct {
	swarm.ToolUse
	at time.Time
}

// observe handles one delta. The provider calls it from one goroutine at a time, so the recorder
// needs no mutex.
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
		e.work.recordFile(e.runner.workdir(e.work), d.File)
		e.write(swarm.TurnFile, swarm.FileChange{Path: e.runner.clean(d.File)})
	}
	if e.runner.Watch != nil {
		e.runner.Watch.Delta(e.work.c, e.work.start, d)
	}
}

// done records a finished tool call. Its input comes with the call, its output with the result.
func (e *eventRecorder) done(u swarm.ToolUse) {
	if i := slices.IndexFunc(e.open, func(o toolCall) bool { return o.ID == u.ID }); i >= 0 {
		called := e.open[i].since()
		e.open = slices.Delete(e.open, i, i+1)
		called.Output, called.Failed = u.Output, u.Failed
		u = called
	}
	e.note(u)
}

// since returns the call with its duration until now.
func (c toolCall) since() swarm.ToolUse {
	c.Took = time.Since(c.at).Truncate(time.Microsecond)
	return c.ToolUse
}

// end records the calls that have no result when the turn ends.
func (e *eventRecorder) end() {
	for _, c := range e.open {
		e.note(c.since())
	}
	e.open = nil
}

func (e *eventRecorder) note(u swarm.ToolUse) {
	e.work.recordToolFiles(e.runner.folder(e.work), u)
	e.work.ownTools = e.work.ownTools || !agentapi.Coordinates(u.Name[strings.LastIndex(u.Name, "__")+1:])
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
	// The error may be dropped: a log that refuses this event also refuses the turn's end, and then
	// the process stops.
	_, _ = e.runner.Log.Append(context.Background(), swarm.Batch{Fence: c.Fence, Lazy: true,
		Events: []swarm.Event{{Kind: kind, Task: c.Task, Agent: c.Agent, Turn: swarm.TurnID(c.ID), Data: swarm.Encode(body)}}})
}
