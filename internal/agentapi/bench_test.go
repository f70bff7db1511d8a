package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
)

// BenchmarkSend measures one send_handoff from the call to the answer, next to the bare append of
// the same event.
func BenchmarkSend(b *testing.B) {
	log, err := sqlite.Create(filepath.Join(b.TempDir(), "run.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(b.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.PlanAdded, Data: swarm.Encode(team)}}}); err != nil {
		b.Fatal(err)
	}
	h := (&Service{Log: log}).BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	_, stop := log.Watch(swarm.ToControl) // as every turn does
	defer stop()
	var sending, bare time.Duration
	n := 0
	for b.Loop() {
		n++
		args := json.RawMessage(fmt.Sprintf(`{"to":"coder","message":"message %d","structured":{"files":["a.go","b.go"],"n":%d},"response":{"expectation":"optional"}}`, n, n))
		start := time.Now()
		if _, err := h.Call(context.Background(), "send_handoff", args); err != nil {
			b.Fatal(err)
		}
		sending += time.Since(start)
		e := swarm.Event{Kind: swarm.HandoffStored, To: "@bare", Key: fmt.Sprint("bare:", n), Agent: "planner", Task: "plan", Turn: "plan/1/1", Data: args}
		start = time.Now()
		if _, err := log.Append(context.Background(), swarm.Batch{Events: []swarm.Event{e}}); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(start)
	}
	b.ReportMetric(float64(sending.Microseconds())/float64(n), "µs/send")
	b.ReportMetric(float64(bare.Microseconds())/float64(n), "µs/bare-append")
}

// BenchmarkLongInbox reads an inbox of 1,000 and of 100,000 envelopes, 100 at a time as turns do,
// from a log that was just opened. The cost per envelope is the same.
func BenchmarkLongInbox(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "run.db")
			log, err := sqlite.Create(path)
			if err != nil {
				b.Fatal(err)
			}
			for i := 0; i < n; i += 500 {
				var batch swarm.Batch
				for j := range 500 {
					id := fmt.Sprint("m-", i+j)
					e := swarm.Envelope{Kind: swarm.Handoff, ID: id, FromNodeID: "planner", ToNodeID: "coder", Payload: swarm.Payload{Message: "message " + id}}
					batch.Events = append(batch.Events, swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent("coder"), Key: swarm.MailKey(id), Agent: "planner", Data: swarm.Encode(e)})
				}
				if _, err := log.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				log, err := sqlite.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				s, after, got := &Service{Log: log}, int64(0), 0
				for {
					items, err := s.Unread("coder", after, 100)
					if err != nil {
						b.Fatal(err)
					}
					if len(items) == 0 {
						break
					}
					got, after = got+len(items), items[len(items)-1].Seq
				}
				if err := log.Close(); err != nil || got != n {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/envelope")
		})
	}
}
