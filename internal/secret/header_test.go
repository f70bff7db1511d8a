package secret

import "testing"

func TestHeadersThatOpenACollector(t *testing.T) {
	r := New([]string{
		"OTEL_EXPORTER_OTLP_HEADERS=x-api-key=canary-0123, Authorization=Bearer%20canary-4567",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS=x=canary-89ab",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://me:canary%2Dcdef@collector:4318/v1?team=a&key=canary+0246#top",
		"OTEL_EXPORTER_ZIPKIN_ENDPOINT=https://canary-1357@zipkin:9411",
	}, nil)
	for in, want := range map[string]string{
		"a canary-0123 b":                   "a [secret OTEL_EXPORTER_OTLP_HEADERS] b",
		"Bearer canary-4567":                "[secret OTEL_EXPORTER_OTLP_HEADERS]",
		"only canary-4567":                  "only [secret OTEL_EXPORTER_OTLP_HEADERS]",
		"as it stands Bearer%20canary-4567": "as it stands [secret OTEL_EXPORTER_OTLP_HEADERS]",
		"canary-89ab":                       "[secret OTEL_EXPORTER_OTLP_METRICS_HEADERS]",
		"x-api-key http://collector:4318":   "x-api-key http://collector:4318",
		"canary%2Dcdef or canary-cdef":      "[secret OTEL_EXPORTER_OTLP_TRACES_ENDPOINT] or [secret OTEL_EXPORTER_OTLP_TRACES_ENDPOINT]",
		"key=canary+0246 or canary 0246":    "key=[secret OTEL_EXPORTER_OTLP_TRACES_ENDPOINT] or [secret OTEL_EXPORTER_OTLP_TRACES_ENDPOINT]",
		"canary-1357@zipkin:9411":           "[secret OTEL_EXPORTER_ZIPKIN_ENDPOINT]@zipkin:9411",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}
