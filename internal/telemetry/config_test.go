package telemetry

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"swarm"
)

// env is an environment of these variables and no other.
func env(list ...string) func(string) string {
	all := map[string]string{}
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

func TestWhereThingsAreTold(t *testing.T) {
	for _, c := range []struct{ env, traces, metrics string }{
		{"", "", ""},
		{"OTEL_SERVICE_NAME=x", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "http://c:4318/v1/traces", "http://c:4318/v1/metrics"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c/otlp/", "https://c/otlp/v1/traces", "https://c/otlp/v1/metrics"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/here", "http://c/here", ""},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c/here OTEL_EXPORTER_OTLP_ENDPOINT=http://d", "http://d/v1/traces", "http://c/here"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_METRICS_EXPORTER=none", "http://c/v1/traces", ""},
		{"OTEL_TRACES_EXPORTER=otlp", "http://localhost:4318/v1/traces", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_SDK_DISABLED=TRUE", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "http://c/v1/traces", "http://c/v1/metrics"},
	} {
		got, err := read(env(strings.Fields(c.env)...), "v1")
		if err != nil {
			t.Errorf("%q: %v", c.env, err)
			continue
		}
		if got == nil {
			got = &config{}
		}
		for name, x := range map[string]struct {
			got  *target
			want string
		}{"traces": {got.traces, c.traces}, "metrics": {got.metrics, c.metrics}} {
			url := ""
			if x.got != nil {
				url = x.got.url.String()
			}
			if url != x.want {
				t.Errorf("%q: %s go to %q, not to %q", c.env, name, url, x.want)
			}
		}
	}
}

// An error names the variable. Its value may be a secret.
func TestSettingsThatCannotBeUsed(t *testing.T) {
	for _, bad := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=canary:4318",
		"OTEL_EXPORTER_OTLP_ENDPOINT=ftp://canary",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://[canary",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=canary",
		"OTEL_EXPORTER_OTLP_HEADERS=canary",
		"OTEL_EXPORTER_OTLP_HEADERS=a=%zzcanary",
		"OTEL_EXPORTER_OTLP_HEADERS=a b=canary",
		"OTEL_EXPORTER_OTLP_HEADERS==canary",
		"OTEL_EXPORTER_OTLP_HEADERS=a/b=canary",
		"OTEL_EXPORTER_OTLP_HEADERS=a=canary%0d%0ab:c",
		"OTEL_EXPORTER_OTLP_TIMEOUT=canary",
		"OTEL_EXPORTER_OTLP_TIMEOUT=-1",
		"OTEL_EXPORTER_OTLP_COMPRESSION=canary",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/no/canary",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/no/canary",
		"OTEL_TRACES_EXPORTER=canary",
		"OTEL_TRACES_SAMPLER=canary",
		"OTEL_RESOURCE_ATTRIBUTES=canary",
		"OTEL_BSP_SCHEDULE_DELAY=canary",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=canary",
	} {
		name, _, _ := strings.Cut(bad, "=")
		_, err := read(env("OTEL_EXPORTER_OTLP_ENDPOINT=http://c", bad), "v1")
		if err == nil || !strings.Contains(err.Error(), name) || swarm.HintOf(err) == "" || strings.Contains(err.Error()+swarm.HintOf(err), "canary") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestWhichRunsAreTold(t *testing.T) {
	told := func(vars ...string) (n int) {
		c, err := read(env(append(vars, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c")...), "v1")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if c.sampled(traceOf(swarm.RunID("run " + string(rune(i))))) {
				n++
			}
		}
		return n
	}
	if n := told(); n != 1000 {
		t.Errorf("without a sampler %d of 1000 are told", n)
	}
	if n := told("OTEL_TRACES_SAMPLER=parentbased_always_off"); n != 0 {
		t.Errorf("with always_off %d of 1000 are told", n)
	}
	if n := told("OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25"); n < 200 || n > 300 {
		t.Errorf("of a quarter %d of 1000 are told", n)
	}
}

func TestWhoSpeaks(t *testing.T) {
	c, err := read(env("OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_RESOURCE_ATTRIBUTES=a=b%2Cc, service.instance.id = mine ,service.name=no", "OTEL_SERVICE_NAME=yes"), "v7")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []attr{{"a", "b,c"}, {"service.instance.id", "mine"}, {"service.name", "yes"}, {"service.version", "v7"}} {
		if !slices.Contains(c.resource, want) {
			t.Errorf("%v is not in %v", want, c.resource)
		}
	}
}

// The names that we use are those of the conventions.
func TestNamesAreTheConventions(t *testing.T) {
	list, err := os.ReadFile("testdata/conventions.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(string(list), "\n")
	source, err := os.ReadFile("name.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`"(gen_ai\.[a-z._]+|error\.[a-z]+|invoke_[a-z]+|execute_[a-z]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(all) < 20 {
		t.Fatalf("only %d names were found", len(all))
	}
	for _, m := range all {
		if !slices.Contains(known, m[1]) {
			t.Errorf("the conventions have no %s", m[1])
		}
	}
}

func FuzzPairs(f *testing.F) {
	f.Add("a=b,c=d%20e")
	f.Add(",=,%zz=1,x=%0a")
	f.Fuzz(func(t *testing.T, list string) {
		for key, value := range pairs(list) {
			if strings.ContainsFunc(key, notInName) || strings.ContainsFunc(value, unicode.IsControl) || key == "" && value != "" {
				t.Fatalf("%q gives %q=%q", list, key, value)
			}
		}
	})
}
