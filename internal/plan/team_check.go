package plan

import "swarm"

// A Check is the state of the check whether a team's goal is reached. The run makes it before it
// counts as completed.
type Check struct {
	Begun   int    `json:"begun,omitempty"`  // checks begun so far
	Failed  int    `json:"failed,omitempty"` // those of them that failed
	Running bool   `json:"running,omitempty"`
	Passed  bool   `json:"passed,omitempty"`  // the last one passed, and no turn has begun since
	Trouble string `json:"trouble,omitempty"` // why the last one failed
	Last    bool   `json:"last,omitempty"`    // something ends the run whatever the check gives
	Dropped bool   `json:"dropped,omitempty"` // there is no further check
	issued  bool   // of the loop: it has asked for the one that runs
}

// checks offers the check of the goal, once all work is done. After a change of owner it offers the
// check that was cut again.
func (t *Team) checks() []TeamStep {
	if t.Check.issued || !t.Check.Running && !t.checkDue() {
		return nil
	}
	t.Check.issued = true
	return []TeamStep{{Kind: CheckGoal, Agent: t.Rules.Lead}}
}

// checkDue says whether the run would count as completed, and its goal has to be checked before. A team
// in which an agent has failed does not count as completed.
func (t *Team) checkDue() bool {
	c := &t.Check
	if t.Rules.Expect == nil || t.Swarm != nil || c.Passed || c.Dropped || c.Running || !t.asleep() || t.inTurn() || t.anyMember((*Member).failed) {
		return false
	}
	switch t.Closing {
	case "", ClosedByBudget: // a budget that runs out with the last turn has held up nothing
		return t.Finished()
	case ClosedByLead, ClosedByPerson:
		return true
	}
	return false
}

// NextCheck is the number of the check that runs, or that begins next.
func (t *Team) NextCheck() int {
	if t.Check.Running {
		return t.Check.Begun
	}
	return t.Check.Begun + 1
}

// Unmet says whether the goal was checked and is not reached.
func (t *Team) Unmet() bool { return t.Rules.Expect != nil && t.Swarm == nil && !t.Check.Passed }

func (t *Team) beginCheck(g swarm.GoalCheck) {
	t.Check.Begun, t.Check.Running, t.Check.Passed = g.Check, true, false
}

// endCheck records how a check ended. One that failed opens the team again, so that its lead can have
// it fixed. It does not if the run ends anyway, or if the check has failed too often.
func (t *Team) endCheck(end swarm.CallEnd) {
	c := &t.Check
	c.Running, c.issued = false, false
	switch lead := t.Member(t.Rules.Lead); {
	case end.Status == swarm.CallOK:
		c.Passed, c.Trouble = true, ""
	case end.Kind == swarm.CutByCancel:
		c.Dropped = true
	case end.Kind == swarm.Mismatch:
		c.Trouble = end.Reason
		t.close(ClosedByStray)
	default:
		c.Failed++
		c.Trouble = end.Reason
		if c.Dropped = c.Dropped || c.Last || c.Failed >= t.Rules.Checks() || lead == nil || lead.End != nil || t.Closing != "" && t.Closing != ClosedByLead; c.Dropped {
			t.close(ClosedByCheck)
			return
		}
		t.Closing, t.Report = "", ""
	}
}
