package run

import (
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/statedir"
)

// PlanFork reads a run and works out a new run that begins where a turn began. Every turn that ended
// before is carried over, as by a retry, with its mail, topics and artifacts. Everything else is done
// again. If edit is not nil, it is the prompt of that turn.
func PlanFork(h *statedir.Home, id swarm.RunID, at string, edit []byte) (*RetryPlan, error) {
	reader, err := OpenReader(h, id)
	if err != nil {
		return nil, err
	}
	t, err := reader.Turn(at)
	_ = reader.Close()
	if err != nil {
		return nil, err
	}
	log, a, v, err := openRetry(h, id)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	point, begun, err := log.Find(swarm.StartKey(t.ID, 1))
	if err == nil && !begun { // it was carried over, or refused before its start
		point, _, err = log.Find(swarm.EndKey(string(t.ID)))
	}
	if err != nil {
		return nil, err
	}
	// An attempt of the same iteration that was cut is not carried over. The first one that is done again
	// stands for the turn.
	task, iteration := plan.OfTurn(t.ID)
	again, kept := t.ID, map[swarm.TurnID]bool{}
	last := map[string]int{} // by task: its last iteration
	for i, part := range a.parts() {
		last[part.Name] = v.At(i).Iterations
	}
	if _, known := last[task]; !known {
		return nil, &StateError{swarm.Errorf(swarm.BadInput, "%s joined the run later, and a fork begins with the agents of the plan", task).
			WithHint("fork the run at an earlier turn of another agent")}
	}
	keeps := func(e *swarm.Event) bool { return e.Seq < point.Seq }
	done := map[string]bool{} // tasks that are carried over whole: those that depend on them find their desks
	for e, err := range swarm.Events(log, 0) {
		if err != nil {
			return nil, err
		}
		if e.Seq >= point.Seq {
			break
		}
		switch e.Kind {
		case swarm.TaskCompleted:
			end, err := swarm.Body[swarm.TaskEnd](e)
			if err != nil {
				return nil, err
			}
			done[e.Task] = end.Iteration == last[e.Task]
		case swarm.TurnEnded:
			end, err := swarm.Body[swarm.CallEnd](e)
			if err != nil {
				return nil, err
			}
			if end.Output != "" {
				kept[e.Turn] = true
			}
		}
	}
	attempt, _ := strconv.Atoi(string(t.ID[strings.LastIndexByte(string(t.ID), '/')+1:]))
	for n := attempt - 1; n > 0 && !kept[swarm.NewTurnID(task, iteration, n)]; n-- {
		again = swarm.NewTurnID(task, iteration, n)
	}
	if err := a.findDesks(h, log, func(name string) bool { return name == task || !done[name] }); err != nil {
		return nil, err
	}
	a.Plan.Edited = nil
	if err := a.collect(log, keeps, point.Seq); err != nil {
		return nil, err
	}
	if edit != nil {
		a.Plan.Edited = &swarm.EditedPrompt{Turn: again, Text: swarm.HashOf(edit)}
		a.Bodies = append(a.Bodies, edit)
	}
	return a, nil
}
