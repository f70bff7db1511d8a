package turn

import (
	"strings"

	"swarm/internal/contextpack"
	"swarm/internal/prompt"
)

// packs returns the context packs that came with the turn's mail. Packs that the agent's session
// has seen already stand apart from new ones.
func (r *Runner) packs(w *work) (all []prompt.Pack, err error) {
	if len(w.packs) == 0 {
		return nil, nil
	}
	given, err := r.AgentAPI.Given(w.packs)
	if err != nil {
		return nil, err
	}
	if w.session != "" {
		key := w.sessionKey()
		for i, g := range given {
			if seen := r.fold.given[key].packs[g.Ref]; !r.fold.conversations[key].leavesOut(seen, w.dropped()) {
				given[i].Seen = seen
			}
		}
	}
	for _, part := range contextpack.Together(given) {
		all = append(all, prompt.Pack{Refs: strings.Join(part.Refs, " "), Seen: part.Seen, Text: part.Text})
	}
	return all, nil
}
