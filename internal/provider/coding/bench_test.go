package coding

import "testing"

// BenchmarkKeptTurn measures a turn of a kept program that answers at once: our own part of a turn,
// and the way there and back.
func BenchmarkKeptTurn(b *testing.B) {
	a := stand(b, "claude-code", "echo")
	r := request(b, "one")
	reply, err := a.Turn(b.Context(), r, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Session, r.Fresh = reply.Session, "two"
	for b.Loop() {
		if _, err := a.Turn(b.Context(), r, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewTurn measures a turn in a process of its own, which is this test's program.
func BenchmarkNewTurn(b *testing.B) {
	a := stand(b, "codex", "echo")
	r := request(b, "one")
	for b.Loop() {
		if _, err := a.Turn(b.Context(), r, nil); err != nil {
			b.Fatal(err)
		}
	}
}
