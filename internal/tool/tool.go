// Package tool holds the tools of agents that are models over HTTP: read, write and list files, run
// commands, fetch pages, and use the tools of MCP servers. [Open] makes the Box of one agent,
// [NewServers] the servers that a run's agents share.
//
// A prompt injection can make a model attempt anything, so no call is trusted:
//   - Each call is checked against the agent's `tools` (package toolrule) and the phase (package
//     permission).
//   - Files are reached only through os.Root.
//   - There is no shell.
//   - Addresses are checked when they are dialled, because a name may resolve to any address.
//
// A refusal is an answer that says why, and the turn goes on.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"swarm/internal/strictjson"
	"swarm/internal/toolrule"
)

// Options describe an agent and what it may use.
type Options struct {
	Root    string            // the folder of its file tools; absolute
	Hidden  []string          // folders in it that tools must not touch, such as our own state; absolute
	Below   Below             // what it can only read
	Report  string            // a file that it writes in Below, in the place of Root; "" = none
	Guard   permission.Guard  // files that it may write only if Allow names them
	Allow   []string          // entries of its `tools`; none = no tool
	Servers *Servers          // the MCP servers of the run; nil = none
	Environ []string          // of this process; nil = os.Environ()
	Env     map[string]string // the agent's own, for its commands
	Run     swarm.RunID
	Agent   string
	Turn    swarm.TurnID // the mark of its commands; "" = each command gets its own

	Iteration, Attempt int           // of that turn
	Trace              string        // parent of the commands' spans, as a W3C traceparent; "" = none of ours
	Phase              swarm.Phase   // of the agent's team; "" = none
	Grace              time.Duration // for a command to end; 0 = process.DefaultGrace
}

// A Below is a folder whose files an agent reads where its root has none of that name.
type Below struct {
	Path    string   // absolute; "" = there is none
	Hidden  []string // folders in it that tools must not touch
	Project bool     // nobody has chosen it for the agent, so its hidden files and private keys are not shown
	About   string   // what is in it, for the model
}

// A Box holds the tools of one agent. It keeps nothing open, so it need not be closed. mu guards
// remote.
type Box struct {
	o        Options
	rules    []toolrule.Rule
	layers   []layer // Root, then Below
	web      *http.Client
	commands atomic.Int64 // started so far

	mu     sync.Mutex
	remote map[string]remote // by offered name; nil = not listed yet
}

// Open makes the box of an agent. It connects to no server yet.
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
		if err := b.findRoots(); err != nil {
			return nil, err
		}
	}
	b.web = b.newClient()
	return b, nil
}

// special are system folders in which reading a file may have effects or reveal keys.
var special = []string{"/proc", "/sys", "/dev"}

// memory is the one folder of theirs that holds people's files: like /tmp, but in memory.
const memory = "/dev/shm"

// CheckRoot returns an error if a folder cannot be an agent's root.
func CheckRoot(root, agent string) error {
	_, err := realRoot(root, agent)
	return err
}

// realRoot checks the root and resolves its links.
func realRoot(root, agent string) (string, error) {
	info, err := os.Stat(root)
	switch {
	case !filepath.IsAbs(root):
		return "", swarm.Errorf(swarm.BadInput, "the root of %q is not an absolute path", agent)
	case err == nil && !info.IsDir():
		return "", swarm.Errorf(swarm.BadInput, "%s, which the tools of %q may touch, is not a folder", root, agent).
			WithHint("write the folder that it is in")
	case err != nil:
		return "", swarm.Errorf(swarm.NotFound, "the folder %s, which the tools of %q may touch, is not there", root, agent).
			WithHint("make it, or correct `root`")
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		real = root
	}
	if real == "/" || !within(memory, real) && slices.ContainsFunc(special, func(s string) bool { return within(s, real) }) {
		const msg = "%s cannot be the folder of an agent: the keys of every program lie open in it"
		return "", swarm.Errorf(swarm.BadInput, msg, root).
			WithHint("write a folder for its work: root: .")
	}
	return real, nil
}

// A layer is a folder that file tools read. Only the first one is written to.
type layer struct {
	root    string
	real    string   // root with links resolved
	hidden  []string // without links
	project bool     // hidden files and private keys in it are not shown
}

// newLayer resolves a folder and what is hidden in it once, so that later checks compare real paths.
func newLayer(root string, hidden []string, agent string) (l layer, err error) {
	l.root = filepath.Clean(root)
	l.real, err = realRoot(l.root, agent)
	for _, folder := range hidden {
		l.hidden = append(l.hidden, resolved(folder))
	}
	return l, err
}

// findRoots finds the folders of the file tools.
func (b *Box) findRoots() error {
	top, err := newLayer(b.o.Root, b.o.Hidden, b.o.Agent)
	if err != nil {
		return err
	}
	b.layers = []layer{top}
	if b.o.Below.Path == "" {
		return nil
	}
	if below, err := newLayer(b.o.Below.Path, b.o.Below.Hidden, b.o.Agent); err == nil && below.real != top.real {
		below.project = b.o.Below.Project
		b.layers = append(b.layers, below)
	}
	return nil
}

// within reports whether a path is the folder or inside it.
func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func (b *Box) allows(tools ...string) bool {
	return slices.ContainsFunc(b.rules, func(r toolrule.Rule) bool { return slices.Contains(tools, r.Tool) })
}

// A builtin is one of our own tools.
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

// Specs returns the tools that the agent may use in this phase. It connects to the MCP servers that
// the agent may use. The error names servers that cannot be reached or lack a tool; the tools of
// the others are returned with it.
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

// Call calls a tool. An error is an answer for the agent.
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
		Phase:      func() error { return b.checkPhase(tool, args, known) },
		Capability: func() error { return b.checkCapability(tool, known) },
	}.Pass()
	switch {
	case err != nil:
		return "", err
	case isOurs:
		return ours.call(b, ctx, args)
	}
	return known[tool].call(ctx, args)
}

// checkPhase returns an error if no agent may make this call in this phase.
func (b *Box) checkPhase(tool string, args json.RawMessage, known map[string]remote) error {
	switch r, isRemote := known[tool]; {
	case tool == toolrule.Command, isRemote && !r.reads:
		return permission.Acting(b.o.Phase, tool)
	case tool == toolrule.FileWrite:
		var a struct{ Path string }
		_ = json.Unmarshal(args, &a) // the tool itself reports malformed arguments
		if local, err := b.layers[0].inside(a.Path); err == nil {
			return permission.Writing(b.o.Phase, filepath.ToSlash(local))
		}
	}
	return nil
}

// checkCapability returns an error if the tool is not among the agent's own.
func (b *Box) checkCapability(tool string, known map[string]remote) error {
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

// arguments decodes a tool's arguments strictly.
func arguments(tool string, args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	err := strictjson.Decode(args, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		err = fmt.Errorf("%s cannot be of the type %s", wrong.Field, wrong.Value)
	}
	why := strings.TrimPrefix(err.Error(), "json: ")
	return swarm.Errorf(swarm.BadInput, "the arguments of %s are not what it takes: %s", tool, why)
}

// object makes the JSON Schema of a tool's arguments.
func object(properties string, required ...string) json.RawMessage {
	names, _ := json.Marshal(append([]string{}, required...))
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":` + string(names) +
		`,"additionalProperties":false}`)
}
