package run

import (
	"testing"
	"time"

	"swarm"
	"swarm/internal/view"
)

// A countingLog counts what is read of a log.
type countingLog struct {
	swarm.RunLog
	events int // read in order
	folds  int // stored folds that were loaded
}

func (l *countingLog) LoadFold(name, version string) (int64, []byte, bool) {
	l.folds++
	return l.RunLog.LoadFold(name, version)
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

// TestOneTurnNeedsNoFold: the fold of a run is as large as its plan, which may have 100,000 tasks.
func TestOneTurnNeedsNoFold(t *testing.T) {
	s := newTimelineTest(t)
	s.event(swarm.TaskStarted, "a", "", swarm.Iteration{Iteration: 1, Of: 1})
	s.start("a/1/1", 1)
	log := &countingLog{RunLog: s.reader.log}
	s.reader.log = log
	last := func(want swarm.TurnID, folds int) {
		t.Helper()
		if turn, err := s.reader.Turn("a"); err != nil || turn.ID != want || log.folds != folds {
			t.Errorf("the last turn is %s (%v), after %d folds, want %s after %d", turn.ID, err, log.folds, want, folds)
		}
	}
	last("a/1/1", 0)
	s.end("a/1/1", "")
	last("a/1/1", 0)
	s.start("a/1/2", 1)
	last("a/1/2", 0)
	s.end("a/1/2", "")
	s.end("a/1/3", "") // it was refused before its start
	last("a/1/3", 0)
	if _, err := s.reader.Turn("a/9"); err == nil || log.folds != 1 {
		t.Errorf("an unknown turn: %v, %d folds", err, log.folds)
	}
}

// The summary of a run has its pauses, so that a list of runs shows the time that the run took.
func TestSummaryHasPauses(t *testing.T) {
	began := time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)
	p := view.Picture{Head: view.Head{Started: began, Ended: began.Add(time.Hour), Paused: 50 * time.Minute}}
	if took := summarize(p).Elapsed(time.Now()); took != 10*time.Minute {
		t.Errorf("it took %s", took)
	}
	p.Ended, p.Since = time.Time{}, began.Add(52*time.Minute)
	if took := summarize(p).Elapsed(time.Now()); took != 2*time.Minute {
		t.Errorf("while it is paused it has taken %s", took)
	}
}
