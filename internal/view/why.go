package view

import (
	"fmt"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/plan"
)

// A Chain is a path of waits: each link waits for the next one.
type Chain []Link

// A Link is a task in a chain, and why it does not run. The last one may wait for nothing. An agent
// without a task is a link by itself.
type Link struct {
	Task   string       `json:"task,omitempty"`
	Agent  string       `json:"agent"`
	Status swarm.Status `json:"status"`
	Waits  []Wait       `json:"waits,omitempty"`
	Reason string       `json:"reason,omitempty"`
}

// Why returns the chain of waits that begins with a task or an agent. For an agent, written with or
// without @, it begins with its most telling task.
func (r *Run) Why(name string) (Chain, error) {
	i, ok := r.find(name)
	if !ok || strings.HasPrefix(name, "@") {
		i, ok = r.taskOf(strings.TrimPrefix(name, "@"))
	}
	if agent := r.WorkerOf(name); !ok && agent != "" {
		i, ok = r.find(agent)
	}
	if !ok {
		if a, known := r.idle(strings.TrimPrefix(name, "@")); known {
			return Chain{{Agent: a.Name, Status: a.Status, Reason: "nobody has given it anything to do in this run"}}, nil
		}
		if a, known := r.pendingSpawn(strings.TrimPrefix(name, "@")); known {
			return Chain{{Agent: a.Growth.Spawn.Name, Status: swarm.Pending, Reason: "@" + a.Agent + " asks for it, and nobody has answered: swarm approve " + a.ID}}, nil
		}
		return nil, swarm.Errorf(swarm.BadInput, "no task or agent of run %s is called %q", r.ID, name).WithHint("%s", swarm.DidYouMean(name, r.names()))
	}
	var chain Chain
	for seen := map[int]bool{}; ok; {
		t := r.At(i)
		chain = append(chain, Link{Task: t.Name, Agent: t.Agent, Status: t.Status, Waits: t.Waits, Reason: t.Reason})
		if seen[i] {
			break
		}
		seen[i] = true
		i, ok = r.follow(t.Waits)
	}
	return chain, nil
}

// follow returns the task that the first of some waits leads to, if there is one.
func (r *Run) follow(waits []Wait) (int, bool) {
	if len(waits) == 0 {
		return 0, false
	}
	switch w := waits[0]; w.For {
	case plan.ForDependency, plan.ForAgent:
		return r.find(w.Task)
	case plan.ForAgents, plan.ForReply, plan.ForOutput:
		i, ok := r.taskOf(w.Agent)
		if !ok {
			return 0, false
		}
		st, _ := r.standing(i)
		return i, !st.Ended()
	}
	return 0, false
}

// Cycle returns the cycle at the end of the chain, or nil. Its first and last name are the same.
func (c Chain) Cycle() plan.Path {
	last := len(c) - 1
	for i := range c {
		if i < last && c[i].Task != "" && c[i].Task == c[last].Task {
			return c[i:].Path()
		}
	}
	return nil
}

// taskOf returns the task that says most about the state of an agent. Of ended tasks it is the last
// one.
func (r *Run) taskOf(agent string) (found int, ok bool) {
	best := 0
	for i := range r.tasks {
		if r.tasks[i].Agent != agent {
			continue
		}
		st, _ := r.standing(i)
		if rank := Telling(st); !ok || rank > best || rank < 0 && best < 0 {
			found, best, ok = i, rank, true
		}
	}
	return found, ok
}

// idle returns an agent of the run that has no task.
func (r *Run) idle(name string) (Agent, bool) {
	for _, a := range r.agents {
		if a.Name == name {
			a.Status = swarm.Idle
			return a, true
		}
	}
	return Agent{}, false
}

// pendingSpawn returns the open approval for a new agent of this name.
func (r *Run) pendingSpawn(name string) (Approval, bool) {
	i := slices.IndexFunc(r.Approvals, func(a Approval) bool { return a.Growth != nil && a.Growth.Spawn != nil && a.Growth.Spawn.Name == name })
	if i < 0 {
		return Approval{}, false
	}
	return r.Approvals[i], true
}

func (r *Run) names() []string {
	var names []string
	for i := range r.tasks {
		names = append(names, r.tasks[i].Name)
	}
	for i := range r.agents {
		names = append(names, "@"+r.agents[i].Name)
	}
	return names
}

// Path returns the names in order.
func (c Chain) Path() plan.Path {
	var p plan.Path
	for _, l := range c {
		p = append(p, l.Task)
	}
	return p
}

// String returns the chain as text, one line for each link.
func (c Chain) String() string {
	var b strings.Builder
	for _, l := range c {
		switch {
		case len(l.Waits) > 0:
			fmt.Fprintf(&b, "%s waits for %s\n", l.Task, Waiting(l.Waits))
		case l.Status.Ended() && l.Reason != "":
			fmt.Fprintf(&b, "%s is %s: %s\n", l.Task, l.Status, l.Reason)
		default:
			fmt.Fprintf(&b, "%s is %s\n", l.Task, l.Status)
		}
	}
	return b.String()
}

// Waiting names some waits in one line.
func Waiting(waits []Wait) string {
	const most = 3
	var names []string
	for i, w := range waits {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(waits)-most))
			break
		}
		names = append(names, w.String())
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}
