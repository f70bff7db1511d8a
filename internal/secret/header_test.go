package secret

import "testing"

func TestHeadersThatOpenACollector(t *testing.T) {
	r := New([]string{
		"OTEL_EXPORTER_OTLP_HEADERS=x-api-key=canary-0123, Authorization=Bearer%20canary-4567",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS=x=canary-89ab",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
	}, nil)
	for in, want := range map[string]string{
		"a canary-0123 b":                   "a [secret OTEL_EXPORTER_OTLP_HEADERS] b",
		"Bearer canary-4567":                "[secret OTEL_EXPORTER_OTLP_HEADERS]",
		"only canary-4567":                  "only [secret OTEL_EXPORTER_OTLP_HEADERS]",
		"as it stands Bearer%20canary-4567": "as it stands [secret OTEL_EXPORTER_OTLP_HEADERS]",
		"canary-89ab":                       "[secret OTEL_EXPORTER_OTLP_METRICS_HEADERS]",
		"x-api-key http://collector:4318":   "x-api-key http://collector:4318",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}
