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

// A Mark describes a turn. A program reads it from its environment, and its processes are found by
// it.
type Mark struct {
	Run                swarm.RunID
	Task, Agent, Turn  string
	Iteration, Attempt int
	URL, Token         string // of our own server, for this agent; "" = there is no server
	Trace              string // parent of the program's own spans, as a W3C traceparent; "" = none of ours
}

// Variables that describe the turn to a program. Values that an outer swarm set are not passed on.
const (
	envRun       = "SWARM_RUN_ID"
	envTask      = "SWARM_TASK"
	envTaskID    = "SWARM_TASK_ID" // the same, as prompts call it
	envAgent     = "SWARM_AGENT"
	envAgentID   = "SWARM_AGENT_ID" // likewise
	envIteration = "SWARM_ITERATION"
	envAttempt   = "SWARM_ATTEMPT"
	envTurn      = "SWARM_TURN_ID"
	envURL       = "SWARM_URL"
	envToken     = "SWARM_AGENT_TOKEN"
	envDriver    = "SWARM_DRIVER" // pid of the starter: a process that took the run over may repeat the same turn
	envJob       = "SWARM_JOB"    // number of the job: one turn may have several at once
	envDepth     = "SWARM_DEPTH"  // how many runs enclose the program
	envTrace     = "TRACEPARENT"
	envTraceMore = "TRACESTATE" // only valid together with the TRACEPARENT that it came with
)

// serverToken opens our own server, and storeAddress the store of all runs. No program ever gets
// them. With a shared store, storePassword may be its password, and storeKeyPassword that of the key by which
// this program signs in there.
const (
	serverToken      = "SWARM_TOKEN"
	storeAddress     = "SWARM_STORE"
	storePassword    = "PGPASSWORD"
	storeKeyPassword = "PGSSLPASSWORD"
)

// reserved are the variables that a file's `env` must not set. Orphaned processes are found by some
// of them, and a false value of the others would mislead the program.
var reserved = []string{
	envRun, envTask, envTaskID, envAgent, envAgentID, envIteration, envAttempt, envTurn, envDriver, envJob, envDepth, envURL, envToken,
	serverToken, storeAddress, "PWD",
}

// vendors are the prefixes of the variables in which model vendors expect their keys.
var vendors = []string{
	"AI21", "ALIBABA", "ANTHROPIC", "AZURE_OPENAI", "CEREBRAS", "CLAUDE", "CO", "CODEX", "COHERE", "CURSOR",
	"DASHSCOPE", "DEEPINFRA", "DEEPSEEK", "FIREWORKS", "GEMINI", "GOOGLE", "GOOGLE_GENAI", "GROK", "GROQ", "HF",
	"HUGGINGFACE", "HUGGING_FACE_HUB", "HYPERBOLIC", "KIMI", "LITELLM", "MINIMAX", "MISTRAL", "MOONSHOT", "NEBIUS",
	"NVIDIA", "OLLAMA", "OPENAI", "OPENCODE", "OPENROUTER", "PERPLEXITY", "PPLX", "QWEN", "REPLICATE", "SAMBANOVA",
	"TOGETHER", "TOGETHER_AI", "VERTEX", "VOYAGE", "WATSONX", "XAI", "ZAI", "ZHIPU", "ZHIPUAI",
}

// bedrock is a variable whose name has the vendor at its end.
const bedrock = "AWS_BEARER_TOKEN_BEDROCK"

// keyEndings are the words that follow a vendor's name in the name of a key.
var keyEndings = []string{
	"API_KEY", "API_TOKEN", "AUTH_TOKEN", "ACCESS_TOKEN", "OAUTH_TOKEN", "CODE_OAUTH_TOKEN", "ADMIN_KEY",
	"TOKEN", "KEY", "SECRET",
}

// IsProviderKey reports whether a variable of this name holds a vendor's key: OPENAI_API_KEY, and
// OPENAI_API_KEY_2, MY_OPENAI_API_KEY or OPENAI_KEY_PERSONAL, but not OPENAI_API_KEY_FILE. A program
// gets such a variable only when its provider, agent or task names it.
func IsProviderKey(name string) bool { return KeyVendor(name) != "" }

// KeyVendor returns the vendor whose key a variable of this name holds, or "".
func KeyVendor(name string) string {
	name = strings.ToUpper(name)
	if !secret.LooksSecret(name) {
		return ""
	}
	if strings.Contains(name, bedrock) {
		return bedrock
	}
	words := strings.Split(name, "_")
	for i, word := range words {
		if bare := strings.TrimRight(word, "0123456789"); word != "AI21" && bare != "" {
			words[i] = bare // OPENAI2_API_KEY
		}
	}
	for i := range words {
		for n := 1; n <= 3 && i+n < len(words); n++ { // the longest vendor has three words
			vendor := strings.Join(words[i:i+n], "_")
			if !slices.Contains(vendors, vendor) || i > 0 && vendor == "CO" { // which stands in other names too
				continue
			}
			rest := strings.Join(words[i+n:], "_") + "_"
			if slices.ContainsFunc(keyEndings, func(end string) bool { return strings.HasPrefix(rest, end+"_") }) {
				return vendor
			}
		}
	}
	return ""
}

// services begin the names of variables that hold the keys of services other than models.
var services = []string{
	"ATLASSIAN", "AUTH0", "AWS", "AZURE", "BITBUCKET", "CLOUDFLARE", "DATABASE", "DATADOG", "DD", "DIGITALOCEAN", "DISCORD",
	"DOCKER", "FIGMA", "GCP", "GH", "GITHUB", "GITLAB", "HEROKU", "JIRA", "LINEAR", "MONGODB", "MYSQL", "NETLIFY", "NEW",
	"NODE", "NOTION", "NPM", "OKTA", "OTEL", "PGPASSWORD", "POSTGRES", "PYPI", "REDIS", "SENDGRID", "SENTRY", "SLACK", "STRIPE",
	"SUPABASE", "TELEGRAM", "TWILIO", "TWINE", "VAULT", "VERCEL",
}

// IsKnownKey reports whether a variable of this name holds a key that its owner has for one purpose:
// a vendor's, or a well-known service's. A file that has such a key sent elsewhere needs a person's
// confirmation. A name such as MY_PROXY_KEY is not known: nobody has set it by chance.
func IsKnownKey(name string) bool {
	if IsProviderKey(name) {
		return true
	}
	name = strings.ToUpper(name)
	first, _, _ := strings.Cut(name, "_")
	address := slices.ContainsFunc([]string{"_URL", "_URI", "_DSN"}, func(end string) bool { return strings.HasSuffix(name, end) })
	return slices.Contains(services, first) && (address || secret.LooksSecret(name))
}

// An Environment is the part of the environment that all programs of one provider, or one MCP
// server, share.
type Environment struct {
	own    []string // of this process
	depth  int      // how many runs enclose this process
	shared []string // the part of own that every turn gets, and the provider's variables
}

// NewEnvironment copies our environment (own; nil = this process's) and adds the provider's
// variables. It leaves out our token, the variables of an outer swarm, vendors' keys and keys to
// telemetry collectors.
func NewEnvironment(own []string, added map[string]string) (*Environment, error) {
	if own == nil {
		own = os.Environ()
	}
	if err := checkEnv(added); err != nil {
		return nil, err
	}
	e := &Environment{own: own}
	outer, _ := Lookup(own, envDepth)
	e.depth = max(depth(outer), enclosing)
	e.shared = make([]string, 0, len(own)+len(added))
	for _, kv := range own {
		name, value, ok := strings.Cut(kv, "=")
		_, replaced := added[name]
		if !ok || replaced || slices.Contains(reserved, name) || IsProviderKey(name) || opensStore(own, name) || secret.OpensCollector(name, value) {
			continue
		}
		e.shared = append(e.shared, kv)
	}
	e.shared = e.appendVars(e.shared, added)
	return e, nil
}

// Common returns the part of our environment that every program of a run gets.
func Common() []string {
	e, _ := NewEnvironment(nil, nil) // nothing is added, so nothing is wrong
	return e.shared
}

// byThisProcess is the mark of the processes that this process started.
func byThisProcess() string { return envDriver + "=" + strconv.Itoa(os.Getpid()) }

// Of returns the environment of one program: the shared part, the added variables, and the marks of
// its turn.
func (e *Environment) Of(m Mark, added map[string]string, dir string) ([]string, error) {
	if err := checkEnv(added); err != nil {
		return nil, err
	}
	env := make([]string, 0, len(e.shared)+len(added)+len(reserved)+3)
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
		env = e.appendVars(env, added)
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
	for _, kv := range [][2]string{{envTask, m.Task}, {envTaskID, m.Task}, {envAgent, m.Agent}, {envAgentID, m.Agent}} { // an MCP server has neither
		if kv[1] != "" {
			env = append(env, kv[0]+"="+kv[1])
		}
	}
	return append(env, envRun+"="+string(m.Run), envTurn+"="+m.Turn,
		envIteration+"="+strconv.Itoa(m.Iteration), envAttempt+"="+strconv.Itoa(m.Attempt),
		envDepth+"="+strconv.Itoa(e.depth+1), byThisProcess()), nil
}

// maxDepth limits how many runs may be nested, each begun inside a turn of the one before.
const maxDepth = 3

// MayNest returns an error if this process must not begin a run. Without this limit, an agent that
// begins its own run would begin runs without end.
func MayNest() error {
	if n := max(depth(os.Getenv(envDepth)), enclosing); n > maxDepth {
		const msg = "this run would be within %d others, each begun by an agent of the one before; %d are allowed"
		return swarm.Errorf(swarm.BadInput, msg, n, maxDepth).
			WithHint("does an agent start the run that it is in? give it the work instead: swarm send, or send_handoff")
	}
	return nil
}

// depth parses the value of SWARM_DEPTH.
func depth(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil { // not set, or not ours: a person began this process
		return 0
	}
	return max(0, n)
}

// appendVars appends the variables of a file's `env:`, sorted by name. `KEY: $NAME` takes the value
// from our own environment, so that no file has to hold a secret. A vendor's key without a value
// (`KEY:`) is taken from there too. A variable that is not set there is left out.
func (e *Environment) appendVars(env []string, added map[string]string) []string {
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

// opensStore reports whether a variable holds the credentials of the store that machines share.
func opensStore(own []string, name string) bool {
	if name != storePassword && name != storeKeyPassword {
		return name == storeAddress
	}
	return slices.ContainsFunc(own, func(kv string) bool {
		return strings.HasPrefix(kv, storeAddress+"=") && len(kv) > len(storeAddress+"=")
	})
}

// Lookup returns a variable of our own environment (nil = this process's) that a file names. It
// never returns the token of our own server, and not the store's address and password: a stranger's
// file could have them sent anywhere.
func Lookup(own []string, name string) (value string, ok bool) {
	if own == nil {
		own = os.Environ()
	}
	if name == serverToken || opensStore(own, name) {
		return "", false
	}
	for _, kv := range own {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v, true
		}
	}
	return "", false
}

// Headers returns the HTTP headers that a file sets for a server. `$NAME` at the end of a value
// stands for a variable of our own environment. held has the values of these variables, so that
// callers can redact them. missing names a variable that is not set, or whose value cannot stand in
// a header.
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

// IsKey reports whether a text can be a server's key, which has to stand in a header.
func IsKey(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// checkEnv returns an error for the first variable that no program can be given.
func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return swarm.Errorf(swarm.BadInput, "%q is not the name of a variable", name).WithHint("write letters, digits and _")
		case slices.Contains(reserved, name):
			return swarm.Errorf(swarm.BadInput, "`env` sets %s, which only swarm itself may set", name).
				WithHint("choose another name")
		case strings.ContainsRune(env[name], 0):
			return swarm.Errorf(swarm.BadInput, "the value of %s in `env` holds a NUL byte", name).
				WithHint("no program can be given one; take it out")
		}
	}
	return nil
}
