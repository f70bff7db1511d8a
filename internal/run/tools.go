package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/agenttoken"
	"swarm/internal/tool"
	"swarm/internal/turn"
)

// ServeTools starts a server for the programs of agents.
type ServeTools func(version string, fault func(error)) (swarm.ToolHost, error)

// A door is where the programs of a run's agents find our own tools. It opens when the first of them is started: in the server of
// this process, if it has one, else in one of its own.
type door struct {
	office  *agentapi.Service
	tokens  *agenttoken.Tokens
	secrets *vault
	version string
	fault   func(error)
	shared  swarm.ToolHost // the server of this process; nil = there is none
	serve   ServeTools

	mu     sync.Mutex
	server swarm.ToolHost
	leave  func() error
}

// open is the door as one agent may use it.
func (d *door) open(agent string) (swarm.ToolEndpoint, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		server, end := d.shared, func() error { return nil }
		if server == nil {
			own, err := d.serve(d.version, d.fault)
			if err != nil {
				return swarm.ToolEndpoint{}, err
			}
			server, end = own, own.Close
		}
		leave := server.Admit(d.visitor)
		d.server, d.leave = server, func() error {
			leave()
			return end()
		}
	}
	token := d.tokens.For(agent)
	d.secrets.learn(agent, token)
	return swarm.ToolEndpoint{URL: d.server.URL(), Token: token}, nil
}

func (d *door) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	return d.leave()
}

// visitor is who has a token.
func (d *door) visitor(token string) (swarm.ToolUser, error) {
	agent, ok := d.tokens.Agent(token)
	if !ok {
		return nil, swarm.Errorf(swarm.Denied, "this token is nobody's in run %s", d.office.Run).WithHint("an agent's token is good only while the process that gave it drives the run")
	}
	return visitor{d.office, agent}, nil
}

// A visitor is an agent that comes through the door.
type visitor struct {
	office *agentapi.Service
	agent  string
}

func (v visitor) Tools() []swarm.ToolSpec { return v.office.Tools(v.agent) }

// Refuse says why an agent has not been offered one of our tools.
func (v visitor) Refuse(tool string) error { return v.office.Refuse(v.agent, tool) }

func (v visitor) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	handle := v.office.Turn(v.agent)
	if handle == nil {
		return nil, swarm.Errorf(swarm.Denied, "@%s has no turn now, and acts only in a turn", v.agent).WithHint("do it in your next turn")
	}
	return handle.Call(ctx, tool, args)
}

// Aside is mail that is not to wait. What cannot be told now is told later: who has to know why learns it at the turn's end.
func (v visitor) Aside(ctx context.Context, tool string) string {
	handle := v.office.Turn(v.agent)
	if handle == nil {
		return ""
	}
	text, _ := handle.Aside(ctx, tool)
	return text
}

// toolbox holds what an agent that is a model may use beside our own tools.
func (d *driver) toolbox(a *swarm.Agent, turnID string) (turn.Toolbox, error) {
	theirs := slices.DeleteFunc(slices.Clone(a.Tools), func(entry string) bool {
		return entry == turn.OurTools || strings.HasPrefix(entry, turn.OurTools+".") || strings.HasPrefix(entry, turn.OurTools+"__")
	})
	root := a.Root
	if root == "" {
		root = d.start.Dir
	}
	return tool.Open(tool.Options{Root: root, Hidden: []string{d.home.Dir()}, Allow: theirs, Servers: d.servers, Env: a.Env, Run: d.ID, Agent: a.Name, Turn: turnID, Trace: d.trace(turnID), Phase: d.phase})
}
