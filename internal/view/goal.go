package view

import (
	"fmt"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
)

// A Goal says how it is seen that the goal of a team is reached, and whether it was checked.
type Goal struct {
	State     GoalState     `json:"state"`
	Expect    *swarm.Expect `json:"expect,omitempty"`    // what the run checks before it is completed
	Checks    int           `json:"checks,omitempty"`    // checks begun
	Failed    int           `json:"failed,omitempty"`    // those of them that failed
	Of        int           `json:"of,omitempty"`        // how many may fail
	Reason    string        `json:"reason,omitempty"`    // why the last one failed
	Unchecked []string      `json:"unchecked,omitempty"` // sentences, which no program can check
}

// A GoalState says whether a goal was checked.
type GoalState string

// The states.
const (
	GoalUnchecked GoalState = "unchecked" // not yet, or there is nothing that a program can check
	GoalChecking  GoalState = "checking"
	GoalPassed    GoalState = "passed" // and no turn has begun since
	GoalFailed    GoalState = "failed"
)

// goal returns how the goal of the run stands; nil = it has none, or nothing says when it is reached.
func (r *Run) goal() *Goal {
	if r.team == nil || r.team.Swarm != nil || r.team.Rules.Expect == nil && len(r.team.Rules.Done) == 0 {
		return nil
	}
	rules, c := &r.team.Rules, &r.team.Check
	g := &Goal{State: GoalUnchecked, Expect: rules.Expect, Checks: c.Begun, Failed: c.Failed, Reason: c.Trouble, Unchecked: rules.Done}
	if g.Expect != nil {
		g.Of = rules.Checks()
	}
	switch {
	case c.Running:
		g.State = GoalChecking
	case c.Passed:
		g.State = GoalPassed
	case c.Trouble != "":
		g.State = GoalFailed
	}
	return g
}

// Lines describes a goal, a line for its check and one for each sentence that is not checked.
func (g *Goal) Lines() (lines []string) {
	if g == nil {
		return nil
	}
	if g.Expect != nil {
		text := "check: " + strings.Join(ExpectParts(g.Expect), ", ") + ": " + string(g.State)
		if g.Failed > 0 {
			text += " (failed checks: " + strconv.Itoa(g.Failed) + ")"
		}
		lines = append(lines, text)
	}
	for _, sentence := range g.Unchecked {
		lines = append(lines, "unchecked: "+sentence)
	}
	return lines
}

// ExpectParts names the parts of an `expect` in a few words each.
func ExpectParts(x *swarm.Expect) (parts []string) {
	for _, part := range []struct{ name, value string }{{"", x.Command}, {"file ", x.File}, {"matches ", x.Matches}, {"schema ", x.SchemaFile}} {
		if part.value != "" {
			parts = append(parts, part.name+excerpt.Head(excerpt.OneLine(part.value), 80))
		}
	}
	return parts
}

// describeCheck describes the beginning or the end of a check.
func describeCheck(e *swarm.Event) string {
	if e.Kind == swarm.CheckStarted {
		g, _ := swarm.Body[swarm.GoalCheck](e)
		return fmt.Sprintf("checks whether the goal is reached (check %d)", g.Check)
	}
	end, _ := swarm.Body[swarm.CallEnd](e)
	switch end.Status {
	case swarm.CallOK:
		return "the check passed"
	case swarm.CallCut:
		return "the check was cut" + excerpt.Reason(end.Reason)
	}
	return "the check failed" + excerpt.Reason(end.Reason)
}
