package api

import (
	"errors"
	"net/http"
	"time"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/plan"
	"swarm/internal/provider"
	"swarm/internal/run"
	"swarm/internal/view"
)

// How an agent can be reached.
const (
	connected    = "connected"    // it has a turn
	idle         = "idle"         // it waits for one
	disconnected = "disconnected" // nobody drives its run
)

// What an agent that has a turn does.
const (
	reading = "reading" // it has its prompt, and has said nothing since
	writing = "writing"
)

// A node is an agent as it lives.
type node struct {
	Name       string       `json:"name"`
	Base       string       `json:"base,omitempty"`
	Provider   string       `json:"provider,omitempty"`
	Model      string       `json:"model,omitempty"`
	Status     swarm.Status `json:"status"` // idle, running, streaming, waiting or blocked
	Task       string       `json:"task,omitempty"`
	Turn       string       `json:"turn,omitempty"`  // the one that it has now
	Waits      []view.Wait  `json:"waits,omitempty"` // for whom and why
	Connection string       `json:"connection"`
	Session    string       `json:"session,omitempty"` // its provider's
	Activity   time.Time    `json:"last_activity,omitzero"`
	Stream     string       `json:"stream,omitempty"` // reading or writing, when it is connected
	Usage      swarm.Usage  `json:"usage,omitzero"`
}

type nodeList struct {
	Nodes []node `json:"nodes"`
}

func (a *API) listNodes(r *http.Request, l *run.Look) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	nodes, err := nodesOf(l)
	if err != nil {
		return reply{}, err
	}
	return ok(nodeList{nodes})
}

func nodesOf(l *run.Look) ([]node, error) {
	driven := l.Driven()
	p, err := l.Picture()
	if err != nil {
		return nil, err
	}
	tasks := map[string]view.Task{}
	for _, t := range p.Tasks {
		tasks[t.Name] = t
	}
	nodes := []node{}
	for _, ag := range p.Agents {
		n := node{Name: ag.Name, Base: ag.Base, Provider: ag.Provider, Model: ag.Model, Status: ag.Status, Task: ag.Task, Session: ag.Session,
			Activity: ag.Active, Usage: ag.Usage, Connection: idle}
		if t, ok := tasks[ag.Task]; ok {
			n.Waits = t.Waits
			if t.Status == swarm.Running {
				n.Turn = t.Turn
			}
		}
		switch {
		case !driven || p.Status.Ended():
			n.Connection = disconnected
		case n.Turn != "":
			if err := n.listen(l); err != nil {
				return nil, err
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// listen finds out what the agent does in its turn.
func (n *node) listen(l *run.Look) error {
	n.Connection, n.Stream = connected, reading
	return l.Said(n.Turn, func(said home.Record) error {
		if said.Time.After(n.Activity) {
			n.Activity = said.Time
		}
		if n.Stream = writing; n.Status == swarm.Running && said.Kind == string(provider.DeltaText) {
			n.Status = swarm.Streaming
		}
		return nil
	})
}

// actions are what can be done to an agent.
var actions = []string{"start", "stop", "pause", "reset"}

// actOnNode does something to one agent, if that has a meaning as things stand.
func (a *API) actOnNode(r *http.Request) (reply, error) {
	action := r.PathValue("action")
	known := false
	for _, one := range actions {
		known = known || one == action
	}
	if !known {
		return reply{}, swarm.Errorf(swarm.NotFound, "an agent cannot be told to %s", swarm.Quote(action)).WithHint("%s", swarm.DidYouMean(action, actions))
	}
	if err := errors.Join(ask(r).err, readBody(r, &struct{}{})); err != nil {
		return reply{}, err
	}
	l, err := a.look(r)
	if err != nil {
		return reply{}, err
	}
	defer l.Close()
	n, tasks, err := nodeOf(l, r.PathValue("agent"))
	if err != nil {
		return reply{}, err
	}
	id, err := a.alive(r)
	if err != nil {
		return reply{}, err
	}
	if n.Connection == disconnected {
		return reply{}, conflict("go on with it first: POST /api/v1/runs/"+id+"/resume", "nobody drives run %s", id)
	}
	switch action {
	case "start":
		for _, t := range tasks {
			if heldForPerson(t) {
				return a.say(r, id, swarm.WordRetry, t.Name)
			}
		}
		return reply{}, conflict("it starts by itself as soon as it has work; only after a failure that waits for a person it must be told", "@%s has nothing that it could start", n.Name)
	case "stop":
		for _, t := range tasks {
			if !t.Status.Ended() {
				return a.say(r, id, swarm.WordCancel, n.Name)
			}
		}
		return reply{}, conflict("it has ended what it had to do", "@%s has nothing that could be stopped", n.Name)
	case "reset":
		if n.Turn != "" {
			return a.say(r, id, swarm.WordInterrupt, n.Name)
		}
		return reply{}, conflict("only a turn that runs can be cut and begun again", "@%s has no turn now", n.Name)
	}
	return reply{}, conflict("pause the run: POST /api/v1/runs/"+id+"/pause", "one agent alone cannot be paused")
}

// heldForPerson says whether a task failed and waits for a person.
func heldForPerson(t view.Task) bool {
	return t.Status == swarm.Waiting && len(t.Waits) > 0 && t.Waits[0].For == plan.ForPerson
}

// nodeOf is an agent of a run, and its tasks.
func nodeOf(l *run.Look, name string) (found node, tasks []view.Task, err error) {
	nodes, err := nodesOf(l)
	if err != nil {
		return node{}, nil, err
	}
	p, err := l.Picture()
	if err != nil {
		return node{}, nil, err
	}
	var names []string
	for _, n := range nodes {
		if n.Name == name {
			for _, t := range p.Tasks {
				if t.Agent == name {
					tasks = append(tasks, t)
				}
			}
			return n, tasks, nil
		}
		names = append(names, n.Name)
	}
	return node{}, nil, swarm.Errorf(swarm.NotFound, "run %s has no agent %s", l.ID, swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, names))
}
