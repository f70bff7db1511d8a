package session

import (
	"context"
	"fmt"
	"strings"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// answer answers an approval. If which is empty, it lists the open approvals.
func (s *Session) answer(ctx context.Context, d run.Decision, which string) (string, error) {
	p, err := s.Picture()
	switch {
	case err != nil:
		return "", err
	case len(p.Approvals) == 0:
		return "there are no open requests\n", nil
	case which == "":
		var b strings.Builder
		for _, q := range p.Approvals {
			fmt.Fprintf(&b, "%s  @%s wants to %s\n", q.ID, q.Agent, view.DescribeApproval(q.Approval))
		}
		return b.String(), nil
	}
	q, err := choose(p.Approvals, which)
	if err != nil {
		return "", err
	}
	d.Actor = s.team.Actor
	may := "may not"
	if d.OK {
		may = "may"
	}
	return fmt.Sprintf("@%s %s %s\n", q.Agent, may, view.DescribeApproval(q.Approval)), s.run.Decide(ctx, q.ID, d)
}

// choose returns the approval that a person names: the oldest one of an agent, or the only one
// whose id begins so.
func choose(asked []view.Approval, which string) (view.Approval, error) {
	var found []view.Approval
	var ids []string
	agent, isAgent := strings.CutPrefix(which, "@")
	for _, q := range asked {
		switch {
		case q.ID == which, isAgent && q.Agent == agent:
			return q, nil
		case !isAgent && strings.HasPrefix(q.ID, which):
			found = append(found, q)
		}
		ids = append(ids, q.ID)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return view.Approval{}, swarm.Errorf(swarm.BadInput, "%d questions begin with %q", len(found), which).WithHint("write more of it; /approve lists them")
	case isAgent:
		return view.Approval{}, swarm.Errorf(swarm.BadInput, "@%s asks for nothing", agent).WithHint("/approve lists who does")
	}
	return view.Approval{}, swarm.Errorf(swarm.BadInput, "there is no request %q", which).WithHint("%s", swarm.DidYouMean(which, ids))
}
