package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A ToolEndpoint is our own tool server as one agent of one run may use it. Its MCP endpoint is URL
// + "/mcp".
type ToolEndpoint struct {
	URL   string // http://127.0.0.1:PORT
	Token string // for Authorization: Bearer
}

// A ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // of the arguments, which are one object; nil = any
}

// Size returns the approximate number of bytes of the description that a model reads.
func (t *ToolSpec) Size() int64 {
	const around = 60 // the keys that every API puts around it
	return int64(len(t.Name) + len(t.Description) + len(t.Schema) + around)
}

// Usage describes the arguments of a tool, for the error of a call with wrong ones.
func (t ToolSpec) Usage() string {
	var takes struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	_ = json.Unmarshal(t.Schema, &takes) // a schema in another form gets the general text
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

// A ToolImage is an image in a tool's result.
type ToolImage struct {
	MIMEType string `json:"mime_type"`
	Data     []byte `json:"data"`
}

// ImageShown follows an image in the text of a result if the model is shown the image. imageGone
// replaces ImageShown when the image is left out later.
const (
	ImageShown = ", shown to the model"
	imageGone  = ", no longer shown to the model"
)

type imagesKey struct{}

// WithToolImages returns a context of a call whose caller can show images. take takes an image, and
// returns what the text of the result tells of it.
func WithToolImages(ctx context.Context, take func(ToolImage) string) context.Context {
	return context.WithValue(ctx, imagesKey{}, take)
}

// PassImage passes an image of a tool's result to the caller, and returns what the text of the
// result tells of it. Without a caller that can show images it returns "".
func PassImage(ctx context.Context, image ToolImage) string {
	if take, ok := ctx.Value(imagesKey{}).(func(ToolImage) string); ok {
		return take(image)
	}
	return ""
}

type progressKey struct{}

// WithProgress returns a context of a call whose caller hears how far the call is.
func WithProgress(ctx context.Context, tell func(ctx context.Context, text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// ReportProgress tells the caller of a long call what has happened so far. Without a caller that
// listens it does nothing.
func ReportProgress(ctx context.Context, text string) {
	if tell, ok := ctx.Value(progressKey{}).(func(context.Context, string)); ok {
		tell(ctx, text)
	}
}

// A Delivery tracks whether the answer to one tool call reached the agent. A tool that shows mail
// in its answer waits for it: the agent has not seen mail in an answer that never arrived.
//
// The mutex guards all fields: the tool registers its function on one goroutine, the server settles
// the delivery on another. Functions are called without the mutex held.
type Delivery struct {
	mu      sync.Mutex
	settled bool
	arrived bool
	waiting []func(arrived bool)
}

type deliveryKey struct{}

// WithDelivery returns a context that carries the delivery of a call.
func WithDelivery(ctx context.Context, d *Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// OnDelivery calls f once, when it is known whether the answer to the call of ctx arrived. An
// answer within this process has arrived at once.
func OnDelivery(ctx context.Context, f func(arrived bool)) {
	d, ok := ctx.Value(deliveryKey{}).(*Delivery)
	if !ok {
		f(true)
		return
	}
	d.mu.Lock()
	settled, arrived := d.settled, d.arrived
	if !settled {
		d.waiting = append(d.waiting, f)
	}
	d.mu.Unlock()
	if settled {
		f(arrived)
	}
}

// Settle records whether the answer arrived. Only the first call counts.
func (d *Delivery) Settle(arrived bool) {
	d.mu.Lock()
	if d.settled {
		d.mu.Unlock()
		return
	}
	d.settled, d.arrived = true, arrived
	waiting := d.waiting
	d.waiting = nil
	d.mu.Unlock()
	for _, f := range waiting {
		f(arrived)
	}
}

// A ToolUser is an agent that acts on its run through our tools.
type ToolUser interface {
	Tools() []ToolSpec
	// Call runs one of the tools. The answer is one JSON object. The agent sees the text of an
	// error.
	Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error)
}

// A ToolHost is the server at which the agents' programs find our tools.
type ToolHost interface {
	// Admit admits the agents of a run: user returns the agent of a token. After leave has
	// returned, the tokens are invalid and none of the agents' calls is running.
	Admit(user func(token string) (ToolUser, error)) (leave func())
	URL() string
	Close() error
}
