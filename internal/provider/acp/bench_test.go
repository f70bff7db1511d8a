package acp_test

import (
	"testing"

	"swarm"
)

// BenchmarkLaterTurn is a whole turn of an agent that is there already, and answers at once: what is measured is ours and its.
func BenchmarkLaterTurn(b *testing.B) {
	h := newTheatre(b, "good")
	r := h.request("say hello")
	first, err := h.turn(r)
	if err != nil {
		b.Fatal(err)
	}
	r.Session, r.Fresh = first.Session, r.Prompt
	for b.Loop() {
		if _, err := h.agent.Turn(b.Context(), r, func(swarm.Delta) {}); err != nil {
			b.Fatal(err)
		}
	}
}
