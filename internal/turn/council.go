package turn

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/prompt"
	"swarm/internal/review"
)

// answers returns the answers that a member of a council judges, under letters. The caller holds the
// runner's mutex.
func (r *Runner) answers(w *work, state *agentapi.SwarmState) (all []prompt.Judged, err error) {
	results, err := r.results(state)
	if err != nil {
		return nil, err
	}
	w.judged = state.Council.Judged
	for n, agent := range w.judged {
		at := slices.IndexFunc(results, func(res prompt.Result) bool { return res.Agent == agent })
		if at < 0 {
			return nil, swarm.Errorf(swarm.Storage, "the council has no member %s", swarm.Quote(agent))
		}
		all = append(all, prompt.Judged{Letter: review.Letter(n), Text: prompt.Anonymous(agent, strings.TrimSpace(results[at].Text+"\n"+results[at].Report)), Turn: results[at].Turn})
	}
	return all, nil
}

// vote returns the vote of a council as the prompt for the answer shows it; nil = no council. The task of
// each result is the query itself, so it is left out.
func (r *Runner) vote(state *agentapi.SwarmState, results []prompt.Result) (*prompt.CouncilVote, error) {
	c := state.Council
	if c == nil {
		return nil, nil
	}
	for i := range results {
		results[i].Task = ""
	}
	v := &prompt.CouncilVote{Result: cmp.Or(c.Tally.String(), "none: a member works again"), Tie: c.Tally.Tie}
	if len(c.Reviews) > 0 && len(c.Tally.Votes) > 0 { // a person may have started a member again meanwhile
		v.Best = c.Tally.Votes[0].Agent
	}
	for _, turn := range c.Reviews {
		critiques, err := r.critiques(turn)
		if err != nil {
			return nil, err
		}
		v.Critiques = append(v.Critiques, critiques...)
	}
	return v, nil
}

// critiques returns what a member of a council said about the answers of the others.
func (r *Runner) critiques(turn swarm.TurnID) (all []prompt.Critique, err error) {
	e, ok, err := r.Log.Find(swarm.EndKey(string(turn)))
	if err != nil || !ok {
		return nil, swarm.Errorf(swarm.Storage, "the log has no end of the turn %s: %w", turn, err)
	}
	end, err := Answer(e)
	if err != nil {
		return nil, err
	}
	text, err := r.Log.Body(end.Output)
	if err != nil {
		return nil, err
	}
	said, err := review.Read(string(text), len(end.Action.Judged))
	if err != nil { // a secret in it was replaced after it was read
		return nil, nil //nolint:nilerr // see above
	}
	for n, critique := range said.Critiques {
		if critique != "" {
			all = append(all, prompt.Critique{Of: end.Action.Judged[n], By: e.Agent, Text: critique, Turn: turn})
		}
	}
	return all, nil
}

// Folder is the folder of a swarm's agent that names no root; "" = it has none. A member of a council
// has one of its own, unless a person has named one for all.
func (r *Runner) Folder(agent string) string {
	if r.Workspace == "" {
		return r.Files(agent)
	}
	return r.Workspace
}

// Files is the folder with the report and the long results of a swarm's agent; "" = it has none. The
// members of a council do not see those of each other.
func (r *Runner) Files(agent string) string {
	if r.Apart != "" {
		return filepath.Join(r.Apart, agent)
	}
	return r.Workspace
}
