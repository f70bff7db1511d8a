package process

import (
	"slices"
	"strings"
	"testing"
)

// A turn's span replaces this process's TRACEPARENT, unless the agent's own `env` sets one. Keys of
// telemetry collectors are passed on only when a file names them.
func TestWhatAProgramIsToldOfTelemetry(t *testing.T) {
	own := []string{"TRACEPARENT=outer", "TRACESTATE=outer", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_HEADERS=key=canary", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=key=canary",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://u:canary@c", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c/v1?key=canary", "OTEL_EXPORTER_JAEGER_PASSWORD=canary"}
	for _, c := range []struct {
		name  string
		mark  Mark
		added map[string]string
		want  []string
	}{
		{"nothing is told to a collector", Mark{}, nil, []string{"TRACEPARENT=outer", "TRACESTATE=outer", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c"}},
		{"a turn has a span", Mark{Trace: "ours"}, nil, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "TRACEPARENT=ours"}},
		{"the file has one", Mark{Trace: "ours"}, map[string]string{"TRACEPARENT": "theirs"}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "TRACEPARENT=theirs"}},
		{"the file names the key", Mark{}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "$OTEL_EXPORTER_OTLP_HEADERS"},
			[]string{"TRACEPARENT=outer", "TRACESTATE=outer", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_HEADERS=key=canary"}},
	} {
		e, err := NewEnvironment(own, nil)
		if err != nil {
			t.Fatal(err)
		}
		env, err := e.Of(c.mark, c.added, "")
		if err != nil {
			t.Fatal(err)
		}
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "SWARM_") })
		if !slices.Equal(env, c.want) {
			t.Errorf("%s: %q, not %q", c.name, env, c.want)
		}
	}
}

func TestHeadersOfAFile(t *testing.T) {
	own := []string{"KEY= k \n", "EMPTY=", "BROKEN=a\nb", "SWARM_TOKEN=ours"}
	for _, c := range []struct{ value, want, missing string }{
		{"plain", "plain", ""},
		{"$KEY", "k", ""},
		{"Bearer $KEY", "Bearer k", ""},
		{"Bearer ${KEY}", "Bearer k", ""},
		{"Bearer $NOWHERE", "", "NOWHERE"},
		{"Bearer $EMPTY", "", "EMPTY"},
		{"Bearer $BROKEN", "", "BROKEN"},
		{"Bearer $SWARM_TOKEN", "", "SWARM_TOKEN"},
	} {
		h, held, missing := Headers(own, map[string]string{"Authorization": c.value})
		if h.Get("Authorization") != c.want || missing != c.missing || (held["KEY"] == "k") != strings.Contains(c.value, "KEY") {
			t.Errorf("%s: %q, with %v, without %q", c.value, h.Get("Authorization"), held, missing)
		}
	}
}
