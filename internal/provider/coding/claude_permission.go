package coding

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/provider"
)

// Claude Code asks for permissions in its stream: a control_request, which a control_response on its
// standard input answers. It asks only about what neither its rules nor its mode decide, and goes
// on with other tools of the same answer meanwhile.

// A claudeControl is a request of Claude Code to the program that started it.
type claudeControl struct {
	ID      string `json:"request_id"`
	Request struct {
		Subtype string
		Tool    string `json:"tool_name"`
		Input   json.RawMessage
		Blocked string `json:"blocked_path"`
	}
}

// handleControl answers a control request. A person may take any time, so a goroutine waits for the
// answer; the turn ends no earlier than its goroutines.
func (e *claudeListener) handleControl(line []byte) error {
	var c claudeControl
	if err := e.decode(line, &c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	e.asked[c.ID] = cancel
	shown := provider.ShowInput(e.redactor, c.Request.Input)
	e.asking.Go(func() {
		defer cancel()
		if c.Request.Subtype != "can_use_tool" {
			e.respond(object{"subtype": "error", "request_id": c.ID, "error": "swarm does not know " + c.Request.Subtype})
			return
		}
		err := e.decidePermission(ctx, &c, shown)
		if ctx.Err() != nil {
			return // the turn was cut, or Claude Code has withdrawn the request
		}
		answer := object{"behavior": "allow", "updatedInput": c.Request.Input}
		if err != nil {
			why := "Not allowed: " + err.Error()
			if hint := swarm.HintOf(err); hint != "" {
				why += "; " + hint
			}
			answer = object{"behavior": "deny", "message": why}
		}
		if _, byPerson := errors.AsType[provider.PersonRefused](err); byPerson {
			e.program.mu.Lock()
			e.refused[callKey(c.Request.Tool, c.Request.Input)] = true
			e.program.mu.Unlock()
		}
		e.respond(object{"subtype": "success", "request_id": c.ID, "response": answer})
	})
	return nil
}

// cancelControl takes back a request.
func (e *claudeListener) cancelControl(line []byte) error {
	var c claudeControl
	if err := e.decode(line, &c); err != nil {
		return err
	}
	if cancel := e.asked[c.ID]; cancel != nil {
		cancel()
	}
	return nil
}

// respond writes a control response. A program that has ended needs none.
func (e *claudeListener) respond(response object) {
	b, _ := json.Marshal(object{"type": "control_response", "response": response})
	_, _ = e.program.proc.Write(append(b, '\n'))
}

// decidePermission decides on a tool call: nil allows it. Our own tools check permissions
// themselves.
func (e *claudeListener) decidePermission(ctx context.Context, c *claudeControl, shown json.RawMessage) error {
	name, input := c.Request.Tool, c.Request.Input
	if e.request.Door.URL != "" && strings.HasPrefix(name, "mcp__swarm__") {
		return nil
	}
	return permission.Checks{
		Phase: func() error { return e.phaseError(name, input) },
		Approval: func() error {
			paths := pathsOf(input, c.Request.Blocked)
			return e.request.AskPerson(ctx, callKey(name, input), swarm.Approval{Tool: name, Input: shown, Paths: paths})
		},
	}.Pass()
}

// phaseError says why the phase forbids a tool call. No person can lift that.
func (e *claudeListener) phaseError(name string, input json.RawMessage) error {
	if slices.Contains(readOnlyTools, name) {
		return nil
	}
	file := fileOf(block{Name: name, Input: input})
	if file == "" {
		return permission.Acting(e.request.Phase, name)
	}
	if rel, err := filepath.Rel(e.request.Folder(), file); err == nil {
		file = rel
	}
	return permission.Writing(e.request.Phase, filepath.ToSlash(file))
}

// callKey names a tool call by what it does. The model's order of the input's fields says nothing.
func callKey(name string, input json.RawMessage) string {
	var fields any
	if json.Unmarshal(input, &fields) != nil {
		return name + " " + string(input)
	}
	sorted, _ := json.Marshal(fields)
	return name + " " + string(sorted)
}

// pathsOf returns the files and folders that a tool call is about, as far as they are known.
func pathsOf(input json.RawMessage, blocked string) (paths []string) {
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string
	}
	_ = json.Unmarshal(input, &in) // the model wrote it, so it may be anything
	for _, path := range []string{in.File, in.Notebook, in.Path, blocked} {
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
