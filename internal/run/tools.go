package run

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/agenttoken"
	"swarm/internal/process"
	"swarm/internal/tool"
	"swarm/internal/turn"
)

// ServeTools starts a server of our tools for the programs of agents.
type ServeTools func(version string, fault func(error)) (swarm.ToolHost, error)

// A toolServer gives the programs of a run's agents our own tools. It opens when the first program
// starts. It uses the server of this process, if there is one, else it starts its own.
type toolServer struct {
	service *agentapi.Service
	tokens  *agenttoken.Tokens
	version string
	fault   func(error)
	shared  swarm.ToolHost // the server of this process; nil = none
	serve   ServeTools

	mu      sync.Mutex // guards the following fields: turns start on several goroutines
	server  swarm.ToolHost
	leave   func() error
	refused []string // agents whose token another process has used
}

// endpoint returns the server as one agent may use it.
func (d *toolServer) endpoint(agent string) (swarm.ToolEndpoint, error) {
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
		leave := server.Admit(d.user)
		d.server, d.leave = server, func() error {
			leave()
			return end()
		}
	}
	return swarm.ToolEndpoint{URL: d.server.URL(), Token: d.tokens.For(agent)}, nil
}

func (d *toolServer) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	return d.leave()
}

// user returns the agent that has a token.
func (d *toolServer) user(token string) (swarm.ToolUser, error) {
	agent, ok := d.tokens.Agent(token)
	if !ok {
		return nil, swarm.Errorf(swarm.Denied, "this token is nobody's in run %s", d.service.Run).
			WithHint("an agent's token is good only while the process that gave it drives the run")
	}
	return toolUser{d.service, agent, token, d}, nil
}

// refuse records that a process showed the token of an agent and was refused: once for each agent,
// because a process could fill the log with it.
func (d *toolServer) refuse(agent string) {
	d.mu.Lock()
	known := slices.Contains(d.refused, agent)
	if !known {
		d.refused = append(d.refused, agent)
	}
	d.mu.Unlock()
	if !known {
		d.fault(swarm.Errorf(swarm.Denied, "a process that is not of @%s's turn used its token, and was refused", agent))
	}
}

// A toolUser is one agent at the tool server.
type toolUser struct {
	service *agentapi.Service
	agent   string
	token   string
	server  *toolServer
}

// Admits refuses connections from processes that the agent's programs have not started: the token
// may be stolen.
func (u toolUser) Admits(conn net.Conn) error {
	err := process.CheckToken(conn, u.token)
	if err != nil {
		u.server.refuse(u.agent)
	}
	return err
}

func (u toolUser) Tools() []swarm.ToolSpec { return u.service.Tools(u.agent) }

// Refuse says why an agent may not use one of our tools.
func (u toolUser) Refuse(tool string) error { return u.service.Refuse(u.agent, tool) }

func (u toolUser) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	handle := u.service.Turn(u.agent)
	if handle == nil {
		return nil, swarm.Errorf(swarm.Denied, "@%s has no turn now, and acts only in a turn", u.agent).WithHint("do it in your next turn")
	}
	return handle.Call(ctx, tool, args)
}

// Aside returns urgent mail for the agent, beside the answer of a tool. An error is dropped here:
// the mail stays unread and goes into a later prompt, and the turn's end reports a broken log.
func (u toolUser) Aside(ctx context.Context, tool string) string {
	handle := u.service.Turn(u.agent)
	if handle == nil {
		return ""
	}
	text, _ := handle.Aside(ctx, tool)
	return text
}

// toolbox opens the tools that an agent that is a model may use beside our own.
func (d *driver) toolbox(a *swarm.Agent, turnID swarm.TurnID) (turn.Toolbox, error) {
	theirs := slices.DeleteFunc(slices.Clone(a.Tools), func(entry string) bool {
		return entry == turn.OurTools || strings.HasPrefix(entry, turn.OurTools+".") || strings.HasPrefix(entry, turn.OurTools+"__")
	})
	root, hidden := cmp.Or(a.Root, d.runner.Workspace, d.start.Dir), []string{d.home.Dir()}
	if root == d.home.WorkPath(d.ID) {
		hidden = nil // it lies in our state, and no path or link leads out of it
	}
	return tool.Open(tool.Options{Root: root, Hidden: hidden, Guard: d.guard, Allow: theirs, Servers: d.servers, Env: a.Env,
		Run: d.ID, Agent: a.Name, Turn: turnID, Trace: d.trace(turnID), Phase: d.phase})
}
