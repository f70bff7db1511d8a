package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarm"
)

// A Wait is one reason why a task does not run.
type Wait struct {
	For      WaitFor   `json:"for"`                // the kind
	Task     string    `json:"task,omitempty"`     // the task that it waits for, or that is in its way
	Agent    string    `json:"agent,omitempty"`    // the agent that it waits for
	Provider string    `json:"provider,omitempty"` // the provider whose limit it waits for
	Since    time.Time `json:"since,omitzero"`     // when the wait began, if known
	Until    time.Time `json:"until,omitzero"`     // when the wait ends by itself
	Reason   string    `json:"reason,omitempty"`   // details
	Question string    `json:"question,omitempty"` // the message that Reason names, if a person has to answer it
}

// WaitFor is the kind of a wait.
type WaitFor string

// The kinds of waits.
const (
	ForDependency  WaitFor = "dependency"  // Task has not ended
	ForAgent       WaitFor = "agent"       // Agent is busy with Task
	ForConcurrency WaitFor = "concurrency" // the limit of concurrent copies is reached
	ForOutput      WaitFor = "output"      // Agent has no output yet
	ForSlot        WaitFor = "slot"        // the limit of concurrent turns is reached
	ForRoom        WaitFor = "room"        // other turns have reserved what is left of the budget
	ForRetry       WaitFor = "retry"       // the next attempt comes at Until
	ForLimit       WaitFor = "limit"       // the limit of Provider resets at Until
	ForPerson      WaitFor = "person"      // a person has to decide
	ForPause       WaitFor = "pause"       // the run is paused, or Agent if it is set
	ForMail        WaitFor = "mail"        // it has no mail
	ForAgents      WaitFor = "wait_for"    // its turn waits until Agent is done
	ForReply       WaitFor = "reply"       // Agent owes a reply to the message that Reason names
	ForWorker      WaitFor = "worker"      // an external worker has to work at the desk that Reason names
)

func (w Wait) String() string {
	switch w.For {
	case ForDependency:
		return w.Task
	case ForAgent:
		return fmt.Sprintf("@%s, busy with %s", w.Agent, w.Task)
	case ForOutput:
		return fmt.Sprintf("@%s (no output yet)", w.Agent)
	case ForConcurrency:
		return fmt.Sprintf("a place among the copies of %s", w.Task)
	case ForSlot:
		return "a free slot"
	case ForRoom:
		return "room in the budget"
	case ForRetry:
		return "its next attempt"
	case ForLimit:
		return w.Provider + "'s limit until " + ResetTime(w.Until, w.Since)
	case ForPerson:
		return "a person: " + w.Reason
	case ForPause:
		if w.Agent != "" {
			return fmt.Sprintf("@%s to be resumed", w.Agent)
		}
		return "the run to be resumed"
	case ForAgents:
		return fmt.Sprintf("@%s (%s)", w.Agent, w.Reason)
	case ForReply:
		switch {
		case w.Agent == swarm.User && w.Question != "":
			return fmt.Sprintf("you to answer %q: swarm reply %s \"…\"", w.Question, w.Reason)
		case w.Agent == swarm.User:
			return "a person to answer " + w.Reason
		}
		return fmt.Sprintf("@%s to answer %s", w.Agent, w.Reason)
	case ForMail:
		return "mail"
	case ForWorker:
		text := "an external worker at " + w.Reason
		if !w.Until.IsZero() {
			text += " until " + ResetTime(w.Until, w.Since)
		}
		return text
	}
	return string(w.For)
}

// ResetTime formats the time at which a limit resets or a wait ends: the time of day in the local
// zone, with the date if the date differs from that of since.
func ResetTime(until, since time.Time) string {
	until, since = until.Local(), since.Local()
	if until.YearDay() == since.YearDay() && until.Year() == since.Year() {
		return until.Format("15:04")
	}
	return until.Format("2006-01-02 15:04")
}

// A Path is a list of names, printed with arrows.
type Path []string

func (p Path) String() string { return strings.Join(p, " → ") }

// Len is the number of tasks.
func (s *Schedule) Len() int { return len(s.nodes) }

// Group is the index of the i-th task's group, counted over all plans.
func (s *Schedule) Group(i int) int { return s.nodes[i].group }

// Task is the i-th task, as its plan has it.
func (s *Schedule) Task(i int) *swarm.Task { return s.nodes[i].task }

// Status is the i-th task's state in the current iteration of its group.
func (s *Schedule) Status(i int) swarm.Status { return s.nodes[i].status }

// Begun says whether the i-th task has had a turn in this iteration.
func (s *Schedule) Begun(i int) bool { return s.nodes[i].started }

// Find returns the index of the task with this name.
func (s *Schedule) Find(name string) (int, bool) {
	i, ok := s.at[name]
	return i, ok
}

func (s *Schedule) has(name string) bool {
	_, ok := s.at[name]
	return ok
}

// Iteration is the current iteration of the i-th task's group.
func (s *Schedule) Iteration(i int) int { return s.groups[s.nodes[i].group].iteration }

// Iterations is the number of iterations of the i-th task's group.
func (s *Schedule) Iterations(i int) int { return s.groups[s.nodes[i].group].iterations }

// GroupIterations is the number of iterations of a group.
func (s *Schedule) GroupIterations(group int) int { return s.groups[group].iterations }

// Blocked says whether the i-th task waits for dependencies, or for the first output of an agent.
func (s *Schedule) Blocked(i int) bool {
	return s.nodes[i].status == swarm.Pending && s.nodes[i].open > 0
}

// Standing is the i-th task's status as it is shown. A pending task that something keeps from
// running shows as waiting.
func (s *Schedule) Standing(i int) (swarm.Status, []Wait) {
	st := s.nodes[i].status
	if st != swarm.Pending && st != swarm.Waiting {
		return st, nil
	}
	waits := s.Waits(i)
	if len(waits) == 0 {
		return swarm.Pending, nil
	}
	return swarm.Waiting, waits
}

// Waits lists what the i-th task waits for, or nil.
func (s *Schedule) Waits(i int) []Wait {
	n := &s.nodes[i]
	switch {
	case n.status == swarm.Waiting:
		return []Wait{*n.why}
	case n.status != swarm.Pending:
		return nil
	}
	var waits []Wait
	for _, d := range n.deps {
		if n.open > 0 && !s.settled(i, d.node) {
			on := s.nodes[d.node].task
			waits = append(waits, Wait{For: ForDependency, Task: on.Name, Agent: on.Agent})
		}
	}
	for _, agent := range n.task.Awaits {
		if !s.good[agent] {
			waits = append(waits, Wait{For: ForOutput, Agent: agent})
		}
	}
	switch {
	case waits != nil:
	case s.paused:
		waits = []Wait{{For: ForPause}}
	case n.agent.paused:
		waits = []Wait{{For: ForPause, Agent: n.task.Agent}}
	case s.held(n) != nil:
		waits = []Wait{s.held(n).wait()}
	case n.agent.inside >= n.agent.most:
		waits = []Wait{{For: ForAgent, Agent: n.task.Agent, Task: s.nodes[n.agent.last].task.Name}}
	case n.cap != nil && n.cap.inside >= n.cap.most:
		waits = []Wait{{For: ForConcurrency, Task: baseName(n.task)}}
	case s.limit > 0 && s.running >= s.limit:
		waits = []Wait{{For: ForSlot}}
	case s.running > 0 && !n.called && s.crowded():
		waits = []Wait{{For: ForRoom}}
	}
	return waits
}

// OfTurn splits the id of a turn into its task and iteration.
func OfTurn(turn swarm.TurnID) (task string, iteration int) {
	task, iteration, _ = SplitTurn(turn)
	return task, iteration
}

// SplitTurn splits the id of a turn as [swarm.NewTurnID] made it.
func SplitTurn(turn swarm.TurnID) (task string, iteration, attempt int) {
	parts := strings.Split(string(turn), "/")
	if len(parts) != 3 {
		return string(turn), 0, 0
	}
	iteration, _ = strconv.Atoi(parts[1])
	attempt, _ = strconv.Atoi(parts[2])
	return parts[0], iteration, attempt
}
