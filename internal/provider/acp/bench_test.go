package acp_test

import (
	"testing"

	"swarm"
)

// BenchmarkLaterTurn measures a whole turn of an agent that is running already and answers at once.
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
