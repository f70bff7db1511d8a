package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A ToolEndpoint is our own server, as one agent of one run may use it. Its MCP endpoint is URL + "/mcp".
type ToolEndpoint struct {
	URL   string // http://127.0.0.1:PORT
	Token string // for Authorization: Bearer
}

// A ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // of its arguments, which are one object; nil = any
}

// Usage says what a tool takes, to whoever has called it wrongly.
func (t ToolSpec) Usage() string {
	var takes struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	_ = json.Unmarshal(t.Schema, &takes) // one that says it in other words is shown to its user as it is
	var may []string
	for name := range takes.Properties {
		if !slices.Contains(takes.Required, name) {
			may = append(may, name)
		}
	}
	slices.Sort(may)
	switch {
	case len(takes.Properties) == 0:
		return fmt.Sprintf("%s takes one JSON object", t.Name)
	case len(may) == 0:
		return fmt.Sprintf("%s takes an object with %s", t.Name, strings.Join(takes.Required, ", "))
	case len(takes.Required) == 0:
		return fmt.Sprintf("%s takes an object that may have %s", t.Name, strings.Join(may, ", "))
	}
	return fmt.Sprintf("%s takes an object with %s; it may also have %s", t.Name, strings.Join(takes.Required, ", "), strings.Join(may, ", "))
}

// A Delivery is the way of one answer to the agent that has called a tool. A tool that shows mail in its answer learns from it
// whether the answer went out: mail in an answer that never arrived was not seen.
type Delivery struct {
	mu      sync.Mutex
	settled bool
	arrived bool
	told    []func(arrived bool)
}

type deliveryKey struct{}

// WithDelivery gives a call its delivery.
func WithDelivery(ctx context.Context, d *Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// OnDelivery calls told once, when it is known whether the answer of the call that ctx belongs to went out. An answer that is given in
// this process has arrived.
func OnDelivery(ctx context.Context, told func(arrived bool)) {
	d, ok := ctx.Value(deliveryKey{}).(*Delivery)
	if !ok {
		told(true)
		return
	}
	d.mu.Lock()
	settled, arrived := d.settled, d.arrived
	if !settled {
		d.told = append(d.told, told)
	}
	d.mu.Unlock()
	if settled {
		told(arrived)
	}
}

// Settle says whether the answer went out. The first word counts.
func (d *Delivery) Settle(arrived bool) {
	d.mu.Lock()
	if d.settled {
		d.mu.Unlock()
		return
	}
	d.settled, d.arrived = true, arrived
	told := d.told
	d.told = nil
	d.mu.Unlock()
	for _, tell := range told {
		tell(arrived)
	}
}

// A ToolUser is an agent that acts on its run through our tools.
type ToolUser interface {
	Tools() []ToolSpec
	// Call does one of the tools. The answer is one JSON object; an error is told to the agent.
	Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error)
}

// A ToolHost is where the programs of agents find our tools.
type ToolHost interface {
	// Admit lets the agents of a run in: user says who has a token. When leave returns, their tokens are worthless again and none
	// of their calls runs any more.
	Admit(user func(token string) (ToolUser, error)) (leave func())
	URL() string
	Close() error
}
