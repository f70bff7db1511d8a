package api

import (
	"errors"
	"math"
	"net/http"
	"slices"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// A node is the state of an agent. The wire format calls agents nodes.
type node = view.Agent

type nodeList struct {
	Nodes []node `json:"nodes"`
}

func (a *API) listNodes(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "at")
	at := q.number("at", 0, 1, math.MaxInt64)
	if q.err != nil {
		return reply{}, q.err
	}
	p, err := pictureAt(l, at)
	if err != nil {
		return reply{}, err
	}
	return ok(nodeList{p.Agents})
}

// actOnNode applies an action to one agent, if the agent's state allows it.
func (a *API) actOnNode(r *http.Request) (reply, error) {
	action := r.PathValue("action")
	if !slices.Contains(run.Actions, action) {
		return reply{}, swarm.Errorf(swarm.NotFound, "an agent cannot be told to %s", swarm.Quote(action)).WithHint("%s", swarm.DidYouMean(action, run.Actions))
	}
	if err := errors.Join(ask(r).err, readBody(r, &struct{}{})); err != nil {
		return reply{}, err
	}
	id, err := a.steerable(r, a.Control.Lookup)
	if err != nil {
		return reply{}, err
	}
	result, err := a.Control.Act(r.Context(), id, r.PathValue("agent"), run.Action(action))
	return reply{http.StatusAccepted, result}, err
}
