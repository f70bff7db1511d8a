package turn

import (
	"testing"

	"swarm"
)

// Only a timeout with an open question names that question.
func TestBlame(t *testing.T) {
	late, cancelled := swarm.Errorf(swarm.TimedOut, "timed out after 1s"), swarm.Errorf(swarm.CutByCancel, "cancelled")
	var u unanswered
	if got := u.explainCut(late, ""); got != error(late) {
		t.Errorf("nothing was asked: %v", got)
	}
	if got, want := u.explainCut(late, "the server failed (500): runner died").Error(), "timed out after 1s; the last request failed: the server failed (500): runner died"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	u.add(swarm.Approval{ID: "q1", What: "run make"})
	if got := u.explainCut(cancelled, "the server failed"); got != error(cancelled) {
		t.Errorf("it was cancelled: %v", got)
	}
	if got, want := u.explainCut(late, "").Error(), "timed out after 1s: nobody answered whether it may run make"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	u.remove("q1")
	if got := u.explainCut(late, ""); got != error(late) {
		t.Errorf("it was answered: %v", got)
	}
}
