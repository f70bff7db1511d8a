package turn

import (
	"bytes"
	"strings"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// A sessionKnowledge is what the prompts of an agent's session have told it beside its mail. A turn that continues the
// session is sent what is new only.
type sessionKnowledge struct {
	packs  map[string]swarm.TurnID // refs of context packs, and the turn that brought each
	topics int64                   // the newest topic entry
}

// published is what the team has published, as the turn's prompt tells it. A remote agent is told nothing:
// what leaves the run for another's server is what was sent along an edge.
func (r *Runner) published(w *work) (all []prompt.Finding, err error) {
	if k := w.kind(); r.AgentAPI == nil || k.Person || k.Tools == providerkind.NoTools {
		return nil, nil
	}
	newest := int64(agentapi.Newest)
	if w.begun != nil {
		newest = w.begun.Topics
	}
	found, upto, err := r.AgentAPI.Findings(newest)
	if err != nil {
		return nil, err
	}
	w.topics = upto
	known := int64(0)
	if w.session != "" {
		known = r.fold.given[w.c.Agent].topics
	}
	for _, f := range found {
		all = append(all, prompt.Finding{Agent: f.Agent, Turn: f.Turn, Topic: f.Topic, Text: f.Text, Known: f.Seq <= known})
	}
	return all, nil
}

// What stands in the start of a turn that tells something, as we write it: a long log is not read word by word.
var (
	fromPack   = []byte(`{"from":"` + prompt.FromPack + `"`)
	withTopics = []byte(`"topics":`)
)

// begin notes what the prompt of a turn tells.
func (l *logFold) begin(e *swarm.Event) error {
	if !bytes.Contains(e.Data, fromPack) && !bytes.Contains(e.Data, withTopics) {
		delete(l.begun, e.Agent)
		return nil
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	now := sessionKnowledge{packs: map[string]swarm.TurnID{}, topics: start.Topics}
	for _, s := range start.Spans {
		if s.From == prompt.FromPack {
			for _, ref := range strings.Fields(s.Name) {
				now.packs[ref] = e.Turn
			}
		}
	}
	put(&l.begun, e.Agent, now)
	return nil
}

// give notes what an agent's session was told when a turn has ended. A turn that failed may not have come
// to read its prompt.
func (l *logFold) give(e *swarm.Event, end swarm.CallEnd) {
	if end.Session == "" {
		return
	}
	if end.Forgotten || l.sessions[e.Agent] != end.Session {
		delete(l.given, e.Agent) // another session
	}
	if end.Forgotten || end.Status != swarm.CallOK {
		return
	}
	now, has := l.begun[e.Agent], l.given[e.Agent]
	if has.packs == nil {
		has.packs = map[string]swarm.TurnID{}
	}
	for ref, turn := range now.packs {
		if has.packs[ref] == "" {
			has.packs[ref] = turn
		}
	}
	has.topics = max(has.topics, now.topics)
	put(&l.given, e.Agent, has)
}
