package telemetry

import (
	"strings"
	"testing"
)

// Ids never change: one version may begin a run and another end it.
func TestIds(t *testing.T) {
	trace := traceOf("20261115-082333-0j05me3")
	got := traceparent(trace, spanOf(trace, "turn", "code/2/1"), true)
	if want := "00-426d982b47aecd8fe7b7175e47b869d5-420a5ad6fea9f1f6-01"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if spanOf(trace, "turn", "code/2/1") == spanOf(traceOf("other"), "turn", "code/2/1") || spanOf(trace, "turn", "x") == spanOf(trace, "run", "x") {
		t.Error("two things have one span")
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("00-00000000000000000000000000000000-00f067aa0ba902b7-01")
	f.Add("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
	f.Fuzz(func(t *testing.T, text string) {
		trace, span, ok := readTraceparent(text)
		if !ok {
			return
		}
		again := traceparent(trace, span, true)
		if len(text) < len(again) || text[3:52] != again[3:52] || strings.HasPrefix(text, "00") && len(text) != len(again) {
			t.Fatalf("%q was read as %q", text, again)
		}
	})
}

func TestTraceparent(t *testing.T) {
	for text, want := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":      false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7":         false,
		"": false,
	} {
		if _, _, ok := readTraceparent(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}
