package provider

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/process"
)

// Check reports that a script is always there.
func (s *Script) Check(context.Context) Health { return Health{Found: true} }

// Turn plays the turn's entry. Entries for its task come before those for its agent, and entries
// for its iteration before those for any. Of several entries for one iteration, the n-th attempt
// takes the n-th. Of several for any, the first is for the first iteration and attempt, and each
// further iteration or attempt takes the next. The last one serves the rest.
//
// In an entry, sleep comes first, then the calls, then the text. {prompt} in the text is the turn's
// prompt.
func (s *Script) Turn(ctx context.Context, r Request, live func(swarm.Delta)) (Reply, error) {
	if live == nil {
		live = func(swarm.Delta) {}
	}
	e, err := s.find(r)
	if err != nil {
		return Reply{}, err
	}
	if err := sleep(ctx, e.sleep); err != nil {
		return Reply{}, err
	}
	for i, c := range e.calls {
		c.do(ctx, r, "call-"+strconv.Itoa(i+1), live)
		if ctx.Err() != nil {
			return Reply{}, swarm.CutError(ctx)
		}
	}
	var said process.Tail
	for piece := range strings.SplitAfterSeq(strings.ReplaceAll(e.say, promptHere, r.Prompt), "\n") {
		if piece == "" {
			continue
		}
		_, _ = said.Write([]byte(piece))
		live(swarm.Delta{Kind: swarm.DeltaText, Text: piece})
	}
	reply := Reply{Output: said.Bytes(), Bytes: said.Len(), Exit: e.exit}
	if e.exit != 0 {
		return reply, swarm.Errorf(swarm.Exited, "exit status %d", e.exit)
	}
	return reply, nil
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return swarm.CutError(ctx)
	}
	return nil
}

// do calls the tool. The scripted agent ignores the answer, good or bad.
func (c scriptCall) do(ctx context.Context, r Request, id string, live func(swarm.Delta)) {
	live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: id, Name: c.tool, Input: c.args}})
	if r.Call == nil {
		return
	}
	done := &swarm.ToolUse{ID: id, Name: c.tool}
	answer, err := r.Call(ctx, c.tool, c.args)
	if done.Output = answer; err != nil {
		done.Output, done.Failed = err.Error(), true
	}
	live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: done})
}

// find returns the entry for a turn.
func (s *Script) find(r Request) (entry, error) {
	// A copy of a task, and of its agent, has entries of its own or those of the original.
	for _, whose := range []entry{{task: r.Task}, {task: original(r.Task)}, {agent: r.Agent}, {agent: original(r.Agent)}} {
		var these, all []entry
		for _, e := range s.entries {
			switch {
			case e.task != whose.task || e.agent != whose.agent:
			case e.iteration == r.Iteration:
				these = append(these, e)
			case e.iteration == 0:
				all = append(all, e)
			}
		}
		if len(these) > 0 {
			return nth(these, r.Attempt), nil
		}
		if len(all) > 0 {
			return nth(all, r.Iteration+r.Attempt-1), nil
		}
	}
	return entry{}, s.nothingFor(r)
}

// nth returns the n-th entry, from 1, or the last.
func nth(entries []entry, n int) entry { return entries[min(max(n, 1), len(entries))-1] }

// original returns the name without the number of a copy (code.2) or of a later agent with the same
// name (code~2).
func original(name string) string {
	if i := strings.LastIndexAny(name, ".~"); i > 0 {
		if _, err := strconv.ParseUint(name[i+1:], 10, 31); err == nil {
			return name[:i]
		}
	}
	return name
}

// nothingFor makes the error of a turn without an entry, at the nearest line: the last entry for
// its task or agent, or the last of the script.
func (s *Script) nothingFor(r Request) error {
	e := &swarm.Error{Kind: swarm.BadInput, File: s.file, Hint: fmt.Sprintf("add `- {task: %s, say: …}`", r.Task)}
	e.Msg = fmt.Sprintf("the script says nothing for the turn %s of @%s", r.Turn, r.Agent)
	var names []string
	found := false
	for _, other := range s.entries {
		names = append(names, other.task+other.agent)
		switch {
		case other.task != "" && original(other.task) == original(r.Task),
			other.agent != "" && original(other.agent) == original(r.Agent):
			e.Line, found = other.line, true
		case !found:
			e.Line = other.line
		}
	}
	if found {
		e.Msg += ", only for others of the same name"
	} else if near := swarm.Nearest(r.Task, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q where the script says %q? or %s", r.Task, near, e.Hint)
	}
	return e
}
