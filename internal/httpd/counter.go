package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"

	"swarm/internal/excerpt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/schema"
)

// instructions is what an agent's program is told of our tools as a whole.
const instructions = "You are one agent of a team that works on a run. These tools are how you reach the others: what they answer is true at once, for everybody."

// A counter offers tools over MCP, in the name of one agent. What crosses it is held against what the tool takes.
type counter struct {
	tools []tool
	agent func() (Agent, error) // whose they are; asked for each call, because a token may be nobody's by then
	fault func(error)

	answers *deliveries // of who comes over HTTP; nil = calls come by another way
}

type tool struct {
	swarm.ToolSpec
	takes *schema.Schema
}

// anything is what a tool without a schema takes.
var anything = json.RawMessage(`{"type":"object"}`)

func newCounter(specs []swarm.ToolSpec, agent func() (Agent, error), fault func(error)) (*counter, error) {
	c := &counter{agent: agent, fault: fault}
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
			return nil, swarm.Errorf(swarm.Other, `the tool %s cannot be offered: its schema is not of "type": "object"`, spec.Name)
		}
		c.tools = append(c.tools, tool{spec, takes})
	}
	slices.SortFunc(c.tools, func(a, b tool) int { return strings.Compare(a.Name, b.Name) }) // as MCP lists them
	return c, nil
}

// server is the counter as an MCP server for one session. Calls end with ctx.
func (c *counter) server(ctx context.Context, session, version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "swarm", Version: version}, &mcp.ServerOptions{
		Instructions: instructions,
		GetSessionID: func() string { return session },
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range c.tools {
		s.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema}, func(call context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			call, done := context.WithCancel(call)
			defer done()
			defer context.AfterFunc(ctx, done)()
			d := c.answers.of(r)
			if d != nil {
				call = swarm.WithDelivery(call, &d.Delivery)
				defer func() { d.answer(call) }()
			}
			answer, err := c.call(call, t, r.Params.Arguments)
			if quiet, _ := r.Params.Meta[quietly].(bool); err == nil && !quiet && call.Err() == nil && d.awaited() {
				c.aside(call, t.Name, answer)
			}
			return answer, err
		})
	}
	s.AddReceivingMiddleware(c.knownTool)
	return s
}

// knownTool refuses a tool that is not there, and says which are.
func (c *counter) knownTool(next mcp.MethodHandler) mcp.MethodHandler {
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
				return nil, badRequest(swarm.Errorf(swarm.NotFound, "there is no tool %s", swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, names)))
			}
		}
		return next(ctx, method, r)
	}
}

// call does one call. A request that is none is an error of the protocol, which programs read; everything else is an answer, which
// the model reads and can learn from.
func (c *counter) call(ctx context.Context, t tool, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	value, err := schema.Value(args)
	if _, isObject := value.(map[string]any); err != nil || !isObject {
		return nil, badRequest(swarm.Errorf(swarm.BadInput, "the arguments of %s are not one JSON object", t.Name).WithHint("%s", t.Usage()))
	}
	if err := t.takes.Check(value); err != nil {
		return refusal(swarm.Errorf(swarm.BadInput, "the arguments of %s are not what it takes: %s", t.Name, excerpt.Head(err.Error(), 500)).WithHint("%s", t.Usage())), nil
	}
	agent, err := c.agent()
	if err != nil {
		return refusal(err), nil
	}
	answer, err := c.safely(ctx, agent, t.Name, args)
	if err != nil {
		return refusal(err), nil
	}
	return result(answer), nil
}

// quietly is what a client says in a call's _meta that wants the answer and nothing beside it: nobody would read that.
const quietly = "swarm/quiet"

// aside adds to an answer what its agent is to be told beside it, as a text of its own. The answer has no structured form then: some
// programs give their model nothing but that.
func (c *counter) aside(ctx context.Context, tool string, answer *mcp.CallToolResult) {
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

// safely does the tool. One that breaks down ends neither the server nor the run; somebody is told why, but not the agent.
func (c *counter) safely(ctx context.Context, agent Agent, name string, args json.RawMessage) (answer json.RawMessage, err error) {
	broken := swarm.Errorf(swarm.Other, "the tool %s broke down", name).WithHint("it is not your fault; try once more, or go on without it")
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

// result is an answer. Some programs give their model the text and others the structured form, so both say the same.
func result(answer json.RawMessage) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}, StructuredContent: answer}
}

func refusal(err error) *mcp.CallToolResult {
	r := result(problemOf(err).json())
	r.IsError = true
	return r
}

// badRequest is an error of the protocol.
func badRequest(err *swarm.Error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error() + ": " + err.Hint, Data: problemOf(err).json()}
}
