package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/provider"
)

// growthCrashes has two agents request new agents while the team works. A person allows one
// request, with changes, and denies the other. After a crash at any append there is one new agent,
// it gets its instructions once, and each requester gets one answer.
func growthCrashes(t *testing.T, run Subject) {
	var last *harness
	everywhere(t, run, func(b *harness) func(context.Context, provider.Request) (string, error) {
		last = b
		return func(ctx context.Context, r provider.Request) (string, error) {
			call := func(tool, args string) error {
				_, err := r.Call(ctx, tool, json.RawMessage(args))
				return err
			}
			var err error
			switch r.Turn {
			case "lead/1/1":
				err = errors.Join(call("spawn_node", `{"name":"other","instructions":"help","edges":["a"]}`), call("send_handoff", `{"to":"a","message":"begin"}`))
			case "a/1/1":
				b.decide("lead", agentapi.Decision{OK: true, Edit: []byte(`{"name":"helper","instructions":"help","edges":["a"]}`)})
				err = call("send_handoff", `{"to":"b","message":"ask"}`)
			case "b/1/1":
				err = call("spawn_node", `{"name":"second","instructions":"help"}`)
			case "helper/1/1":
				err = call("send_handoff", `{"to":"a","message":"found"}`)
			case "a/2/1":
				b.decide("b", agentapi.Decision{Reason: "one is enough"})
			}
			return "out of " + string(r.Turn), err
		}
	}, "approval_asked lead lead/1/1", "approval_answered lead lead/1/1", "turn_ended helper helper/1/1", "turn_ended lead lead/2/1", "turn_ended b b/2/1", "task_completed helper")
	if got := last.received("lead"); len(got) != 2 || !strings.HasPrefix(got[1], "Granted: helper has joined") || !strings.Contains(got[1], `name is "helper" instead of "other"`) {
		t.Errorf("lead was told %q", got)
	}
	if got := last.received("b"); len(got) != 2 || !strings.HasPrefix(got[1], "Denied: one is enough.") {
		t.Errorf("b was told %q", got)
	}
}

// decide answers a growth request as a person, from a process of its own. A repeated answer after
// the crash is refused as already given, which is fine.
func (h *harness) decide(agent string, d agentapi.Decision) {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadWrite)
	h.check(err)
	defer log.Close()
	events, err := log.Read(0, 1<<20)
	h.check(err)
	asked := slices.IndexFunc(events, func(e swarm.Event) bool { return e.Kind == swarm.ApprovalAsked && e.Agent == agent })
	if asked < 0 {
		h.t.Fatalf("%s has asked for nothing", agent)
	}
	id := strings.TrimPrefix(events[asked].Key, swarm.AskedKey(""))
	if err := (&agentapi.Service{Run: "run", Log: log}).Decide(h.t.Context(), id, d); !errors.Is(err, agentapi.ErrAnswered) {
		h.check(err)
	}
}

// received returns the messages in an agent's inbox.
func (h *harness) received(agent string) (messages []string) {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadOnly)
	h.check(err)
	defer log.Close()
	events, err := log.Read(0, 1<<20, swarm.ToAgent(agent))
	h.check(err)
	for _, e := range events {
		env, err := swarm.Body[swarm.Envelope](&e)
		h.check(err)
		messages = append(messages, env.Payload.Message)
	}
	return messages
}
