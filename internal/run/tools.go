package run

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/agenttoken"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
	"swarm/internal/process"
	"swarm/internal/providerkind"
	"swarm/internal/station"
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
// may be stolen. A connection that its client has closed is refused as well, and not reported. Which
// process has closed it is not known: codex ends its MCP session by a last request, and then itself.
func (u toolUser) Admits(conn net.Conn) error {
	err := process.CheckToken(conn, u.token)
	if err != nil && !process.IsClosed(conn) {
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
	own, inState := d.runner.Files(a.Name), d.start.Workspace == d.home.WorkPath(d.ID) || d.runner.Apart != ""
	o := tool.Options{Root: cmp.Or(a.Root, d.runner.Folder(a.Name), d.start.Dir), Hidden: []string{d.home.Dir()}, Guard: d.guard, Allow: theirs, Servers: d.servers, Env: a.Env,
		Run: d.ID, Agent: a.Name, Turn: turnID, Trace: d.trace(turnID), Phase: d.phase}
	_, o.Iteration, o.Attempt = plan.SplitTurn(turnID)
	switch {
	case own == "":
	case o.Root == own && inState:
		o.Hidden = nil // it lies in our state, and no path or link leads out of it
		if !holdsHome(d.start.Dir) {
			o.Below = tool.Below{Path: d.start.Dir, Hidden: []string{d.home.Dir()}, Project: true, About: "the files of the person who asks"}
		}
	default:
		o.Below = tool.Below{Path: own, About: "the files of your team, such as reports and results"}
		if d.runner.Apart != "" {
			o.Below.About = "your own files, such as results"
		}
		if o.Report = turn.ReportName(a.Name); !inState {
			o.Below.Hidden = o.Hidden
		}
	}
	return tool.Open(o)
}

// holdsHome reports whether a folder has the person's whole home in it, with keys and letters. Agents
// read that only if the file names it as their root.
func holdsHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil || filepath.Clean(home) == "/" { // services often have none
		home = "/"
		if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
			home = u.HomeDir
		}
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, home)
	return err == nil && filepath.IsLocal(rel)
}

// DescribeFiles says which files the agents of a swarm see that is started in a folder, a line for each
// kind of agent. Programs see what the system lets them see.
func DescribeFiles(p *swarm.Plan, dir string) (lines []string) {
	if p.Swarm == nil {
		return nil
	}
	agents := p.Swarm.Roles
	if len(agents) == 0 {
		agents = []swarm.Agent{p.Swarm.Worker}
	}
	for i := range agents {
		a := &agents[i]
		files := slices.ContainsFunc(a.Tools, func(t string) bool { return strings.HasPrefix(t, "file_") })
		if i := slices.IndexFunc(p.Providers, func(s swarm.ProviderSpec) bool { return s.Name == a.Provider }); !files || i < 0 || providerkind.Of(p.Providers[i].Kind).Tools != providerkind.InProcess {
			continue
		}
		who := "the agents are given"
		if len(p.Swarm.Roles) > 0 {
			who = "@" + a.Name + " is given"
		}
		switch folder := cmp.Or(a.Root, p.Swarm.Workspace); {
		case folder != "":
			who += " the files in " + folder
		case holdsHome(dir):
			who += " none of your files, because this folder has your home in it; start in the folder of a project"
		default:
			who += " the files in " + dir + " to read, without hidden ones and private keys, and a folder of the run to write to"
		}
		lines = append(lines, who)
	}
	return lines
}

// TakenNames returns the names that no agent of a new swarm may get. Its workspace is a person's folder
// and has a report under each of them: the person's, or that of an earlier run.
func TakenNames(s *swarm.Swarm) (names []string) {
	if s.Workspace == "" || s.IsCouncil() { // members of a council write their reports elsewhere
		return nil
	}
	files, _ := os.ReadDir(s.Workspace) // the preflight check reports a folder that cannot be read
	for _, f := range files {
		if name, ok := strings.CutSuffix(strings.ToLower(f.Name()), turn.ReportName("")); ok && station.Is(name) {
			names = append(names, name)
		}
	}
	return names
}

// takenNotice tells a person which reports were there before a swarm began.
func takenNotice(s *swarm.Swarm) swarm.Event {
	const shown = 10
	reports := make([]string, len(s.Taken))
	for i, name := range s.Taken {
		reports[i] = turn.ReportName(name)
	}
	return swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "no agent is named after a report that was in " + s.Workspace + " before the run: " + excerpt.List(reports, shown)})
}

// makeWork makes the folders for the files of a swarm's agents. Each member of a council has one of its
// own, because it answers independently.
func (d *driver) makeWork(p *swarm.Plan) error {
	d.runner.Workspace = d.start.Workspace
	council := p.Swarm != nil && p.Swarm.IsCouncil()
	if d.start.Workspace != d.home.WorkPath(d.ID) && !council {
		return nil
	}
	if err := d.home.MakeWork(d.ID); err != nil || !council {
		return err
	}
	if d.runner.Apart = d.home.WorkPath(d.ID); d.runner.Workspace == d.runner.Apart {
		d.runner.Workspace = ""
	}
	for _, s := range p.Swarm.Subtasks {
		if err := d.home.MakeOwnWork(d.ID, s.Agent); err != nil {
			return err
		}
	}
	return nil
}
