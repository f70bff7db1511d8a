package coding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/provider"
)

// Codex asks with requests of its own: about a command or a file change that its sandbox forbids,
// and about a tool of one of the user's MCP servers. An answer allows one call and never a whole
// session. Otherwise Codex would not ask again.

// A codexQuestion is a request for a permission.
type codexQuestion struct {
	items   []string // the items that match; one of them waits for the answer
	tool    string
	server  string // the MCP server whose tool it is, or ""
	input   any    // what the person sees
	same    any    // the part of it that makes two questions the same one
	paths   []string
	yes, no object // the answers
}

// A codexRequest holds the parameters of all requests that are understood.
type codexRequest struct {
	ItemID, Reason, Command, Kind, Cwd, GrantRoot string
	Network                                       json.RawMessage `json:"networkApprovalContext"`
	Permissions                                   json.RawMessage
	ServerName, Message                           string
	Meta                                          struct {
		Kind   string          `json:"codex_approval_kind"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"`
}

// handleRequest answers a request. A person may take any time, so a goroutine waits for the answer;
// the turn ends no earlier than its goroutines.
func (e *codexServer) handleRequest(m *codexMessage) error {
	var r codexRequest
	if err := e.decode(m.Params, &r); err != nil {
		return err
	}
	q := e.question(m.Method, &r)
	if q == nil {
		e.send(object{"id": m.ID, "error": object{"code": -32601, "message": "swarm does not know " + m.Method}})
		return nil
	}
	if q.server == "swarm" && e.request.Door.URL != "" { // our own tools check permissions themselves
		e.send(object{"id": m.ID, "result": q.yes})
		return nil
	}
	ctx, cancel := context.WithCancel(e.ctx)
	e.asked[string(m.ID)] = cancel
	input, _ := json.Marshal(q.input)
	shown := provider.ShowInput(e.redactor, input)
	e.asking.Go(func() {
		defer cancel()
		err := e.decidePermission(ctx, q, shown)
		if ctx.Err() != nil {
			return // the turn was cut, or Codex has withdrawn the request
		}
		e.program.mu.Lock()
		e.noteDecision(q, string(input), err)
		e.program.mu.Unlock()
		answer := q.yes
		if err != nil {
			answer = q.no
		}
		e.send(object{"id": m.ID, "result": answer})
	})
	return nil
}

// withdraw cancels a request. Codex sends this notification also for requests that were answered.
func (e *codexServer) withdraw(id string) {
	if cancel := e.asked[id]; cancel != nil {
		cancel()
	}
}

// question reads a request for a permission. It returns nil for requests that a yes or a no to a
// tool call cannot answer.
func (e *codexServer) question(method string, r *codexRequest) *codexQuestion {
	decision := func(word string) object { return object{"decision": word} }
	q := &codexQuestion{items: []string{r.ItemID}, yes: decision("accept"), no: decision("decline")}
	switch method {
	case "item/commandExecution/requestApproval":
		same := object{"command": cmp.Or(r.Command, e.started[r.ItemID].Command)}
		if r.Cwd != "" && r.Cwd != e.dir {
			same["cwd"] = r.Cwd
		}
		if r.Kind != "" && r.Kind != "command" {
			same["kind"] = r.Kind // the command writes to a running program
		}
		if len(r.Network) > 0 && string(r.Network) != "null" {
			same["network"] = r.Network
		}
		q.tool, q.same = "shell", same
	case "item/fileChange/requestApproval":
		item := e.started[r.ItemID]
		same := object{"changes": item.Changes}
		if r.GrantRoot != "" {
			same["grant_root"] = r.GrantRoot
		}
		for _, c := range item.Changes {
			q.paths = append(q.paths, c.Path)
		}
		q.tool, q.same = "file_change", same
	case "item/permissions/requestApproval":
		q.tool, q.same = "request_permissions", object{"permissions": r.Permissions}
		q.yes = object{"permissions": r.Permissions, "scope": "turn"}
		q.no = object{"permissions": object{}, "scope": "turn"}
	case "mcpServer/elicitation/request":
		if r.Meta.Kind != "mcp_tool_call" {
			return nil
		}
		q.items, q.tool = e.mcpCall(r)
		q.server, q.same = r.ServerName, r.Meta.Params
		q.yes, q.no = object{"action": "accept", "content": object{}}, object{"action": "decline"}
	default:
		return nil
	}
	q.input = q.same
	if fields, ok := q.same.(object); ok && r.Reason != "" {
		q.input = with(fields, "reason", r.Reason)
	}
	return q
}

// with returns an object with one more field.
func with(fields object, name string, value any) object {
	return merge(fields, object{name: value})
}

// mcpCall finds the tool call of an MCP server that waits for a permission. The request itself names
// the tool only in its message. Calls of several tools may have the same arguments. If the message
// names none of these, the tool is unknown, and a person is asked about the server.
func (e *codexServer) mcpCall(r *codexRequest) (items []string, tool string) {
	all, named := map[string]bool{}, map[string]bool{}
	for id, i := range e.started {
		if i.Server != r.ServerName || callKey("", i.Arguments) != callKey("", r.Meta.Params) {
			continue
		}
		name, _ := i.call()
		items, all[name] = append(items, id), true
		if strings.Contains(r.Message, strconv.Quote(i.Tool)) {
			named[name] = true
		}
	}
	for _, tools := range []map[string]bool{all, named} {
		if len(tools) == 1 {
			return items, slices.Collect(maps.Keys(tools))[0]
		}
	}
	return items, "mcp__" + r.ServerName
}

// decidePermission decides on a request: nil allows it.
func (e *codexServer) decidePermission(ctx context.Context, q *codexQuestion, shown json.RawMessage) error {
	return permission.Checks{
		Phase: func() error { return permission.Acting(e.request.Phase, q.tool) },
		Approval: func() error {
			same, _ := json.Marshal(q.same)
			return e.request.AskPerson(ctx, callKey(q.tool, same), swarm.Approval{Tool: q.tool, Input: shown, Paths: q.paths})
		},
	}.Pass()
}

// noteDecision records a decision. A refusal by a person does not fail the turn. Any other refusal
// does.
func (e *codexServer) noteDecision(q *codexQuestion, input string, err error) {
	for _, id := range q.items {
		e.decided[id] = true
	}
	if _, byPerson := errors.AsType[provider.PersonRefused](err); err == nil || byPerson || e.denied != nil {
		return
	}
	if q.server != "" || e.request.Phase == swarm.PlanningPhase {
		e.denied = e.deniedError(q.tool, input, "mcp__"+q.server)
		return
	}
	e.denied = e.sandboxError(q.tool, input, "write `approvals: {tools: ask}` in the compose file if a person is to decide")
}
