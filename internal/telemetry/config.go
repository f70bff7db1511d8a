package telemetry

import (
	"cmp"
	"crypto/rand"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"swarm"
)

// A config is what the environment configures.
type config struct {
	version         string
	traces, metrics *target // nil = not exported
	resource        []attr  // this process
	outer           link    // the span in which this process was started; its id is zero if there is none
	sampled         func(traceID) bool
	content         bool          // prompts and outputs are exported too
	every           time.Duration // how long spans may wait
	metricsEvery    time.Duration
	patience        time.Duration // how long the end of a run waits for the collector
	batch           int           // spans in one request
	delta           bool          // metrics are exported as differences
}

// read reads OpenTelemetry's variables. It returns nil if none of them asks for an export.
func read(getenv func(string) string, version string) (*config, error) {
	env := environment{get: func(name string) string { return strings.TrimSpace(getenv(name)) }}
	if strings.EqualFold(env.get("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	c := &config{version: version}
	c.traces = env.target("TRACES")
	c.metrics = env.target("METRICS")
	if env.err == nil && c.traces == nil && c.metrics == nil {
		return nil, nil
	}
	c.resource = env.resource(version)
	c.sampled = env.sampler()
	c.outer.trace, c.outer.id, _ = readTraceparent(env.get("TRACEPARENT"))
	c.content = captures(env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
	c.every = env.milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5*time.Second)
	c.metricsEvery = env.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", time.Minute)
	c.patience = env.milliseconds("OTEL_BSP_EXPORT_TIMEOUT", 3*time.Second)
	c.batch = env.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)
	switch preference := env.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"); strings.ToLower(preference) {
	case "", "cumulative":
	case "delta", "lowmemory":
		c.delta = true
	default:
		env.wrong("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative or delta")
	}
	if env.err != nil {
		return nil, env.err
	}
	return c, nil
}

// captures says whether content is wanted: true, or one of the conventions' own words.
func captures(value string) bool {
	switch strings.ToLower(value) {
	case "true", "span_only", "span_and_event":
		return true
	}
	return false
}

// An environment reads variables and keeps the first error.
type environment struct {
	get func(string) string
	err error
}

// wrong notes an error about a variable. Its value is not repeated, because it may be a secret.
func (env *environment) wrong(name, want string) {
	if env.err == nil {
		env.err = swarm.Errorf(swarm.BadInput, "%s cannot be used", name).WithHint("it is %s", want)
	}
}

func (env *environment) number(name string, usual int) int {
	text := env.get(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 || n > 1<<30 {
		env.wrong(name, "a number above 0")
		return usual
	}
	return n
}

func (env *environment) milliseconds(name string, usual time.Duration) time.Duration {
	return time.Duration(env.number(name, int(usual/time.Millisecond))) * time.Millisecond
}

// of returns a variable of OTLP for one signal, or else the one for all signals.
func (env *environment) of(signal, name string) (value, from string) {
	own := "OTEL_EXPORTER_OTLP_" + signal + "_" + name
	if value = env.get(own); value != "" {
		return value, own
	}
	return env.get("OTEL_EXPORTER_OTLP_" + name), "OTEL_EXPORTER_OTLP_" + name
}

// target returns where a signal goes, or nil if it is not exported.
func (env *environment) target(signal string) *target {
	endpoint, from := env.of(signal, "ENDPOINT")
	chooser := "OTEL_" + signal + "_EXPORTER"
	switch exporter := strings.ToLower(env.get(chooser)); exporter {
	case "none":
		return nil
	case "console":
		return &target{console: os.Stderr}
	case "":
		if endpoint == "" {
			return nil
		}
	case "otlp":
		endpoint = cmp.Or(endpoint, "http://localhost:4318")
	default:
		env.wrong(chooser, "otlp, console or none")
		return nil
	}
	if protocol, from := env.of(signal, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		env.wrong(from, "http/protobuf, the one protocol that swarm speaks: collectors hear it at port 4318")
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		env.wrong(from, "a URL such as http://localhost:4318")
		return nil
	}
	if from == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", strings.ToLower(signal))
	}
	t := &target{url: u}
	t.timeout = env.timeout(signal)
	t.headers = env.headers(signal)
	if compression, from := env.of(signal, "COMPRESSION"); compression != "" && compression != "none" {
		if t.gzip = compression == "gzip"; !t.gzip {
			env.wrong(from, "gzip or none")
		}
	}
	t.client = env.client(signal)
	return t
}

func (env *environment) timeout(signal string) time.Duration {
	_, from := env.of(signal, "TIMEOUT")
	return env.milliseconds(from, 10*time.Second)
}

// headers returns the headers of every request: key=value,key=value, percent-encoded.
func (env *environment) headers(signal string) map[string]string {
	list, from := env.of(signal, "HEADERS")
	all := map[string]string{}
	for key, value := range pairs(list) {
		if key == "" || strings.Contains(key, "/") {
			env.wrong(from, "key=value,key=value")
			break
		}
		all[key] = value
	}
	return all
}

// pairs reads key=value,key=value. A part that is not a pair has no key.
func pairs(list string) func(yield func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		for part := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(part) == "" {
				continue
			}
			key, value, ok := strings.Cut(part, "=")
			key = strings.TrimSpace(key)
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if !ok || err != nil || strings.ContainsFunc(key, notInName) || key == "" ||
				strings.ContainsFunc(value, unicode.IsControl) {
				key, value = "", ""
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// notInName says whether a header's name cannot have a character.
func notInName(c rune) bool {
	return c > unicode.MaxASCII ||
		!unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~/", c)
}

// resource describes this process.
func (env *environment) resource(version string) []attr {
	all := []attr{
		{"service.name", "swarm"},
		{"service.version", version},
		{"service.instance.id", rand.Text()}, // each process counts for itself
		{"process.runtime.name", "go"},
		{"process.runtime.version", runtime.Version()},
		{"telemetry.sdk.language", "go"},
		{"telemetry.sdk.name", "swarm"},
		{"telemetry.sdk.version", version},
	}
	set := func(key, value string) {
		all = append(slices.DeleteFunc(all, func(a attr) bool { return a.key == key }), attr{key, value})
	}
	for key, value := range pairs(env.get("OTEL_RESOURCE_ATTRIBUTES")) {
		if key == "" {
			env.wrong("OTEL_RESOURCE_ATTRIBUTES", "key=value,key=value")
			break
		}
		set(key, value)
	}
	if name := env.get("OTEL_SERVICE_NAME"); name != "" {
		set("service.name", name)
	}
	return all
}

// sampler decides which runs are exported. A run has no parent, so samplers that ask about one
// decide as if there were none.
func (env *environment) sampler() func(traceID) bool {
	ratio := 1.0
	switch name := strings.TrimPrefix(strings.ToLower(env.get("OTEL_TRACES_SAMPLER")), "parentbased_"); name {
	case "", "always_on":
	case "always_off":
		ratio = 0
	case "traceidratio":
		if arg := env.get("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				env.wrong("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1")
			}
		}
	default:
		env.wrong("OTEL_TRACES_SAMPLER", "always_on, always_off or traceidratio, also with parentbased_ before it")
	}
	return func(t traceID) bool { return t.below(ratio) }
}
