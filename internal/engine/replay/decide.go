package replay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/excerpt"
	"swarm/internal/flow"
)

// The replayed loop has to decide what the recorded one did, in the same order: the facts that it
// tells, the short calls that it makes and the turns that it asks for. Otherwise a changed plan would
// end a replay early, or leave recorded turns out, with every prompt that is left as it was recorded.
//
// A part of the recorded plan is compared by what its own tasks do. The order, and all that is about
// the run as a whole, may differ.

// isDecision reports whether the loop decided a recorded event: it told the fact, or made the short
// call that ended. Facts are addressed to the loop, and are no signals for it.
func (p *player) isDecision(e *swarm.Event) bool {
	if e.To != swarm.ToLoop(p.loop.ID) {
		return false
	}
	switch e.Kind {
	case swarm.CallEnded:
		return true
	case swarm.ApprovalAsked: // that of an agent is a signal
		return e.Key == swarm.AskedKey(swarm.RetryQuestion(string(e.Turn))) || strings.HasPrefix(e.Key, swarm.AskedKey(swarm.PlanQuestion))
	}
	return !engine.IsSignal(e.Kind)
}

// compareFact compares a fact that the loop tells with the recorded one. It returns the mismatch, or
// nil.
func (p *player) compareFact(e *swarm.Event) (*swarm.Error, error) {
	i, recorded := p.at[e.Key]
	if !recorded {
		i = -1
	}
	if recorded {
		was := &p.rec.Events[i]
		same, err := sameDecision(was, e)
		switch {
		case err != nil:
			return nil, err
		case same:
		case p.part && e.Task == "":
			return nil, nil
		default:
			return p.mismatch("the recording has %s, and with the plan of now it is %s%s", describe(was), describe(e), p.changed()), nil
		}
	}
	if recorded && i < p.copied { // It was told before.
		return nil, nil
	}
	return p.compareDecision(describe(e), i), nil
}

// compareDecision compares the place of what the loop decides with the place of the next recorded
// decision, and takes that one off the list. A place of -1 means that it is not recorded, which is right after the last decision of a
// recording that was cut off.
func (p *player) compareDecision(what string, place int) *swarm.Error {
	switch {
	case p.part, len(p.decided) == 0 && place < 0 && !p.ended:
		return nil
	case len(p.decided) == 0:
		return p.missing(what)
	case p.decided[0] != place:
		return p.mismatch("the recording has %s here, and with the plan of now it is %s%s", describe(&p.rec.Events[p.decided[0]]), what, p.changed())
	}
	p.decided = p.decided[1:]
	return nil
}

// compareUndecided compares an event that is about to be copied, or left out, with what the loop has
// decided by now. What the recorded loop decided, and this one has not, is a mismatch.
func (p *player) compareUndecided(i int) *swarm.Error {
	e := &p.rec.Events[i]
	switch {
	case e.Kind == swarm.TurnStarted && !p.asked[e.Turn] && p.isPlanned(e):
	case !p.part && len(p.decided) > 0 && p.decided[0] == i:
	default:
		return nil
	}
	return p.mismatch("the recording has %s here, and with the plan of now it does not happen%s", describe(e), p.changed())
}

// isPlanned reports whether the present plan has the task, or in a team the agent, of a turn. Agents that
// were added while the run went on are in no part of the first plan.
func (p *player) isPlanned(e *swarm.Event) bool {
	return !p.part || p.is != nil && (slices.ContainsFunc(p.is.Tasks, func(t swarm.Task) bool { return t.Name == e.Task }) ||
		p.is.Team != nil && slices.ContainsFunc(p.is.Agents, func(a swarm.Agent) bool { return a.Name == e.Agent }))
}

// sameDecision reports whether two facts with the same key are the same decision. Their sentences
// may differ.
func sameDecision(a, b *swarm.Event) (bool, error) {
	if a.Kind != b.Kind || a.Kind != swarm.RunEnded {
		return a.Kind == b.Kind, nil
	}
	was, err := swarm.Body[swarm.RunEnd](a)
	if err != nil {
		return false, err
	}
	is, err := swarm.Body[swarm.RunEnd](b)
	return was.Status == is.Status && was.Exit == is.Exit, err
}

// describe names an event for people.
func describe(e *swarm.Event) string {
	switch {
	case e.Kind == swarm.RunEnded:
		if end, err := swarm.Body[swarm.RunEnd](e); err == nil {
			return fmt.Sprintf("%s (%s, exit %d)", e.Kind, end.Status, end.Exit)
		}
	case e.Turn != "":
		return fmt.Sprintf("%s of the turn %s", e.Kind, e.Turn)
	case e.Task != "":
		return fmt.Sprintf("%s of %s", e.Kind, e.Task)
	case e.Agent != "":
		return fmt.Sprintf("%s of @%s", e.Kind, e.Agent)
	}
	return string(e.Kind)
}

// compareExpect compares the conditions of a task, or of a team's goal, with the recorded ones. The
// recorded run was checked by those, and a replay cannot check them again: it has no files and starts
// no commands.
func (p *player) compareExpect(c flow.Call) *swarm.Error {
	if c.Kind == flow.KindCheck {
		if p.was == nil || p.is == nil || p.was.Team == nil || p.is.Team == nil || sameExpect(p.was.Team.Expect, p.is.Team.Expect) {
			return nil
		}
		return p.mismatch("team.expect has changed since the run was recorded")
	}
	task := c.Task
	was, is := findTask(p.was, task), findTask(p.is, task)
	if was == nil || is == nil || sameExpect(was.Expect, is.Expect) {
		return nil
	}
	return p.mismatch("tasks.%s.expect was another when its turns were recorded", task)
}

func sameExpect(a, b *swarm.Expect) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.SchemaFile, y.SchemaFile = "", "" // a name for messages
	return x == y
}

func findTask(p *swarm.Plan, name string) *swarm.Task {
	if p == nil {
		return nil
	}
	for i := range p.Tasks {
		if p.Tasks[i].Name == name {
			return &p.Tasks[i]
		}
	}
	return nil
}

// lacks reports whether a plan has not all tasks and agents of the recorded one.
func lacks(was, is *swarm.Plan) bool {
	for _, t := range was.Tasks {
		if findTask(is, t.Name) == nil {
			return true
		}
	}
	return slices.ContainsFunc(was.Agents, func(a swarm.Agent) bool {
		return !slices.ContainsFunc(is.Agents, func(b swarm.Agent) bool { return a.Name == b.Name })
	})
}

// undecisive are the fields of a task by which no loop decides anything: its name, what its turns
// are given, and what is taken from the recorded plan. A changed prompt has a mismatch of its own.
var undecisive = []string{"Name", "Base", "Copy", "Group", "Prompt", "WaitTimeout", "Concurrency", "Timeout", "Model", "Tier", "Env", "Workdir", "Desk"}

// changed lists the keys of the plan that are not as they were recorded, for the end of a message.
// If there are none, the loop of this program decides otherwise.
func (p *player) changed() string {
	var keys []string
	compare := func(where string, was, is reflect.Value, but ...string) {
		for i := range was.NumField() {
			f := was.Type().Field(i)
			if a, b := was.Field(i).Interface(), is.Field(i).Interface(); !slices.Contains(but, f.Name) && !reflect.DeepEqual(a, b) {
				key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				keys = append(keys, where+key+" (was "+value(a)+", now "+value(b)+")")
			}
		}
	}
	if p.was == nil || p.is == nil {
		return ""
	}
	for i := range p.was.Tasks {
		was := &p.was.Tasks[i]
		is := findTask(p.is, was.Name)
		if is == nil {
			continue
		}
		compare("tasks."+was.Name+".", reflect.ValueOf(*was), reflect.ValueOf(*is), undecisive...)
		if a, b := p.was.Groups[was.Group], p.is.Groups[is.Group]; a != b {
			keys = append(keys, fmt.Sprintf("iterations of %s (was %d, now %d)", was.Name, a.Iterations, b.Iterations))
		}
	}
	if p.was.Team != nil && p.is.Team != nil {
		compare("team.", reflect.ValueOf(*p.was.Team), reflect.ValueOf(*p.is.Team), "Done")
	}
	if len(keys) == 0 {
		return ""
	}
	return "; changed since: " + excerpt.List(keys, 5)
}

// value shows a value of a plan.
func value(v any) string {
	text := strings.Trim(string(swarm.Encode(v)), `"`)
	if text == "" || text == "null" {
		return "not set"
	}
	return excerpt.Head(text, 60)
}
