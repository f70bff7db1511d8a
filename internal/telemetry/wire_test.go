package telemetry

import (
	"testing"

	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Whatever a collector answers is read as OpenTelemetry's own messages read it, or ignored.
func FuzzAnswer(f *testing.F) {
	answer, err := proto.Marshal(&tracepb.ExportTraceServiceResponse{PartialSuccess: &tracepb.ExportTracePartialSuccess{RejectedSpans: 3, ErrorMessage: "too old"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(answer)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte("not a message"))
	f.Fuzz(func(t *testing.T, answer []byte) { rejected(answer) })
}

func TestARefusedPart(t *testing.T) {
	answer, err := proto.Marshal(&metricspb.ExportMetricsServiceResponse{PartialSuccess: &metricspb.ExportMetricsPartialSuccess{RejectedDataPoints: 300, ErrorMessage: "too old"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, why := rejected(answer); n != 300 || why != "too old" {
		t.Errorf("%d, %q", n, why)
	}
	if n, why := rejected(nil); n != 0 || why != "" {
		t.Errorf("%d, %q", n, why)
	}
}

// Every kind of value is read back as it was written, zeros too.
func TestValues(t *testing.T) {
	c := &config{version: "v1", resource: []attr{{"text", ""}, {"yes", true}, {"no", false}, {"zero", int64(0)}, {"below", int64(-7)}, {"half", 0.5}, {"none", 0.0}, {"broken", "not \xff UTF-8"}}}
	var m tracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(encodeSpans(c, nil), &m); err != nil {
		t.Fatal(err)
	}
	c.resource[len(c.resource)-1].value = "not \uFFFD UTF-8"
	attrs := m.ResourceSpans[0].Resource.Attributes
	if len(attrs) != len(c.resource) {
		t.Fatalf("%d attributes, not %d", len(attrs), len(c.resource))
	}
	for i, want := range c.resource {
		v := attrs[i].Value
		ok := v.Value != nil
		switch want := want.value.(type) {
		case string:
			ok = ok && v.GetStringValue() == want
		case bool:
			ok = ok && v.GetBoolValue() == want
		case int64:
			ok = ok && v.GetIntValue() == want
		case float64:
			ok = ok && v.GetDoubleValue() == want
		}
		if !ok || attrs[i].Key != want.key {
			t.Errorf("%v became %v", want, attrs[i])
		}
	}
	if scope := m.ResourceSpans[0].ScopeSpans[0]; scope.Scope.Name != "swarm" || scope.Scope.Version != "v1" || scope.SchemaUrl != schemaURL {
		t.Errorf("the scope is %v", scope)
	}
}
