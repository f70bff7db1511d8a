package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// A Question is an open approval with its run.
type Question struct {
	Run swarm.RunID `json:"run"`
	view.Approval
}

// Questions returns the open approvals of the run that ref names, or of all runs that have not
// ended.
func (c *Control) Questions(ref string) ([]Question, error) {
	runs, err := c.asking(ref)
	if err != nil {
		return nil, err
	}
	all := []Question{}
	for _, s := range runs {
		if s.Status.Ended() {
			continue
		}
		p, err := c.Picture(s.ID)
		if err != nil {
			return nil, err
		}
		for _, q := range p.Approvals {
			all = append(all, Question{s.ID, q})
		}
	}
	return all, nil
}

// asking returns the runs that an answer may be meant for.
func (c *Control) asking(ref string) ([]swarm.RunSummary, error) {
	if ref == "" {
		return c.Open()
	}
	s, err := c.Find(ref)
	return []swarm.RunSummary{s}, err
}

// Choose finds the one open approval whose id is id, or begins with it.
//
// Ids are made from turns, and several runs can have the same turns. An answer that is only
// repeated must not become the answer to another run's approval, so Choose fails if one of the runs
// has had its answer already.
func (c *Control) Choose(ref, id, command string) (Question, error) {
	asked, err := c.Questions(ref)
	if err != nil {
		return Question{}, err
	}
	q, err := choose(asked, id, command)
	if err == nil {
		id = q.ID
	} else if q.ID != "" {
		return Question{}, err
	}
	before := c.answered(ref, id)
	if said, ok := errors.AsType[*swarm.Error](before); ok && err == nil {
		said.Hint = fmt.Sprintf("run %s asks the same: swarm %s %s --run %s", q.Run, command, id, q.Run)
	}
	return q, cmp.Or(before, err)
}

// Question finds the open approval that a program names by its whole id, in the named run or in the
// only run that asks it.
func (c *Control) Question(run, id, command string) (Question, error) {
	if run != "" {
		if _, err := c.Lookup(run); err != nil {
			return Question{}, err
		}
	}
	q, err := c.Choose(run, id, command)
	if err == nil && q.ID != id {
		return Question{}, swarm.Errorf(swarm.NotFound, "there is no request %s", swarm.Quote(id)).WithHint("GET /api/v1/approvals lists the open requests")
	}
	return q, err
}

// answered returns an error that says who has answered the approval already, in one of the runs
// that may be meant.
func (c *Control) answered(ref, id string) error {
	runs, err := c.asking(ref)
	if err != nil {
		return err
	}
	for _, s := range runs {
		l, err := c.OpenReader(s.ID)
		if err != nil {
			return err
		}
		how, ok, err := l.Answered(id)
		l.Close()
		if err != nil {
			return err
		}
		if ok {
			return &swarm.Error{Kind: swarm.BadInput, Msg: how + " in run " + string(s.ID), Err: run.ErrAnswered}
		}
	}
	return nil
}

// choose returns the one of some questions that an id means. If several runs ask it, it returns one
// of them with the error.
func choose(asked []Question, id, command string) (Question, error) {
	var found []Question
	var ids, runs []string
	for _, q := range asked {
		if ids = append(ids, q.ID); strings.HasPrefix(q.ID, id) {
			found = append(found, q)
		}
	}
	if slices.Contains(ids, id) {
		found = slices.DeleteFunc(found, func(q Question) bool { return q.ID != id })
	}
	for _, q := range found {
		if q.ID == found[0].ID {
			runs = append(runs, string(q.Run))
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && len(runs) == len(found):
		return found[0], refuse(fmt.Sprintf("say which one is meant: swarm %s %s --run %s", command, found[0].ID, runs[0]),
			"%d runs ask %s: %s", len(runs), found[0].ID, strings.Join(runs, ", "))
	case len(found) > 1:
		return found[0], swarm.Errorf(swarm.BadInput, "%d questions begin with %q", len(found), id).WithHint("write more of it; `swarm approve` lists them")
	case len(ids) == 0:
		return Question{}, swarm.Errorf(swarm.NotFound, "no agent of this folder's runs asks for anything").WithHint("-g looks at the runs of all folders")
	}
	return Question{}, swarm.Errorf(swarm.NotFound, "there is no request %q", id).WithHint("%s", swarm.DidYouMean(id, ids))
}

// MayAnswer refuses a caller that may not answer the approvals of a run.
func (c *Control) MayAnswer(id swarm.RunID) error {
	if k := c.Caller.Key; k != nil && !k.MayApprove {
		return swarm.Errorf(swarm.Denied, "only a person answers what agents ask for: the key %s may not", k.Name).
			WithHint("a person answers: swarm approve; or starts this server with --may-approve")
	}
	return c.Caller.Steer(c.Home, id, "answering what an agent asks for")
}

// PlanText returns the subtasks that a question about a plan is about, as the JSON that a person edits.
func (c *Control) PlanText(id swarm.RunID, approval string) ([]byte, error) {
	r, err := c.OpenReader(id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.PlanText(approval)
}

// Answer answers an approval for the caller. When it returns, the answer is on disk. Only the first
// answer counts.
func (c *Control) Answer(ctx context.Context, id swarm.RunID, approval string, d run.Decision) (CommandResult, error) {
	if err := c.MayAnswer(id); err != nil {
		return CommandResult{}, err
	}
	d.Actor = c.Caller.Actor()
	return CommandResult{id, d.Verb(), approval}, run.Decide(ctx, c.Home, id, approval, d)
}
