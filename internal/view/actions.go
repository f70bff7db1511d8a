package view

import (
	"cmp"
	"slices"
	"time"

	"swarm"
)

// keptActions is the number of actions that a fold keeps of the run, and of each task and agent. A
// fold must not grow with the log. [Collect] has all actions.
const keptActions = 20

// An Action is an answer to an approval, or a command to the run, and the person or agent that gave
// it.
type Action struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Verb string    `json:"word"` // approve, deny, or the command
	// Target is the approval's id, or the command's task, agent or turn; "" = the whole run.
	Target string `json:"target,omitempty"`
	Task   string `json:"task,omitempty"` // of an answer: the task that asked
	Reason string `json:"reason,omitempty"`
	swarm.Actor
}

// On reports whether the action is about a task, its agent, or the whole run.
func (a Action) On(task, agent string) bool {
	return a.Task == task && task != "" || a.Task == "" && (a.Target == "" || a.Target == task || a.Target == agent)
}

// String describes the action: "approve code/1/1/x by ada (terminal)".
func (a Action) String() string {
	text := a.Verb
	if a.Target != "" {
		text += " " + a.Target
	}
	return text + by(a.Actor)
}

// actionOf returns the answer or the command in an event.
func actionOf(e *swarm.Event) (Action, error) {
	if e.Kind == swarm.Control {
		c, err := swarm.Body[swarm.ControlCommand](e)
		return Action{Seq: e.Seq, Time: e.Time, Verb: string(c.Command), Target: c.Target, Actor: c.Actor}, err
	}
	a, err := swarm.Body[swarm.ApprovalAnswer](e)
	did := Action{Seq: e.Seq, Time: e.Time, Verb: "deny", Target: a.ID, Task: e.Task, Reason: a.Reason, Actor: a.Actor}
	if a.OK {
		did.Verb = "approve"
	}
	return did, err
}

// keepAction folds an answer or a command. It drops the oldest action on the same task or agent if
// there are too many. Actions on turns are not kept, because turns grow with the log.
func (r *Run) keepAction(e *swarm.Event) error {
	did, err := actionOf(e)
	if err != nil || did.By == "" { // earlier versions did not name the actor
		return err
	}
	on := cmp.Or(did.Task, did.Target)
	_, isTask := r.find(on)
	_, isAgent := r.agentAt[on]
	if on != "" && !isTask && !isAgent {
		return nil
	}
	if r.actions == nil {
		r.actions = map[string][]Action{}
	}
	kept := append(r.actions[on], did)
	r.actions[on] = kept[max(0, len(kept)-keptActions):]
	return nil
}

// ActionsOn returns the newest actions on a task, its agent and the whole run, oldest first.
func (r *Run) ActionsOn(task, agent string) (on []Action) {
	names := []string{"", task, agent}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for _, a := range r.actions[name] {
			if a.On(task, agent) {
				on = append(on, a)
			}
		}
	}
	slices.SortFunc(on, func(a, b Action) int { return cmp.Compare(a.Seq, b.Seq) })
	return on
}
