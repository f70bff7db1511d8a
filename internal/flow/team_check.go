package flow

import (
	"strconv"
	"time"

	"swarm"
)

// maxCheck is the longest time that one check of a goal may take.
const maxCheck = 30 * time.Minute

// checkGoal has the goal checked. A check that was cut with its process is asked for again under its
// id, and is told once.
func (t *team) checkGoal() error {
	n := t.NextCheck()
	if !t.Check.Running {
		err := t.tell(Fact{Kind: swarm.CheckStarted, Key: swarm.CheckStartedKey(n), Body: swarm.GoalCheck{Check: n, Of: t.Rules.Checks()}})
		if err != nil {
			return err
		}
	}
	c := Call{ID: swarm.CheckID(n), Kind: KindCheck, Agent: t.Rules.Lead, Task: t.Rules.Lead, Iteration: n, Attempt: 1, Since: t.seen, Timeout: maxCheck, Reissued: true}
	if lead := t.Member(t.Rules.Lead); lead != nil {
		c.Plan, c.Ref = lead.Ref, string(lead.Turn)
	}
	return t.fx.Go(c)
}

// checkEnded tells the lead why the goal is not reached, and gives it a turn, unless the run ends.
func (t *team) checkEnded(r Result) error {
	switch {
	case r.Status == swarm.CallOK, r.Kind == swarm.CutByCancel:
		return nil
	case r.Kind == swarm.Mismatch:
		t.stopFor(swarm.Mismatch)
		return nil
	case t.Check.Dropped:
		return nil
	}
	told := swarm.NewMessage(swarm.ToldCheck, strconv.Itoa(t.Check.Begun), strconv.Itoa(t.Rules.Checks()), r.Reason)
	_, err := t.write(Call{ID: "urge/" + r.ID, Kind: KindUrge, Agent: t.Rules.Lead, Note: told})
	return err
}

// endUnmet ends a run whose goal is not reached by its check.
func (t *team) endUnmet(end swarm.RunEnd) (Result, error) {
	end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitFailed, t.Check.Trouble
	if t.stop == "" {
		t.stop = swarm.Unexpected
		end.Why = new(swarm.NewMessage(swarm.GoalUnmet, strconv.Itoa(t.Check.Failed), t.Check.Trouble))
	}
	return t.end(end)
}
