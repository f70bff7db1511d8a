package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/providerkind"
)

// A sleepingLog wakes nobody who watches it. It reports when a reader has come to its end.
type sleepingLog struct {
	swarm.RunLog
	read chan struct{}
}

func (*sleepingLog) Watch(...string) (<-chan struct{}, func()) { return nil, func() {} }

func (l *sleepingLog) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	events, err := l.RunLog.Read(after, limit, to...)
	if len(events) == 0 {
		select {
		case l.read <- struct{}{}:
		default:
		}
	}
	return events, err
}

// When a run ends, people are told of its end. What came just before it has no meaning any more. A run
// that was interrupted tells after its resume what it could not tell before.
func TestLastNotification(t *testing.T) {
	s := newTimelineTest(t)
	told := filepath.Join(t.TempDir(), "told")
	log := &sleepingLog{RunLog: s.log}
	d := &driver{Run: &Run{ID: storyID, home: s.home, log: log, start: swarm.RunStart{Dir: t.TempDir()}}, endMatters: true,
		notifier: &swarm.ProviderSpec{Name: providerkind.Notify, Kind: providerkind.Notify, Command: []string{"sh", "-c", `echo "$1" >> "$0"`, told, "{text}"}}}
	during := func(ctx context.Context, events func()) string {
		t.Helper()
		log.read = make(chan struct{}, 1)
		end, err := d.notify(ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-log.read
		events()
		end()
		text, _ := os.ReadFile(told)
		return string(text)
	}
	asks := func(id string) func() {
		return func() { s.event(swarm.ApprovalAsked, "a", "a/1/1", swarm.Approval{ID: id, Tool: "Bash"}) }
	}
	none := func() {}
	during(t.Context(), none)
	asks("a/1/1/q1")()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if got := during(stopped, none); got != "" {
		t.Errorf("an interrupted run tells %q", got)
	}
	if got := during(t.Context(), none); strings.Count(got, "\n") != 1 || !strings.Contains(got, "q1") {
		t.Errorf("after the resume it tells %q", got)
	}
	if got := during(t.Context(), func() {
		asks("a/1/1/q2")()
		s.event(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Completed})
	}); strings.Contains(got, "q2") || !strings.Contains(got, ": completed") {
		t.Errorf("at its end the run tells %q", got)
	}
}
