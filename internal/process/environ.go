package process

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/secret"
)

// A Mark is what a program is told about its turn, and what its processes are found by.
type Mark struct {
	Run, Task, Agent, Turn string
	Iteration, Attempt     int
	URL, Token             string // of our own server, as the agent may use it; "" = there is none
	Trace                  string // what its own spans belong to, as W3C's traceparent; "" = nothing of ours
}

// Variables that a program is given about its turn. Whatever an outer swarm has set is not passed on.
const (
	envRun       = "SWARM_RUN_ID"
	envTask      = "SWARM_TASK"
	envAgent     = "SWARM_AGENT"
	envIteration = "SWARM_ITERATION"
	envAttempt   = "SWARM_ATTEMPT"
	envTurn      = "SWARM_TURN_ID"
	envURL       = "SWARM_URL"
	envToken     = "SWARM_AGENT_TOKEN"
	envDriver    = "SWARM_DRIVER" // the process that has started it: one that took the run over may do the same turn
	envJob       = "SWARM_JOB"    // which of those that it has started: one turn may have several at once
	envDepth     = "SWARM_DEPTH"  // in how many runs within each other it is
	envTrace     = "TRACEPARENT"
	envTraceMore = "TRACESTATE" // belongs to the TRACEPARENT that came with it
)

// serverToken is the key to our own server, which no program is ever given.
const serverToken = "SWARM_TOKEN"

var (
	// ours nobody else may set: processes left behind are found by some of them, and the others would be lies.
	ours = []string{envRun, envTask, envAgent, envIteration, envAttempt, envTurn, envDriver, envJob, envDepth, envURL, envToken, serverToken, "PWD"}
)

// vendors are the beginnings of the variables in which sellers of models expect their keys.
var vendors = []string{
	"AI21", "ALIBABA", "ANTHROPIC", "AZURE_OPENAI", "CEREBRAS", "CLAUDE", "CO", "CODEX", "COHERE", "CURSOR", "DASHSCOPE", "DEEPINFRA",
	"DEEPSEEK", "FIREWORKS", "GEMINI", "GOOGLE", "GOOGLE_GENAI", "GROK", "GROQ", "HF", "HUGGINGFACE", "HUGGING_FACE_HUB", "HYPERBOLIC",
	"KIMI", "LITELLM", "MINIMAX", "MISTRAL", "MOONSHOT", "NEBIUS", "NVIDIA", "OLLAMA", "OPENAI", "OPENCODE", "OPENROUTER", "PERPLEXITY",
	"PPLX", "QWEN", "REPLICATE", "SAMBANOVA", "TOGETHER", "TOGETHER_AI", "VERTEX", "VOYAGE", "WATSONX", "XAI", "ZAI", "ZHIPU", "ZHIPUAI",
}

// keyEndings are what follows a vendor's name in the name of a key.
var keyEndings = []string{"_API_KEY", "_API_TOKEN", "_AUTH_TOKEN", "_ACCESS_TOKEN", "_OAUTH_TOKEN", "_CODE_OAUTH_TOKEN", "_ADMIN_KEY", "_TOKEN", "_KEY", "_SECRET"}

// IsProviderKey says whether a variable of this name holds a key to somebody's models. A program is given such a variable
// only when its provider, agent or task names it.
func IsProviderKey(name string) bool {
	if name == "AWS_BEARER_TOKEN_BEDROCK" {
		return true
	}
	for _, end := range keyEndings {
		if vendor, ok := strings.CutSuffix(name, end); ok && slices.Contains(vendors, vendor) {
			return true
		}
	}
	return false
}

// An Environment is what all programs of one provider, or one server of tools, have in common.
type Environment struct {
	own    []string // this process's
	depth  int      // in how many runs this process is
	shared []string // what every turn is given of it, and what the provider adds
}

// NewEnvironment takes our environment (own; nil = this process's) without our token, without what an outer swarm has set and
// without keys to models and to collectors of telemetry, and adds the provider's own variables.
func NewEnvironment(own []string, added map[string]string) (*Environment, error) {
	if own == nil {
		own = os.Environ()
	}
	if err := checkEnv(added); err != nil {
		return nil, err
	}
	e := &Environment{own: own}
	outer, _ := Lookup(own, envDepth)
	e.depth = depth(outer)
	e.shared = make([]string, 0, len(own)+len(added))
	for _, kv := range own {
		name, value, ok := strings.Cut(kv, "=")
		_, replaced := added[name]
		if !ok || replaced || slices.Contains(ours, name) || IsProviderKey(name) || secret.OpensCollector(name, value) {
			continue
		}
		e.shared = append(e.shared, kv)
	}
	e.shared = e.add(e.shared, added)
	return e, nil
}

// byThisProcess marks what this process has started.
func byThisProcess() string { return envDriver + "=" + strconv.Itoa(os.Getpid()) }

// Of is the environment of one program: with what is added for it, and the marks of its turn.
func (e *Environment) Of(m Mark, added map[string]string, dir string) ([]string, error) {
	if err := checkEnv(added); err != nil {
		return nil, err
	}
	env := make([]string, 0, len(e.shared)+len(added)+len(ours)+3)
	if len(added) == 0 && m.Trace == "" {
		env = append(env, e.shared...)
	} else {
		for _, kv := range e.shared {
			name, _, _ := strings.Cut(kv, "=")
			_, replaced := added[name]
			if !replaced && (m.Trace == "" || name != envTrace && name != envTraceMore) {
				env = append(env, kv)
			}
		}
		env = e.add(env, added)
	}
	if _, own := added[envTrace]; m.Trace != "" && !own {
		env = append(env, envTrace+"="+m.Trace)
	}
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	if m.URL != "" {
		env = append(env, envURL+"="+m.URL, envToken+"="+m.Token)
	}
	for _, kv := range [][2]string{{envTask, m.Task}, {envAgent, m.Agent}} { // a server of tools is nobody's, and does no task
		if kv[1] != "" {
			env = append(env, kv[0]+"="+kv[1])
		}
	}
	return append(env, envRun+"="+m.Run, envTurn+"="+m.Turn,
		envIteration+"="+strconv.Itoa(m.Iteration), envAttempt+"="+strconv.Itoa(m.Attempt), envDepth+"="+strconv.Itoa(e.depth+1), byThisProcess()), nil
}

// maxDepth is how many runs may be begun within each other, from inside the turns of their agents.
const maxDepth = 3

// MayNest says whether a run may be begun by this process: an agent that begins the run that it is in would begin runs without end.
func MayNest() error {
	if n := depth(os.Getenv(envDepth)); n > maxDepth {
		return swarm.Errorf(swarm.BadInput, "this run would be within %d others, each begun by an agent of the one before; %d are allowed", n, maxDepth).
			WithHint("does an agent start the run that it is in? give it the work instead: swarm send, or send_handoff")
	}
	return nil
}

func depth(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil { // a person begins at 0
		return 0
	}
	return max(0, n)
}

// add appends what a file's `env:` says, in the order of the names. `KEY: $NAME` takes the value from our own environment, so
// that no secret has to stand in a file; for the key to a model, so does a `KEY:` without a value. One that is not set there
// is not set at all.
func (e *Environment) add(env []string, added map[string]string) []string {
	for _, name := range slices.Sorted(maps.Keys(added)) {
		value := added[name]
		from, taken := secret.Reference(value)
		if value == "" && IsProviderKey(name) {
			from, taken = name, true
		}
		if taken {
			var set bool
			if value, set = Lookup(e.own, from); !set {
				continue
			}
		}
		env = append(env, name+"="+value)
	}
	return env
}

// Lookup is a variable of our own environment (nil = this process's), which a file may name. The key to our own server is not for
// files: one that a stranger wrote could have it sent anywhere.
func Lookup(own []string, name string) (value string, ok bool) {
	if own == nil {
		own = os.Environ()
	}
	if name == serverToken {
		return "", false
	}
	for _, kv := range own {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v, true
		}
	}
	return "", false
}

// Headers are those that a file has for a server. `$NAME` at the end of a value is a variable of our own environment; held has the
// values of these. missing is one that is not set, or holds what no header can.
func Headers(own []string, values map[string]string) (h http.Header, held map[string]string, missing string) {
	h, held = http.Header{}, map[string]string{}
	for name, value := range values {
		at := strings.LastIndexByte(value, ' ') + 1
		if variable, ok := secret.Reference(value[at:]); ok {
			key, _ := Lookup(own, variable)
			key = strings.TrimSpace(key)
			if key == "" || !IsKey(key) {
				return nil, nil, variable
			}
			held[variable], value = key, value[:at]+key
		}
		h.Set(name, value)
	}
	return h, held, ""
}

// IsKey says whether a text can be the key to a server: it has to stand in a header.
func IsKey(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// checkEnv says which variable no program can be given.
func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return swarm.Errorf(swarm.BadInput, "%q is not the name of a variable", name).WithHint("write letters, digits and _")
		case slices.Contains(ours, name):
			return swarm.Errorf(swarm.BadInput, "`env` sets %s, which only swarm itself may set", name).WithHint("choose another name")
		case strings.ContainsRune(env[name], 0):
			return swarm.Errorf(swarm.BadInput, "the value of %s in `env` holds a NUL byte", name).WithHint("no program can be given one; take it out")
		}
	}
	return nil
}
