package run

import (
	"testing"

	"swarm"
)

// A countingLog counts the events that are read in order.
type countingLog struct {
	swarm.RunLog
	events int
}

func (l *countingLog) Scan(after int64, f func(*swarm.Event) error) error {
	return l.RunLog.Scan(after, func(e *swarm.Event) error {
		l.events++
		return f(e)
	})
}

func (l *countingLog) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	events, err := l.RunLog.Read(after, limit, to...)
	l.events += len(events)
	return events, err
}

// TestWhyReadsTheFoldOnly: the log of a long run may have a million events.
func TestWhyReadsTheFoldOnly(t *testing.T) {
	s := newTimelineTest(t)
	s.event(swarm.TaskStarted, "a", "", swarm.Iteration{Iteration: 1, Of: 1})
	s.event(swarm.Control, "", "", swarm.ControlCommand{Command: swarm.CommandPause, Actor: swarm.Actor{By: swarm.ByPerson, User: "ada"}})
	v, err := s.reader.Fold()
	if err == nil {
		err = storeFold(s.log, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.event(swarm.Control, "", "", swarm.ControlCommand{Command: swarm.CommandResume, Actor: swarm.Actor{By: swarm.ByPerson, User: "ada"}})
	log := &countingLog{RunLog: s.reader.log}
	s.reader.log = log
	why, err := s.reader.Why("a")
	if err != nil || len(why.Actions) != 2 || why.Actions[1].String() != "resume by ada" {
		t.Errorf("why: %+v, %v", why, err)
	}
	if log.events != 1 {
		t.Errorf("%d events were read, want the one after the stored fold", log.events)
	}
}
