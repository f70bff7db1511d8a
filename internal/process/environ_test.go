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

// With a shared store, no program and no file gets what opens it. Without one, PGPASSWORD is the user's own.
func TestNoProgramOpensTheStore(t *testing.T) {
	opens := []string{"PGPASSWORD=canary", "PGSSLPASSWORD=canary"}
	for _, store := range []string{"SWARM_STORE=postgres://me:canary@host/db", "SWARM_STORE=", "OTHER=x"} {
		own := append([]string{store}, opens...)
		e, err := NewEnvironment(own, nil)
		if err != nil {
			t.Fatal(err)
		}
		env, err := e.Of(Mark{}, map[string]string{"MINE": "$PGSSLPASSWORD"}, "")
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(env, "\n")
		if shared := strings.Contains(store, "canary"); shared == strings.Contains(all, "canary") || strings.Contains(all, "SWARM_STORE") || !shared && !strings.Contains(all, "MINE=canary") {
			t.Errorf("with %s: %q", store, env)
		}
	}
}

// A key to models is known by its name, also when there are several of one vendor.
func TestIsProviderKey(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "OPENAI_API_KEY_2": true, "OPENAI_API_KEY2": true, "OPENAI2_API_KEY": true, "MY_OPENAI_API_KEY": true, "OPENAI_KEY_PERSONAL": true,
		"openai_api_key": true, "TEAM_A_ANTHROPIC_AUTH_TOKEN_OLD": true, "CLAUDE_CODE_OAUTH_TOKEN": true, "HUGGING_FACE_HUB_TOKEN": true, "MY_HF_TOKEN": true, "CO_API_KEY": true,
		"AI21_API_KEY": true, "AZURE_OPENAI_API_KEY": true, "AWS_BEARER_TOKEN_BEDROCK": true, "AWS_BEARER_TOKEN_BEDROCK_2": true, "GOOGLE_API_KEY_EU": true,

		"OPENAI_API_KEY_FILE": false, "OPENAI_BASE_URL": false, "OPENAI_TOKEN_LIMIT": false, "GOOGLE_MAPS_API_KEY": false, "GITHUB_TOKEN": false, "ACME_CO_KEY": false,
		"OPENAI": false, "KEY": false, "MONKEY": false, "MY_OPENAI": false, "CODEX_HOME": false, "": false,
	} {
		if got := IsProviderKey(name); got != want {
			t.Errorf("IsProviderKey(%q) = %v", name, got)
		}
	}
}
