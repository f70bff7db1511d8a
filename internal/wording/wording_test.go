package wording

import (
	"strings"
	"testing"

	"swarm"
)

// Every code has a sentence, with a place for each of its arguments.
func TestEveryMessageHasItsSentence(t *testing.T) {
	args := map[swarm.MessageCode]int{swarm.ToldSameOutput: 1, swarm.ToldSameAction: 2, swarm.ToldSameMail: 2, swarm.ToldOnlyTwo: 3, swarm.ToldUnsent: 4, swarm.ToldCheck: 3, swarm.GoalUnmet: 2,
		swarm.BackFailed: 1, swarm.StallSameOutput: 2, swarm.StallSameAction: 3, swarm.StallSameMail: 4, swarm.StallOnlyTwo: 3, swarm.StallUnsent: 3, swarm.Undivided: 1, swarm.Unanswered: 1, swarm.NotReplanned: 1, swarm.NotReviewed: 1,
		swarm.StallShared: 5, swarm.WaitsForPaused: 1}
	for _, code := range swarm.MessageCodes {
		m := swarm.Message{Code: code}
		for n := range args[code] {
			m.Args = append(m.Args, "<"+string(rune('a'+n))+"> {1}") // what an agent said is not a place
		}
		text := Text(m)
		for _, arg := range m.Args {
			if !strings.Contains(text, arg) {
				t.Errorf("%s: %q does not say %q", code, text, arg)
			}
		}
		if text == "" || strings.Contains(strings.ReplaceAll(text+Hint(m), "> {1}", ""), "{") {
			t.Errorf("%s: %q (%q)", code, text, Hint(m))
		}
	}
	if got := Text(swarm.NewMessage("newer", "a", "b")); got != "newer a b" {
		t.Errorf("a message of a newer program is %q", got)
	}
}
