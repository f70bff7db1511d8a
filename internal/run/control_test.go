package run

import (
	"fmt"
	"testing"

	"swarm"
)

// The last command counts, even while the loop still obeys the one before it.
func TestPauseWanted(t *testing.T) {
	s := newTimelineTest(t)
	wanted := func(want bool, after string) {
		t.Helper()
		if got, err := PauseWanted(s.home, storyID); err != nil || got != want {
			t.Errorf("after %s: %v, %v", after, got, err)
		}
	}
	command := func(w swarm.Command) (seq int64) {
		t.Helper()
		seqs, err := s.log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: w})}})
		if err != nil {
			t.Fatal(err)
		}
		return seqs[0]
	}
	tell := func(kind swarm.EventKind, seq int64) {
		e := swarm.Event{Kind: kind, Key: fmt.Sprintf("%s:%d", kind, seq)}
		appendAll(t, s.log, e)
	}
	wanted(false, "the start")
	pause := command(swarm.CommandPause)
	wanted(true, "pause")
	resume := command(swarm.CommandResume)
	wanted(false, "resume")
	tell(swarm.RunPausing, pause)
	wanted(false, "the pause was obeyed")
	again := command(swarm.CommandPause)
	tell(swarm.RunUnpaused, resume)
	wanted(true, "pause again, and the resume was obeyed")
	tell(swarm.RunPausing, again)
	wanted(true, "the second pause was obeyed")
	tell(swarm.RunUnpaused, command(swarm.CommandResume))
	wanted(false, "it goes on")
	tell(swarm.RunPausing, again+10)
	wanted(true, "it paused by itself")
}
