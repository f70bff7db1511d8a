// Package model reaches models over HTTP: those of Anthropic and OpenAI, and of every server that
// is compatible with one of them.
//
// A turn is one request to a model, and one more each time that it calls tools. The tools are ours
// and run here; the model only asks for them. A call that makes no sense is answered with an error,
// so that the model can correct it. The text streams out while it comes. A rate limit is followed
// by a retry, and slows down all turns of the provider together.
//
// The protocols are small, so this package speaks them directly. The vendors' libraries would
// add more to the start time of every command than everything else that it loads.
package model

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/secret"
)

// A protocol is an API that is spoken here.
type protocol struct {
	dialect dialect
	path    string // below the base URL
	drop    string // a suffix of the base URL that path has too
}

// protocolOf returns the API of a provider. OpenAI itself is asked by its newer API, and servers of
// the user's own by the one that all of them have.
func protocolOf(spec *swarm.ProviderSpec) (p protocol, ok bool) {
	api := spec.API
	if api == "" && spec.BaseURL == "" {
		api = providerkind.Responses
	}
	switch {
	case spec.Kind == providerkind.Anthropic:
		return protocol{anthropic{}, "/v1/messages", "/v1"}, true
	case spec.Kind == providerkind.OpenAI && api == providerkind.Responses:
		return protocol{responses{}, "/responses", ""}, true
	case spec.Kind == providerkind.OpenAI:
		return protocol{openai{compatible: spec.BaseURL != ""}, "/chat/completions", ""}, true
	}
	return protocol{}, false
}

// A dialect encodes requests and decodes answers of one API.
type dialect interface {
	signRequest(h http.Header, key string)
	encodeRequest(c *conversation) ([]byte, error)
	newListener(a *answer) listener
	goesOn() bool // its models go on from the beginning of an answer
	// refused returns the part of a request that words of the server, in lower case, refuse, or "".
	refused(c *conversation, words string) option
}

// A listener decodes one answer.
type listener interface {
	handleEvent(data []byte) error // takes one event of a stream
	handleWhole(data []byte) error // takes an answer that came in one piece
	// message returns the assistant's message, to be repeated in later requests, and collects its
	// calls. It is called last.
	message() (swarm.ChatMessage, error)
}

// A model is a provider whose agents are models. It serves many turns at once.
type model struct {
	spec      swarm.ProviderSpec
	url       string
	dialect   dialect
	keyName   string // the variable that holds its key
	environ   []string
	client    *http.Client
	pace      provider.Pace
	redactors sync.Map // by keys, because `env` of an agent may name another one
	refusals  refusals
}

// Open makes the provider that spec describes. It makes no connection.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	protocol, ok := protocolOf(&spec)
	if !ok {
		return nil, swarm.Errorf(
			swarm.BadInput, "the provider %q is of the kind %q, which is not a model", spec.Name, spec.Kind)
	}
	kind := providerkind.Of(spec.Kind)
	m := &model{
		spec:    spec,
		environ: opt.Environ,
		dialect: protocol.dialect,
		keyName: kind.KeyVars[0],
	}
	u, err := url.Parse(cmp.Or(spec.BaseURL, kind.BaseURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, swarm.Errorf(swarm.BadInput, "the base_url of the provider %q is not the URL of a server", spec.Name).
			WithHint("write where it is: base_url: http://127.0.0.1:11434/v1")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), protocol.drop)
	m.url = u.JoinPath(protocol.path).String() // before its query, if it has one
	if _, _, err := m.findKey(nil); err != nil && swarm.KindOf(err) == swarm.BadInput {
		return nil, err
	}
	m.client = provider.NewClient(nil)
	return m, nil
}

// Check reports whether there is a key. Only the server knows whether the key is valid, and it is
// not asked before a turn.
func (m *model) Check(context.Context) provider.Health {
	health := provider.Health{Found: true}
	switch key, name, err := m.findKey(nil); {
	case err != nil:
		health.Signed, health.Problem, health.Hint = "no", err.Error(), swarm.HintOf(err)
	case key != "":
		health.Signed, health.With = "yes", name
	}
	if _, _, err := m.headers(); err != nil {
		health.Signed, health.Problem, health.Hint = "no", err.Error(), swarm.HintOf(err)
	}
	return health
}

// Turn asks the model, and again for as long as it calls tools.
func (m *model) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if ctx.Err() != nil {
		return provider.Reply{}, swarm.CutError(ctx)
	}
	key, name, err := m.findKey(r.Env)
	if err != nil {
		return provider.Reply{Free: true}, err
	}
	headers, held, err := m.headers()
	if err != nil {
		return provider.Reply{Free: true}, err
	}
	if key != "" {
		held[name] = key
	}
	c := conversation{
		model:       r.Model,
		from:        m.spec.Name + "/" + r.Model,
		messages:    r.History,
		tools:       r.ToolSpecs,
		maxTokens:   m.spec.MaxTokens,
		temperature: m.spec.Temperature,
		effort:      m.spec.Effort,
		thinking:    m.spec.Thinking,
		serviceTier: m.spec.ServiceTier,
		leftOut:     m.refusals.leftOut(r.Model),
	}
	prompt := swarm.ChatMessage{Role: swarm.RoleUser, Text: r.Prompt, Stable: r.Stable}
	if len(r.History) > 0 {
		prompt = swarm.ChatMessage{Role: swarm.RoleUser, Text: r.Fresh}
	}
	c.messages = joinUserMessages(append(slices.Clip(c.messages), prompt))
	c.cached = r.Plain == nil && (len(c.tools) > 0 || len(r.History) > 0 || r.Later)
	if m.spec.BaseURL == "" {
		c.cacheKey = string(swarm.HashOf([]byte(string(r.Run) + "/" + r.Agent))[:32])
	}
	m.askPlainly(&c, r.Plain)
	if c.model == "" {
		return provider.Reply{
				Free: true,
			}, swarm.Errorf(swarm.BadInput, "nothing says which model of the provider %q is to do it", m.spec.Name).
				WithHint("write model: NAME for the agent, or models: {small: NAME, medium: NAME, large: NAME} for the provider")
	}
	t := &turn{model: m, key: key, headers: headers, redactor: m.redactorFor(held), request: r, live: live, conversation: c, began: time.Now(), begun: len(c.messages)}
	err = t.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = swarm.CutError(ctx)
	}
	return t.reply(err), err
}

// joinUserMessages makes one message of those that follow each other and are all the user's. Some
// servers want the roles to alternate, and the messages of a turn that failed end with the user's.
func joinUserMessages(messages []swarm.ChatMessage) (all []swarm.ChatMessage) {
	for _, m := range messages {
		n := len(all)
		if n == 0 || m.Role != swarm.RoleUser || all[n-1].Role != swarm.RoleUser {
			all = append(all, m)
			continue
		}
		before := &all[n-1]
		before.Results = append(slices.Clip(before.Results), m.Results...)
		if before.Text != "" {
			before.Text += "\n\n"
		}
		before.Text += m.Text
	}
	return all
}

// askPlainly makes a conversation one question without tools.
func (m *model) askPlainly(c *conversation, p *provider.Plain) {
	if p == nil {
		return
	}
	c.system, c.tools = p.System, nil
	if m.dialect.goesOn() {
		c.prefill = p.Prefill
	}
	c.maxTokens = cmp.Or(c.maxTokens, p.MaxTokens)
	if c.temperature == nil {
		c.temperature = &p.Temperature
	}
}

// redactorFor removes keys from texts, whatever their variables are called.
func (m *model) redactorFor(keys map[string]string) *secret.Redactor {
	if len(keys) == 0 {
		return nil
	}
	id := fmt.Sprint(keys) // sorted by name
	if r, ok := m.redactors.Load(id); ok {
		return r.(*secret.Redactor)
	}
	r, _ := m.redactors.LoadOrStore(id, secret.New(nil, keys))
	return r.(*secret.Redactor)
}
