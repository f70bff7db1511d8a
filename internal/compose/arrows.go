package compose

import (
	"fmt"
	"maps"
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
	Previous  bool            `json:"previous,omitempty"`  // of the iteration before: the task does not wait for it
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
	after := b.allDependencies()
	for _, t := range b.Plan.Tasks {
		reads, err := readsOf(&t, texts, known)
		if err != nil {
			return nil, err
		}
		waits := map[string]bool{}
		for _, d := range t.DependsOn {
			waits[d.Task] = true
			all = append(all, Arrow{From: d.Task, To: t.Name, Condition: d.Condition, Reads: slices.Contains(reads, d.Task)})
		}
		for _, from := range reads {
			if !waits[from] {
				all = append(all, Arrow{From: from, To: t.Name, Reads: true, Previous: !after[t.Name][from]})
			}
		}
	}
	return all, nil
}

// allDependencies returns, by task, the tasks that it waits for: its dependencies, and theirs.
func (b *Bundle) allDependencies() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	tasks := map[string]*swarm.Task{}
	for i := range b.Plan.Tasks {
		tasks[b.Plan.Tasks[i].Name] = &b.Plan.Tasks[i]
	}
	var of func(name string) map[string]bool
	of = func(name string) map[string]bool {
		if all[name] == nil && tasks[name] != nil {
			all[name] = map[string]bool{}
			for _, d := range tasks[name].DependsOn {
				all[name][d.Task] = true
				maps.Copy(all[name], of(d.Task))
			}
		}
		return all[name]
	}
	for name := range tasks {
		of(name)
	}
	return all
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
