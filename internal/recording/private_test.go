package recording_test

import (
	"bytes"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/recording"
	"swarm/internal/sqlite"
)

// A recording says that a person acted, and how, but not who: other people read it.
func TestUserNamesAreNotRecorded(t *testing.T) {
	log, err := sqlite.NewStore(t.TempDir()).Create(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	by := swarm.Actor{By: swarm.ByPerson, How: swarm.HowTerminal, User: "jane-doe"}
	_, err = log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{
		swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: swarm.CommandPause, Actor: by}),
		swarm.NewEvent(swarm.ApprovalAnswered, swarm.ApprovalAnswer{ID: "q", OK: true, Reason: "why not", Actor: by})}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := recording.Write(&b, recording.Header{Run: "run"}, log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"word":"pause","by":"person","how":"terminal"}`, `{"id":"q","ok":true,"reason":"why not","by":"person","how":"terminal"}`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), by.User) {
		t.Errorf("the user is in\n%s", &b)
	}
}
