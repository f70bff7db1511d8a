package sqlite

import (
	"testing"

	"swarm"
)

// TestALogWithOldNamesIsReadWithCurrentOnes: a log that an older version wrote has kinds and keys
// that were renamed since. Folds and resumed loops see the current ones.
func TestALogWithOldNamesIsReadWithCurrentOnes(t *testing.T) {
	l, path := create(t)
	_, err := l.Append(t.Context(), swarm.Batch{Events: []swarm.Event{
		{Kind: swarm.Notice, Key: "agent_started:not a restart"},
		{Kind: "agent_started", Key: "agent_started:coder:1", Agent: "coder", To: swarm.ToLoop("root")}}})
	must(t, err)
	must(t, l.Close())
	l, err = Open(path)
	must(t, err)
	defer l.Close()
	check := func(how string, e *swarm.Event) {
		t.Helper()
		if e.Seq == 2 && (e.Kind != swarm.AgentRestarted || e.Key != swarm.RestartedKey("coder:1")) || e.Seq == 1 && e.Key != "agent_started:not a restart" {
			t.Errorf("%s: event %d is a %s with the key %s", how, e.Seq, e.Kind, e.Key)
		}
	}
	events, err := l.Read(0, 9)
	must(t, err)
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	for i := range events {
		check("read", &events[i])
	}
	must(t, l.Scan(0, func(e *swarm.Event) error {
		check("scanned", e)
		return nil
	}))
}
