package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/schema"
)

// instructions describe our tools as a whole to an agent's program.
const instructions = "You are one agent of a team that works on a run. " +
	"These tools are how you reach the others: what they answer is true at once, for everybody."

// A toolset offers tools over MCP, in the name of one agent. It checks arguments against the tool's
// schema and answers against the protocol.
type toolset struct {
	about string // describes the tools as a whole
	tools []tool
	agent func() (Agent, error) // asked for each call, because the token may have been revoked
	fault func(error)

	answers *deliveries // of calls over HTTP; nil = calls over pipes
}

type tool struct {
	swarm.ToolSpec
	takes *schema.Schema
}

// anything is the schema of a tool that has none.
var anything = json.RawMessage(`{"type":"object"}`)

// newToolset compiles the schemas. It refuses a tool whose schema is not that of an object, because
// MCP clients would.
func newToolset(specs []swarm.ToolSpec, agent func() (Agent, error), fault func(error)) (*toolset, error) {
	c := &toolset{about: instructions, agent: agent, fault: fault}
	for _, spec := range specs {
		if len(spec.Schema) == 0 {
			spec.Schema = anything
		}
		takes, err := schema.Parse(spec.Schema)
		if err != nil {
			return nil, swarm.Errorf(swarm.Other, "the tool %s cannot be offered: its schema: %w", spec.Name, err)
		}
		var top struct{ Type string }
		if err := json.Unmarshal(spec.Schema, &top); err != nil || top.Type != "object" {
			const msg = `the tool %s cannot be offered: its schema is not of "type": "object"`
			return nil, swarm.Errorf(swarm.Other, msg, spec.Name)
		}
		c.tools = append(c.tools, tool{spec, takes})
	}
	slices.SortFunc(c.tools, func(a, b tool) int { return strings.Compare(a.Name, b.Name) }) // MCP lists them in this order
	return c, nil
}

// server returns an MCP server with these tools, for one session. Its calls end with ctx.
func (c *toolset) server(ctx context.Context, session, version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "swarm", Version: version}, &mcp.ServerOptions{
		Instructions: c.about,
		GetSessionID: func() string { return session },
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range c.tools {
		spec := &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema}
		s.AddTool(spec, func(call context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			call, done := context.WithCancel(call)
			defer done()
			defer context.AfterFunc(ctx, done)()
			if token := r.Params.GetProgressToken(); token != nil {
				call = swarm.WithProgress(call, reportTo(r.Session, token))
			}
			d := c.answers.of(r)
			if d != nil {
				call = swarm.WithDelivery(call, &d.Delivery)
				defer func() { d.markMade(call) }()
			}
			answer, err := c.call(call, t, r.Params.Arguments)
			if quiet, _ := r.Params.Meta[quietMeta].(bool); err == nil && !quiet && call.Err() == nil && d.awaited() {
				c.addAside(call, t.Name, answer)
			}
			return answer, err
		})
	}
	s.AddReceivingMiddleware(c.knownTool)
	return s
}

// reportTo returns a function that tells a client how far its call is. MCP demands that the number
// grows.
func reportTo(s *mcp.ServerSession, token any) func(context.Context, string) {
	var said atomic.Int64
	return func(ctx context.Context, text string) {
		// A client that is gone misses nothing.
		_ = s.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(said.Add(1)), Message: text})
	}
}

// knownTool refuses unknown tools with a hint.
func (c *toolset) knownTool(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if call, ok := r.(*mcp.CallToolRequest); ok {
			var names []string
			for _, t := range c.tools {
				names = append(names, t.Name)
			}
			if name := call.Params.Name; !slices.Contains(names, name) {
				if agent, err := c.agent(); err == nil {
					if r, ok := agent.(Refuser); ok && r.Refuse(name) != nil {
						return refusal(r.Refuse(name)), nil //nolint:nilerr // the refusal is the tool's answer
					}
				}
				return nil, badRequest(swarm.Errorf(swarm.NotFound, "there is no tool %s", swarm.Quote(name)).
					WithHint("%s", swarm.DidYouMean(name, names)))
			}
		}
		return next(ctx, method, r)
	}
}

// call runs one call. A malformed request gives a protocol error, which programs read. Any other
// error is an answer, which the model reads and can learn from.
func (c *toolset) call(ctx context.Context, t tool, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	value, err := schema.Value(args)
	if _, isObject := value.(map[string]any); err != nil || !isObject {
		return nil, badRequest(swarm.Errorf(swarm.BadInput, "the arguments of %s are not one JSON object", t.Name).
			WithHint("%s", t.Usage()))
	}
	if err := t.takes.Check(value); err != nil {
		why := excerpt.Head(err.Error(), 500)
		return refusal(swarm.Errorf(swarm.BadInput, "the arguments of %s are not what it takes: %s", t.Name, why).
			WithHint("%s", t.Usage())), nil
	}
	agent, err := c.agent()
	if err != nil {
		return refusal(err), nil
	}
	answer, err := c.callSafely(ctx, agent, t.Name, args)
	if err != nil {
		return refusal(err), nil
	}
	return result(answer), nil
}

// quietMeta is the key in a call's _meta that asks for the answer without an aside. Commands set
// it, because no model reads their output.
const quietMeta = "swarm/quiet"

// addAside appends the agent's pending aside to an answer, as a separate text. It removes the
// structured form, because some programs give their model nothing but that.
func (c *toolset) addAside(ctx context.Context, tool string, answer *mcp.CallToolResult) {
	agent, err := c.agent()
	if err != nil {
		return
	}
	if told, ok := agent.(Informed); ok {
		if text := told.Aside(ctx, tool); text != "" {
			answer.Content = append(answer.Content, &mcp.TextContent{Text: text})
			answer.StructuredContent = nil
		}
	}
}

// callSafely runs the tool. A panic ends neither the server nor the run: fault gets the stack, and
// the agent a short error.
func (c *toolset) callSafely(
	ctx context.Context, agent Agent, name string, args json.RawMessage,
) (answer json.RawMessage, err error) {
	broken := swarm.Errorf(swarm.Other, "the tool %s broke down", name).
		WithHint("it is not your fault; try once more, or go on without it")
	defer func() {
		if why := recover(); why != nil {
			c.fault(swarm.Errorf(swarm.Other, "the tool %s panicked: %v\n%s", name, why, debug.Stack()))
			answer, err = nil, broken
		}
	}()
	answer, err = agent.Call(ctx, name, args)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(answer, &object) != nil || object == nil {
		c.fault(swarm.Errorf(swarm.Other, "the tool %s answers with something else than one JSON object", name))
		return nil, broken
	}
	return bytes.TrimSpace(answer), nil
}

// result formats an answer. Some programs give their model the text and others the structured form,
// so both say the same.
func result(answer json.RawMessage) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}, StructuredContent: answer}
}

// refusal formats an error as an answer that the model reads.
func refusal(err error) *mcp.CallToolResult {
	r := result(swarm.Encode(problemOf(err)))
	r.IsError = true
	return r
}

// badRequest returns a protocol error.
func badRequest(err *swarm.Error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error() + ": " + err.Hint, Data: swarm.Encode(problemOf(err))}
}
