package view

import (
	"encoding/json"
	"testing"

	"swarm"
)

// The cost of folding a run with 1,000 tasks × 50 iterations, 200,000 events. A million events
// cost five times as much. The floor is a loop over the same events that looks up their tasks.
func BenchmarkFold(b *testing.B) {
	s := newSim(b, 1, chain(1000, 50))
	s.calm = true
	events := s.run()
	b.Run("apply", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fold(b, New("r1"), events)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
	b.Run("floor", func(b *testing.B) {
		tasks := map[string]int{}
		for _, e := range events {
			tasks[e.Task]++
		}
		for b.Loop() {
			for i := range events {
				tasks[events[i].Task]++
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			for i := range events {
				switch events[i].Kind {
				case swarm.TurnStarted:
					var v swarm.TurnStart
					_ = json.Unmarshal(events[i].Data, &v)
				case swarm.TurnEnded:
					var v swarm.CallEnd
					_ = json.Unmarshal(events[i].Data, &v)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
}

func BenchmarkStored(b *testing.B) {
	s := newSim(b, 1, chain(1000, 2))
	s.calm = true
	r := fold(b, New("r1"), s.run())
	stored := r.Marshal()
	b.Run("unmarshal", func(b *testing.B) {
		b.SetBytes(int64(len(stored)))
		for b.Loop() {
			if _, err := Unmarshal(stored); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("marshal", func(b *testing.B) {
		for b.Loop() {
			r.Marshal()
		}
	})
	b.Run("picture", func(b *testing.B) {
		for b.Loop() {
			r.Picture()
		}
	})
}
