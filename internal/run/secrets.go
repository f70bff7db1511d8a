package run

import (
	"strings"
	"sync"
	"sync/atomic"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/secret"
)

// secretsOf returns the variables that a plan gives to programs and servers, in the form of
// os.Environ. One name may occur with several values. The name decides whether a value is a secret.
func secretsOf(p *swarm.Plan, lookup func(string) (string, bool)) (environ []string) {
	addAll := func(env map[string]string) {
		for name, value := range env {
			at := strings.LastIndexByte(value, ' ') + 1 // for "Bearer $NAME" in a header
			if from, ok := secret.Reference(value[at:]); ok {
				value, _ = lookup(from)
			}
			environ = append(environ, name+"="+value)
		}
	}
	for _, a := range p.Agents {
		addAll(a.Env)
	}
	for _, t := range p.Tasks {
		addAll(t.Env)
	}
	for _, s := range p.Providers {
		addAll(s.Env)
		addAll(s.Headers)
	}
	for _, s := range p.Servers {
		addAll(s.Env)
		addAll(s.Headers)
	}
	return environ
}

// tokensOf returns the tokens of a plan's agents for our own server, by the text that replaces
// them.
func tokensOf(p *swarm.Plan, tokens *agenttoken.Tokens) map[string]string {
	all := map[string]string{}
	for _, a := range p.Agents {
		all[tokenOf(a.Name)] = tokens.For(a.Name)
	}
	return all
}

// tokenOf is the text that replaces an agent's token.
func tokenOf(agent string) string { return "SWARM_AGENT_TOKEN of " + agent }

// A redactor removes secrets from everything that is stored. It learns more of them while the run
// goes on: an agent that joins later has a token, too. The mutex serializes learning. Readers load
// the current redactor without it.
type redactor struct {
	environ []string

	mu     sync.Mutex
	tokens map[string]string // by the text that replaces them
	atomic.Pointer[secret.Redactor]
}

func newRedactor(environ []string, tokens map[string]string) *redactor {
	k := &redactor{environ: environ, tokens: tokens}
	k.Store(secret.New(environ, tokens))
	return k
}

// learn adds an agent's token. It must be called before anybody gets the token.
func (r *redactor) learn(agent, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := tokenOf(agent); r.tokens[name] != token {
		r.tokens[name] = token
		r.Store(secret.New(r.environ, r.tokens))
	}
}

func (r *redactor) bytes(b []byte) []byte  { return r.Load().Bytes(b) }
func (r *redactor) cut(text string) string { return r.Load().Cut(text) }
