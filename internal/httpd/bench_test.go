package httpd

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := Start(Options{Listen: "127.0.0.1:0"})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkCall makes one call over HTTP with a real client.
func BenchmarkCall(b *testing.B) {
	h := open(b)
	s := h.client(b, "planner")
	for b.Loop() {
		if _, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "keep", Arguments: json.RawMessage(`{"text":"x"}`)}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSession opens a session and abandons it, like a killed program. The session stays in
// memory until others replace it.
func BenchmarkSession(b *testing.B) {
	h := open(b)
	for b.Loop() {
		h.begin(b, "planner")
	}
	b.StopTimer()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc+m.StackInuse)/maxSessions, "B/session-left")
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
}
