package turn

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/plan"
	"swarm/internal/prompt"
)

// A person may start a member again when the others have voted and the prompt for the answer is made.
// Then there are reviews and no vote.
func TestReviewsWithoutAVote(t *testing.T) {
	log := newLog(t)
	said := []byte(`{"critiques": [{"answer": "A", "critique": "It is vague."}], "ranking": ["A"]}`)
	end := swarm.CallEnd{Status: swarm.CallOK, Output: swarm.HashOf(said), Action: &swarm.Action{Kind: swarm.ActReview, Judged: []string{"ueno"}, Ranking: []string{"ueno"}}}
	e := swarm.Event{Kind: swarm.TurnEnded, Key: swarm.EndKey("takao/2/1"), Agent: "takao", Turn: "takao/2/1", Data: swarm.Encode(end)}
	if _, err := log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{e}, Bodies: [][]byte{said}}); err != nil {
		t.Fatal(err)
	}
	r := &Runner{Log: log}
	v, err := r.vote(&agentapi.SwarmState{Council: &agentapi.Council{Reviews: []swarm.TurnID{"takao/2/1"}}}, nil)
	if err != nil || v.Best != "" || len(v.Critiques) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	if text := prompt.BuildSynthesis(&prompt.Synthesis{Vote: v}).Text; !strings.Contains(text, "There was no vote.") || !strings.Contains(text, "Of ueno, by takao: It is vague.") {
		t.Errorf("the supervisor is told:\n%s", text)
	}
	v, err = r.vote(&agentapi.SwarmState{Council: &agentapi.Council{Reviews: []swarm.TurnID{"takao/2/1"}, Tally: plan.CountVotes([]string{"takao", "ueno"}, [][]string{{"ueno"}})}}, nil)
	if err != nil || v.Best != "ueno" {
		t.Errorf("with a vote: %+v, %v", v, err)
	}
}
