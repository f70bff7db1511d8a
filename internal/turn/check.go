package turn

import (
	"context"

	"swarm"
	"swarm/internal/flow"
)

// Check checks whether the goal of a team is reached, by the `expect` of its plan, and appends what it
// found. Programs run as those of the lead do: same environment and sandbox, in the folder of the run.
// If a crash cuts a check, the next owner makes it again from the beginning.
func (r *Runner) Check(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	if c.Again { // otherwise no other worker can have ended it
		if e, ok, err := r.Log.Find(swarm.EndKey(c.ID)); err != nil || ok {
			if err != nil {
				return flow.Result{}, err
			}
			return Answer(e)
		}
	}
	w, report, err := r.gatherCheck(c)
	if err != nil {
		return flow.Result{}, err
	}
	verdicts, err := r.checkGoal(ctx, w, report)
	if stop := stopCause(ctx, err); stop != nil {
		return flow.Result{}, stop
	}
	end := swarm.CallEnd{Status: swarm.CallOK}
	if err != nil {
		end = failure(err)
		end.Reason = r.clean(end.Reason)
	}
	end.ID, end.Call, end.Verdicts = c.ID, c.Print(), verdicts
	e := swarm.NewEvent(swarm.CheckEnded, end)
	e.Key, e.To = swarm.EndKey(c.ID), swarm.ToLoop(loop)
	seqs, err := r.Log.Append(context.WithoutCancel(ctx), swarm.Batch{Fence: c.Fence, Events: []swarm.Event{e}})
	if err != nil {
		return flow.Result{}, err
	}
	return flow.Result{CallEnd: end, Seq: seqs[0]}, nil
}

// gatherCheck finds the conditions of a check, and the text that they are about: the lead's report, or
// else its last output.
func (r *Runner) gatherCheck(c flow.Call) (*work, []byte, error) {
	last := c.Ref
	w, err := r.gatherAction(c)
	if err != nil {
		return nil, nil, err
	}
	w.task = &swarm.Task{Name: c.Task, Agent: c.Agent, Expect: w.plan.Team.Expect, Desk: swarm.NoWorker}
	e, ok, err := r.Log.Find(swarm.EndKey(last))
	if err != nil || !ok {
		return w, nil, err
	}
	end, err := Answer(e)
	if err != nil || end.Done {
		return w, []byte(end.Report), err
	}
	if end.Output == "" {
		return w, nil, nil
	}
	text, err := r.Log.Body(end.Output)
	return w, text, err
}

// checkGoal checks all conditions. Cancelling the run cuts it; a command to the lead does not.
func (r *Runner) checkGoal(ctx context.Context, w *work, report []byte) ([]swarm.Verdict, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	if w.c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.c.Timeout, swarm.Errorf(swarm.TimedOut, "the check timed out after %s", w.c.Timeout))
		defer stop()
	}
	defer r.watchControl(flow.Call{ID: w.c.ID, Since: w.c.Since}, cut)()
	if r.Obeyed != nil { // agents may have written what the command runs
		defer r.Obeyed(w.turn, w.c.Agent)()
	}
	verdicts := r.examine(ctx, w, report)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return verdicts, judgeGoal(verdicts)
}
