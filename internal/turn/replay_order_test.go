package turn

import (
	"testing"

	"swarm"
	"swarm/internal/mail"
)

// In a replay a note of the loop may come into an inbox earlier than it was recorded. The prompt has the recorded order.
func TestAReplayedInboxHasTheRecordedOrder(t *testing.T) {
	item := func(id string) mail.Item {
		return mail.Item{Envelope: swarm.Envelope{ID: id, FromNodeID: swarm.Orchestrator}}
	}
	items := []mail.Item{item("note"), item("m-1"), item("m-2")}
	sortAsRecorded(items, []string{items[1].Ref(), items[2].Ref(), items[0].Ref()})
	if items[0].ID != "m-1" || items[1].ID != "m-2" || items[2].ID != "note" {
		t.Errorf("%v", items)
	}
}
