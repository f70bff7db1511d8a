package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/permission"
	"swarm/internal/schema"
	"swarm/internal/toolrule"
)

// Limits of the tools of MCP servers that a model is offered.
const (
	maxOffered     = 128 // per server without named tools; models' APIs take no more
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
	maxName        = 64
)

// A remote is a tool of an MCP server.
type remote struct {
	server *server
	name   string // the server's own name for it
	reads  bool   // the server declares it read-only
}

// call checks that the arguments are an object, as MCP requires, and forwards them unchanged.
func (r remote) call(ctx context.Context, args json.RawMessage) (string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		return "", swarm.Errorf(swarm.BadInput, "the arguments are not one JSON object")
	}
	return r.server.call(ctx, r.name, args)
}

// remotes returns the tools of MCP servers that the agent may use: the offered specs, and all of
// them by offered name. It asks the servers concurrently. The error names servers that fail or lack
// a tool; the tools of the others are returned with it.
func (b *Box) remotes(ctx context.Context) ([]swarm.ToolSpec, map[string]remote, error) {
	names := b.servers()
	type list struct {
		tools []*mcp.Tool
		err   error
	}
	lists := make([]list, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { lists[i].tools, lists[i].err = b.toolsOf(ctx, name) })
	}
	all.Wait()
	byName := map[string]remote{}
	var specs []swarm.ToolSpec
	var wrong []error
	for i, name := range names {
		if err := lists[i].err; err != nil {
			wrong = append(wrong, err)
		}
		for _, t := range lists[i].tools {
			offered := offeredName(name, t.Name, func(n string) bool { _, taken := byName[n]; return taken })
			r := remote{b.o.Servers.byName[name], t.Name, t.Annotations != nil && t.Annotations.ReadOnlyHint}
			byName[offered] = r
			if r.reads || permission.Acting(b.o.Phase, offered) == nil {
				specs = append(specs, specOf(offered, t))
			}
		}
	}
	return specs, byName, joined(wrong)
}

// joined combines several errors into one.
func joined(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == 1 {
		return errs[0]
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return &swarm.Error{
		Kind: swarm.KindOf(errs[0]), Msg: strings.Join(texts, "; "),
		Hint: "correct them under tools.mcp, or take them out of the agent's tools",
	}
}

// toolsOf returns the tools of one server that the agent may use. With an error it returns those
// that exist.
func (b *Box) toolsOf(ctx context.Context, server string) ([]*mcp.Tool, error) {
	tools, order, err := b.o.Servers.byName[server].list(ctx)
	if err != nil {
		return nil, err
	}
	var chosen []*mcp.Tool
	var missing error
	has := map[string]bool{}
	choose := func(name string) {
		if !has[name] {
			has[name] = true
			chosen = append(chosen, tools[name])
		}
	}
	for _, r := range b.rules {
		switch {
		case r.Server != server:
		case r.Name == "" && len(order) > maxOffered:
			const msg = "the tool server %q has %d tools, and an agent can be offered %d"
			return nil, swarm.Errorf(swarm.BadInput, msg, server, len(order), maxOffered).
				WithHint("name those that it may use: tools: [%s.%s]", server, order[0])
		case r.Name == "":
			for _, name := range order {
				choose(name)
			}
		default:
			name, ok := findNamed(r, tools, order)
			if !ok {
				missing = swarm.Errorf(swarm.NotFound, "the tool server %q has no tool %s", server, swarm.Quote(r.Name)).
					WithHint("%s", swarm.DidYouMean(r.Name, order))
				continue
			}
			choose(name)
		}
	}
	return chosen, missing
}

// findNamed returns the tool that a rule names, by the server's name for it or by the offered name.
func findNamed(r toolrule.Rule, tools map[string]*mcp.Tool, order []string) (string, bool) {
	if tools[r.Name] != nil {
		return r.Name, true
	}
	for _, name := range order {
		if clean(name) == r.Name || offeredName(r.Server, name, func(string) bool { return false }) == r.Server+"__"+r.Name {
			return name, true
		}
	}
	return "", false
}

// offeredName returns the name under which a model is offered a server's tool. It is unique, and
// valid for models' APIs.
func offeredName(server, tool string, taken func(string) bool) string {
	name := clean(server + "__" + tool)
	for n := 0; len(name) > maxName || taken(name); n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", server, tool, n))
		name = name[:min(len(name), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// clean replaces characters that models' APIs refuse in names.
func clean(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
}

// specOf describes a server's tool to a model. A schema is used for checking only if its evaluation
// is known to end. Otherwise the description carries it, and the server checks the arguments
// itself.
func specOf(name string, t *mcp.Tool) swarm.ToolSpec {
	spec := swarm.ToolSpec{Name: name, Description: cut(t.Description, maxDescription), Schema: json.RawMessage(`{"type":"object"}`)}
	source, err := json.Marshal(t.InputSchema)
	if err != nil || t.InputSchema == nil {
		return spec
	}
	var root struct {
		Type any `json:"type"`
	}
	usable := len(source) <= maxSchema && json.Unmarshal(source, &root) == nil && root.Type == "object"
	if usable {
		_, err = schema.Parse(source)
		usable = err == nil
	}
	if usable {
		spec.Schema = source
	} else {
		spec.Description += "\nIts arguments, in its own words: " + cut(string(source), maxDescription)
		spec.Description = strings.TrimSpace(spec.Description)
	}
	return spec
}

func cut(text string, most int) string {
	return excerpt.Head(strings.ToValidUTF8(text, "\uFFFD"), most)
}
