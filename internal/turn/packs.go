package turn

import (
	"bytes"
	"strings"

	"swarm"
	"swarm/internal/pack"
	"swarm/internal/prompt"
)

// packs is the context that came with the turn's mail, as its prompt shows it. What the agent's session was given by an earlier turn
// stands apart from what is new to it.
func (h *Hand) packs(w *work) (all []prompt.Pack, err error) {
	if len(w.packs) == 0 {
		return nil, nil
	}
	given, err := h.Office.Given(w.packs)
	if err != nil {
		return nil, err
	}
	if w.session != "" {
		for i, g := range given {
			given[i].Seen = h.ledger.given[w.c.Agent][g.Ref]
		}
	}
	for _, part := range pack.Together(given) {
		all = append(all, prompt.Pack{Refs: strings.Join(part.Refs, " "), Seen: part.Seen, Text: part.Text})
	}
	return all, nil
}

// fromPack is how the span of a pack begins, as we write it: a long log is not read word by word.
var fromPack = []byte(`{"from":"` + prompt.FromPack + `"`)

// begin notes which packs stand in the prompt of a turn.
func (l *ledger) begin(e *swarm.Event) error {
	if !bytes.Contains(e.Data, fromPack) {
		delete(l.begun, e.Agent)
		return nil
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	if l.begun == nil {
		l.begun, l.given = map[string][]string{}, map[string]map[string]string{}
	}
	l.begun[e.Agent] = nil
	for _, s := range start.Spans {
		if s.From == prompt.FromPack {
			l.begun[e.Agent] = append(l.begun[e.Agent], strings.Fields(s.Name)...)
		}
	}
	return nil
}

// give notes which packs an agent's session has when a turn has ended. A turn that failed may not have come to read its prompt.
func (l *ledger) give(e *swarm.Event, end swarm.CallEnd) {
	if end.Session == "" {
		return
	}
	if end.Forgotten || l.sessions[e.Agent] != end.Session {
		delete(l.given, e.Agent) // another session
	}
	if end.Forgotten || end.Status != swarm.CallOK {
		return
	}
	for _, ref := range l.begun[e.Agent] {
		if l.given[e.Agent] == nil {
			l.given[e.Agent] = map[string]string{}
		}
		if l.given[e.Agent][ref] == "" {
			l.given[e.Agent][ref] = e.Turn
		}
	}
}
