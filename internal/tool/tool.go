// Package tool is what an agent that is a model over HTTP may do: read, write and list files in its folder, run commands, fetch
// pages, and use the tools of MCP servers.
//
// A model may be told by what it reads to do anything, so nothing here trusts it. Each call is held against the agent's own
// list (package allow); files are reached through os.Root and nowhere else; there is no shell; an address is looked at when it
// is dialled, whatever a name says. What is refused is an answer that says why, and the turn goes on.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/process"
	"swarm/internal/toolrule"
)

// Options are an agent, and what it may use.
type Options struct {
	Root    string            // the folder that it may touch; absolute
	Hidden  []string          // folders in it that are not its business: our own state; absolute
	Allow   []string          // entries of its `tools`; none = no tool
	Servers *Servers          // the MCP servers of the run; nil = there are none
	Environ []string          // of this process; nil = os.Environ()
	Env     map[string]string // the agent's own, for its commands
	Run     string
	Agent   string
	Turn    string        // whose commands they are; "" = each is marked by itself
	Trace   string        // what the commands' own spans belong to, as W3C's traceparent; "" = nothing of ours
	Phase   swarm.Phase   // of the agent's team; "" = none
	Grace   time.Duration // how long a command has to end; 0 = process.DefaultGrace
}

// A Box holds the tools of one agent. It keeps nothing open, and need not be closed.
type Box struct {
	o        Options
	rules    []toolrule.Rule
	real     string // Root without links
	environ  *process.Environment
	web      *http.Client
	commands atomic.Int64 // started so far

	mu     sync.Mutex
	remote map[string]remote // by the name that is offered
}

// Open makes the box. It reaches nobody yet.
func Open(o Options) (*Box, error) {
	b := &Box{o: o}
	for _, entry := range o.Allow {
		r, err := toolrule.Parse(entry, o.Servers.Names())
		if err != nil {
			return nil, err
		}
		b.rules = append(b.rules, r)
	}
	if b.allows(toolrule.FileRead, toolrule.FileWrite, toolrule.FileList, toolrule.Command) {
		if err := b.findRoot(); err != nil {
			return nil, err
		}
	}
	env := map[string]string{}
	for name, value := range o.Env {
		if !process.IsProviderKey(name) { // the agent's own, for its model
			env[name] = value
		}
	}
	var err error
	if b.environ, err = process.NewEnvironment(o.Environ, env); err != nil {
		return nil, err
	}
	b.web = b.newClient()
	return b, nil
}

// special are folders of the system in which reading is more than reading.
var special = []string{"/proc", "/sys", "/dev"}

// CheckRoot says what keeps a folder from being the one that an agent's tools may touch.
func CheckRoot(root, agent string) error {
	_, err := realRoot(root, agent)
	return err
}

// realRoot is the folder without links.
func realRoot(root, agent string) (string, error) {
	info, err := os.Stat(root)
	switch {
	case !filepath.IsAbs(root):
		return "", swarm.Errorf(swarm.BadInput, "the root of %q is not an absolute path", agent)
	case err == nil && !info.IsDir():
		return "", swarm.Errorf(swarm.BadInput, "%s, which the tools of %q may touch, is not a folder", root, agent).WithHint("write the folder that it is in")
	case err != nil:
		return "", swarm.Errorf(swarm.NotFound, "the folder %s, which the tools of %q may touch, is not there", root, agent).WithHint("make it, or correct `root`")
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		real = root
	}
	if real == "/" || slices.ContainsFunc(special, func(s string) bool { return within(s, real) }) {
		return "", swarm.Errorf(swarm.BadInput, "%s cannot be the folder of an agent: the keys of every program lie open in it", root).
			WithHint("write a folder for its work: root: .")
	}
	return real, nil
}

func (b *Box) findRoot() (err error) {
	if b.real, err = realRoot(filepath.Clean(b.o.Root), b.o.Agent); err != nil {
		return err
	}
	b.o.Root = filepath.Clean(b.o.Root)
	hidden := b.o.Hidden
	b.o.Hidden = nil
	for _, folder := range hidden {
		b.o.Hidden = append(b.o.Hidden, resolved(folder))
	}
	return nil
}

// within says whether a path is a folder or lies in it.
func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func (b *Box) allows(tools ...string) bool {
	return slices.ContainsFunc(b.rules, func(r toolrule.Rule) bool { return slices.Contains(tools, r.Tool) })
}

// A builtin is a tool of ours.
type builtin struct {
	spec func(*Box) swarm.ToolSpec
	call func(*Box, context.Context, json.RawMessage) (string, error)
}

var builtins = map[string]builtin{
	toolrule.FileRead:  {(*Box).readSpec, (*Box).read},
	toolrule.FileWrite: {(*Box).writeSpec, (*Box).write},
	toolrule.FileList:  {(*Box).listSpec, (*Box).list},
	toolrule.Command:   {(*Box).commandSpec, (*Box).command},
	toolrule.WebFetch:  {(*Box).fetchSpec, (*Box).fetch},
}

// Specs are the tools that the agent is offered: those that it may use in this phase. It connects to the servers that the agent may use.
// An error beside them says which servers could not be reached, or do not have what the agent was given; the tools of the others are there.
func (b *Box) Specs(ctx context.Context) ([]swarm.ToolSpec, error) {
	var specs []swarm.ToolSpec
	for _, name := range toolrule.Tools {
		if b.allows(name) && (name != toolrule.Command || permission.Acting(b.o.Phase, name) == nil) {
			specs = append(specs, builtins[name].spec(b))
		}
	}
	offered, remote, err := b.remotes(ctx)
	b.mu.Lock()
	b.remote = remote
	b.mu.Unlock()
	return append(specs, offered...), err
}

// Call does what the agent asks of a tool. An error is an answer for the agent.
func (b *Box) Call(ctx context.Context, tool string, args json.RawMessage) (string, error) {
	if ctx.Err() != nil {
		return "", swarm.CutError(ctx)
	}
	b.mu.Lock()
	known, looked := b.remote, b.remote != nil
	b.mu.Unlock()
	ours, isOurs := builtins[tool]
	if !isOurs && !looked && slices.ContainsFunc(b.rules, func(r toolrule.Rule) bool { return r.Server != "" }) {
		var err error
		if _, known, err = b.remotes(ctx); err != nil && len(known) == 0 {
			return "", err
		}
	}
	err := permission.Checks{
		Phase:      func() error { return b.forbids(tool, args, known) },
		Capability: func() error { return b.lacks(tool, known) },
	}.Pass()
	switch {
	case err != nil:
		return "", err
	case isOurs:
		return ours.call(b, ctx, args)
	}
	return known[tool].call(ctx, args)
}

// forbids says why nobody may do it in this phase.
func (b *Box) forbids(tool string, args json.RawMessage, known map[string]remote) error {
	switch r, isRemote := known[tool]; {
	case tool == toolrule.Command, isRemote && !r.reads:
		return permission.Acting(b.o.Phase, tool)
	case tool == toolrule.FileWrite:
		var a struct{ Path string }
		_ = json.Unmarshal(args, &a) // what is wrong with them says whoever reads them next
		if local, err := b.inside(a.Path); err == nil {
			return permission.Writing(b.o.Phase, filepath.ToSlash(local))
		}
	}
	return nil
}

// lacks says why this agent may not use a tool: it is none of its own.
func (b *Box) lacks(tool string, known map[string]remote) error {
	if _, isOurs := builtins[tool]; isOurs && b.allows(tool) {
		return nil
	}
	if _, isRemote := known[tool]; isRemote {
		return nil
	}
	var names []string
	for _, name := range toolrule.Tools {
		if b.allows(name) {
			names = append(names, name)
		}
	}
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	err := swarm.Errorf(swarm.Denied, "%q may not use a tool %s", b.o.Agent, swarm.Quote(tool))
	if len(names) == 0 {
		return err.WithHint("it has no tools")
	}
	return err.WithHint("%s", swarm.DidYouMean(tool, names))
}

// arguments reads what a tool was given into its own kind of arguments.
func arguments(tool string, args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows them")
		}
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		err = fmt.Errorf("%s cannot be of the type %s", wrong.Field, wrong.Value)
	}
	return swarm.Errorf(swarm.BadInput, "the arguments of %s are not what it takes: %v", tool, strings.TrimPrefix(err.Error(), "json: "))
}

func object(properties string, required ...string) json.RawMessage {
	names, _ := json.Marshal(append([]string{}, required...))
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":` + string(names) + `,"additionalProperties":false}`)
}
