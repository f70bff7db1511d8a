package turn

import (
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// The kept end of a long answer may say something else than the whole: here, done.
func TestALongAnswerIsNotReadFromItsEnd(t *testing.T) {
	w := &work{c: flow.Call{Want: plan.WantAction}, spec: swarm.ProviderSpec{Kind: providerkind.Script}}
	end := `{"action": "done", "response": "x"}`
	err := (&Runner{}).checkAnswer(w, provider.Reply{Output: []byte(end), Bytes: 150_000})
	if err == nil || !strings.Contains(err.Error(), "150000 bytes") || w.done {
		t.Errorf("%v, done: %v", err, w.done)
	}
	if err := (&Runner{}).checkAnswer(w, provider.Reply{Output: []byte(end), Bytes: int64(len(end))}); err != nil || !w.done {
		t.Errorf("whole: %v, done: %v", err, w.done)
	}
}

// An answer that the limit of tokens ended says so. An iteration's is read as it is.
func TestACutAnswerOfASwarmSaysSo(t *testing.T) {
	for want, marked := range map[plan.Want]bool{plan.WantAnswer: true, plan.WantAction: false} {
		w := &work{c: flow.Call{Want: want}, spec: swarm.ProviderSpec{Kind: providerkind.Script}}
		got := w.finishAnswer(provider.Reply{Output: []byte("The US"), Bytes: 6, Short: true})
		if has := strings.Contains(string(got.Output), "breaks off here"); has != marked || got.Bytes != int64(len(got.Output)) {
			t.Errorf("%s: %q, %d bytes", want, got.Output, got.Bytes)
		}
	}
}

// What a model thought is no part of its answer, and blanks are no answer.
func TestTheAnswerOfASwarmHasNoThoughts(t *testing.T) {
	w := &work{c: flow.Call{Want: plan.WantAnswer}, spec: swarm.ProviderSpec{Kind: providerkind.Script}}
	for said, want := range map[string]string{
		"<think>Hm. [zz/1]</think>\nIt is 42.":         "It is 42.",
		"Hm.</think>\n\nIt is 42.":                     "It is 42.",
		"Models write <think> and </think> around it.": "Models write <think> and </think> around it.",
		"<think>I was cut off":                         "",
		" \n\u200b":                                    "\u200b",
	} {
		reply := w.finishAnswer(provider.Reply{Output: []byte(said), Bytes: int64(len(said))})
		if err := (&Runner{}).checkAnswer(w, reply); string(reply.Output) != want || (err == nil) != (len(want) > 4) {
			t.Errorf("%q became %q, %v", said, reply.Output, err)
		}
	}
}

// The hint at a timeout names the key that limits the turn.
func TestTheHintAtATimeoutNamesTheKey(t *testing.T) {
	for want, w := range map[string]*work{
		"`timeout`": {plan: &loadedPlan{Plan: &swarm.Plan{}}},
		"each agent more with swarm: {agent_timeout_seconds": {plan: &loadedPlan{Plan: &swarm.Plan{Swarm: &swarm.Swarm{Timeout: time.Minute}}}, c: flow.Call{Want: plan.WantSubtasks}},
		"agent_timeout_seconds":                              {plan: &loadedPlan{Plan: &swarm.Plan{Swarm: &swarm.Swarm{Timeout: time.Minute}, Budget: swarm.Budget{Wall: time.Hour}}}, c: flow.Call{Want: plan.WantAction}},
		"wall: 1h} and swarm":                                {plan: &loadedPlan{Plan: &swarm.Plan{Swarm: &swarm.Swarm{Timeout: time.Minute}, Budget: swarm.Budget{Wall: time.Hour}}}, c: flow.Call{Want: plan.WantAnswer}},
		"wall":                                               {plan: &loadedPlan{Plan: &swarm.Plan{Swarm: &swarm.Swarm{}}}, c: flow.Call{Want: plan.WantAnswer}},
	} {
		if got := w.timeoutHint(); !strings.Contains(got, want) {
			t.Errorf("%q does not name %s", got, want)
		}
	}
	w := &work{task: &swarm.Task{}, plan: &loadedPlan{Plan: &swarm.Plan{Swarm: &swarm.Swarm{Timeout: time.Minute}}}, c: flow.Call{Want: plan.WantSubtasks}}
	if got := w.timeoutError(59_995_581 * time.Microsecond).Error(); got != "timed out after 1m0s" {
		t.Error(got)
	}
}
