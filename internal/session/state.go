package session

import (
	"strings"

	"swarm"
	"swarm/internal/line"
	"swarm/internal/plan"
	"swarm/internal/repl"
	"swarm/internal/view"
)

// An AgentState is where an agent stands, in the seed's words.
type AgentState struct {
	Name  string
	Word  string   // executing, starting, waiting, blocked or idle
	Asks  string   // of a blocked one: what for, and how it is allowed
	Whom  []string // of a waiting one: for whom, as it is shown: "@pm", "@pm (no output yet)"
	Task  string   // the one that it does, or waits with
	Queue int      // tasks of it that have not begun, beside that one
}

func (a AgentState) String() string {
	if a.Asks != "" {
		return "@" + a.Name + ": blocked: " + a.Asks
	}
	if len(a.Whom) > 0 {
		return "@" + a.Name + ": waiting for " + strings.Join(a.Whom, ", ")
	}
	return "@" + a.Name + ": " + a.Word
}

// AgentStates are the agents of a session in the team's order.
func AgentStates(p view.Picture) []AgentState {
	states := make([]AgentState, len(p.Agents))
	at := map[string]int{}
	for i, a := range p.Agents {
		states[i] = AgentState{Name: a.Name, Word: "idle"}
		at[a.Name] = i
	}
	for _, t := range p.Tasks {
		i, ok := at[t.Agent]
		if !ok || t.Status.Ended() {
			continue
		}
		st := &states[i]
		switch running := t.Status == swarm.Running || t.Status == swarm.Streaming; {
		case running:
			if st.Task != "" {
				st.Queue++
			}
			st.Word, st.Task, st.Whom = "executing", t.Name, nil
		case st.Task != "":
			st.Queue++
		case len(t.Waits) == 0: // it is ready, or its turn was cut and runs again
			st.Word, st.Task = "starting", t.Name
		default:
			st.Word, st.Task, st.Whom = "waiting", t.Name, whom(t.Waits)
		}
	}
	for k := len(p.Approvals) - 1; k >= 0; k-- { // the oldest is said
		q := p.Approvals[k]
		if i, ok := at[q.Agent]; ok && states[i].Task == q.Task && states[i].Word != "waiting" {
			states[i].Word, states[i].Asks = "blocked", repl.Lets(q)
		}
	}
	return states
}

// whom are those that a task waits for, each once.
func whom(waits []view.Wait) (all []string) {
	seen := map[string]bool{}
	for _, w := range waits {
		text := "@" + w.Agent
		switch {
		case w.For == plan.ForOutput:
			text += " (no output yet)"
		case w.Agent == "" || w.For == plan.ForAgent:
			text = w.String()
		}
		if !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}

// standingOf is where every agent stands, as the planning of the next line has to know.
func standingOf(p view.Picture) line.Standing {
	s := line.Standing{Agents: map[string]line.AgentStanding{}}
	for _, t := range p.Tasks {
		a := s.Agents[t.Agent]
		a.Tasks++
		if t.Status.Ended() {
			a.Good = a.Good || t.Status == swarm.Completed
			a.Failed = t.Status != swarm.Completed
		} else {
			s.Open = append(s.Open, openTask(t))
		}
		s.Agents[t.Agent] = a
	}
	return s
}

func openTask(t view.Task) line.OpenTask {
	o := line.OpenTask{Name: t.Name, Agent: t.Agent}
	for _, w := range t.Waits {
		switch w.For {
		case plan.ForDependency:
			o.After = append(o.After, w.Task)
		case plan.ForOutput:
			o.Awaits = append(o.Awaits, w.Agent)
		}
	}
	return o
}
