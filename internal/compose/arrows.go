package compose

import (
	"fmt"
	"slices"

	"swarm"
	"swarm/internal/prompt"
)

// An Arrow leads from a task to one that waits for it, or reads its output.
type Arrow struct {
	From      string          `json:"from"`
	To        string          `json:"to"`
	Condition swarm.Condition `json:"condition,omitempty"` // of a dependency
	Reads     bool            `json:"reads"`               // its prompt has the output
}

// Arrows returns the dependencies and the reads between tasks, in the order of the tasks that the
// arrows lead to.
func (b *Bundle) Arrows() ([]Arrow, error) {
	texts := b.texts()
	known := map[string]bool{}
	for _, t := range b.Plan.Tasks {
		known[t.Name] = true
	}
	all := []Arrow{}
	for _, t := range b.Plan.Tasks {
		reads, err := readsOf(&t, texts, known)
		if err != nil {
			return nil, err
		}
		waits := map[string]bool{}
		for _, d := range t.DependsOn {
			waits[d.Task] = true
			all = append(all, Arrow{d.Task, t.Name, d.Condition, slices.Contains(reads, d.Task)})
		}
		for _, from := range reads {
			if !waits[from] {
				all = append(all, Arrow{From: from, To: t.Name, Reads: true})
			}
		}
	}
	return all, nil
}

// readsOf returns the tasks whose outputs the task's prompt has, each once.
func readsOf(t *swarm.Task, texts map[swarm.Hash][]byte, known map[string]bool) (reads []string, err error) {
	tpl, err := prompt.Unmarshal(texts[t.Prompt])
	if err != nil {
		return nil, err
	}
	for _, ref := range tpl.Refs() {
		from := ref.Name
		if ref.Kind == "input" {
			from = t.Inputs[from]
		}
		if copied := fmt.Sprintf("%s.%d", from, t.Copy); t.Copy > 0 && known[copied] {
			from = copied
		}
		if known[from] && !slices.Contains(reads, from) {
			reads = append(reads, from)
		}
	}
	return reads, nil
}
