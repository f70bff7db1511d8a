// Package model reaches models over HTTP: Anthropic's, OpenAI's, and every server that speaks as one of them does.
//
// A turn is one question to a model, and as many more as it calls tools: the tools are ours, the model only asks for them, and
// what it asks nonsense is told so. What it says streams out while it says it. A model that is busy is asked again, and all turns
// of a provider slow down together. The two protocols are small, so they are spoken here directly: the sellers' own libraries
// would cost every command more time at its start than everything else that it loads.
package model

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/secret"
)

// protocols are the APIs that are spoken here, by the kind of the provider.
var protocols = map[string]struct {
	dialect func(compatible bool) dialect // compatible: to a server of the user's own
	path    string                        // below the base URL
	drop    string                        // of the base URL's end, which path has too
}{
	providerkind.Anthropic: {func(bool) dialect { return anthropic{} }, "/v1/messages", "/v1"},
	providerkind.OpenAI:    {func(compatible bool) dialect { return openai{compatible: compatible} }, "/chat/completions", ""},
}

// A dialect is how a vendor's models are spoken to.
type dialect interface {
	sign(h http.Header, key string)
	ask(c *conversation) ([]byte, error)
	// listen takes an answer apart: event is called for each piece of a stream, whole for an answer that came in one piece, and
	// said, at its end, for what the model has to be reminded of in the next question.
	listen(a *answer) listener
}

type listener interface {
	event(data []byte) error
	whole(data []byte) error
	said() (any, error)
}

// A model is a provider whose agents are models.
type model struct {
	spec    swarm.ProviderSpec
	url     string
	dialect dialect
	keyName string // the variable that holds its key
	environ []string
	client  *http.Client
	pace    provider.Pace
	hiders  sync.Map // by key: what takes it out of texts
}

// Open makes the provider that spec describes. It reaches nobody.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	protocol, ok := protocols[spec.Kind]
	if !ok {
		return nil, swarm.Errorf(swarm.BadInput, "the provider %q is of the kind %q, which is no model's", spec.Name, spec.Kind)
	}
	kind := providerkind.Of(spec.Kind)
	m := &model{spec: spec, environ: opt.Environ, dialect: protocol.dialect(spec.BaseURL != ""), keyName: kind.KeyVars[0]}
	u, err := url.Parse(cmp.Or(spec.BaseURL, kind.BaseURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, swarm.Errorf(swarm.BadInput, "the base_url of the provider %q is no URL of a server", spec.Name).
			WithHint("write where it is: base_url: http://127.0.0.1:11434/v1")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), protocol.drop)
	m.url = u.JoinPath(protocol.path).String() // before its query, if it has one
	if _, _, err := m.key(nil); err != nil && swarm.KindOf(err) == swarm.BadInput {
		return nil, err
	}
	m.client = provider.NewClient(nil)
	return m, nil
}

// Check says whether there is a key. Whether it is any good only the server knows, which is not asked before a turn.
func (m *model) Check(context.Context) provider.Health {
	health := provider.Health{Found: true}
	switch key, name, err := m.key(nil); {
	case err != nil:
		health.Signed, health.Problem = "no", err.Error()
		if e := new(swarm.Error); errors.As(err, &e) {
			health.Problem, health.Hint = e.Msg, e.Hint
		}
	case key != "":
		health.Signed, health.With = "yes", name
	}
	return health
}

// Turn asks the model, and again for as long as it calls tools.
func (m *model) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if ctx.Err() != nil {
		return provider.Reply{}, swarm.CutError(ctx)
	}
	key, name, err := m.key(r.Env)
	if err != nil {
		return provider.Reply{Free: true}, err
	}
	c := conversation{model: r.Model, prompt: r.Prompt, tools: r.ToolSpecs, maxTokens: m.spec.MaxTokens, temperature: m.spec.Temperature}
	if c.model == "" {
		return provider.Reply{Free: true}, swarm.Errorf(swarm.BadInput, "nothing says which model of the provider %q is to do it", m.spec.Name).
			WithHint("write model: NAME for the agent, or models: {small: NAME, medium: NAME, large: NAME} for the provider")
	}
	t := &turn{model: m, key: key, hide: m.hider(name, key), request: r, live: live, conversation: c}
	err = t.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = swarm.CutError(ctx)
	}
	return t.reply(), err
}

// hider takes a key out of texts, whatever its variable is called.
func (m *model) hider(name, key string) *secret.Redactor {
	if key == "" {
		return nil
	}
	if r, ok := m.hiders.Load(key); ok {
		return r.(*secret.Redactor)
	}
	r, _ := m.hiders.LoadOrStore(key, secret.New(nil, map[string]string{name: key}))
	return r.(*secret.Redactor)
}
