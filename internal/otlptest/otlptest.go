// Package otlptest is a collector of OpenTelemetry's for tests: it takes OTLP over HTTP, reads it with OpenTelemetry's own messages,
// and shows what it was told as text.
package otlptest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Server is a collector.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	answer   http.HandlerFunc // instead of taking anything; nil = it takes
	spans    []*traces.Span
	metrics  []*metrics.Metric
	resource []string
	headers  []http.Header
	changed  chan struct{} // closed when something came
	ended    chan struct{}
}

// Start starts a collector.
func Start() *Server {
	s := &Server{changed: make(chan struct{}), ended: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	return s
}

// Close ends the collector, and whoever waits for its answer.
func (s *Server) Close() {
	close(s.ended)
	s.Server.CloseClientConnections()
	s.Server.Close()
}

// Answer has the collector take nothing, and answer in this way; nil has it take again.
func (s *Server) Answer(how http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = how
}

// Hang never answers.
func (s *Server) Hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then it is noticed that the client has gone
	select {
	case <-s.ended:
	case <-r.Context().Done():
	}
}

// ServeHTTP takes a request of OTLP's.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	answer := s.answer
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not OTLP", http.StatusUnsupportedMediaType)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err == nil {
		err = s.take(r.URL.Path, b)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (s *Server) take(path string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch path {
	case "/v1/traces":
		var m tracepb.ExportTraceServiceRequest
		if err := whole(body, &m); err != nil {
			return err
		}
		for _, of := range m.ResourceSpans {
			s.resource = pairs(of.Resource.GetAttributes())
			for _, scope := range of.ScopeSpans {
				s.spans = append(s.spans, scope.Spans...)
			}
		}
	case "/v1/metrics":
		var m metricspb.ExportMetricsServiceRequest
		if err := whole(body, &m); err != nil {
			return err
		}
		for _, of := range m.ResourceMetrics {
			s.resource = pairs(of.Resource.GetAttributes())
			for _, scope := range of.ScopeMetrics {
				s.metrics = append(s.metrics, scope.Metrics...)
			}
		}
	default:
		return fmt.Errorf("no such path: %s", path)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// whole reads a message in which nothing is unknown.
func whole(body []byte, m proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
		return err
	}
	if known := proto.Size(m); known != len(body) {
		return fmt.Errorf("the message has %d bytes, and what is known of it %d", len(body), known)
	}
	return nil
}

// Spans are what it was told.
func (s *Server) Spans() []*traces.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// Headers are those of all requests.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.headers)
}

// Resource is who spoke last, as key=value.
func (s *Server) Resource() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.resource)
}

// Wait waits until it was told so many spans.
func (s *Server) Wait(spans int) {
	for {
		s.mu.Lock()
		ok, changed := len(s.spans) >= spans, s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		<-changed
	}
}
