package run

import (
	"strings"
	"sync"
	"sync/atomic"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/secret"
)

// secretsOf are the variables that a plan gives to programs and servers, with the values that they have there, as os.Environ would
// tell them: those of one name may have several. Which of them are secrets their names say.
func secretsOf(p *swarm.Plan, lookup func(string) (string, bool)) (environ []string) {
	take := func(env map[string]string) {
		for name, value := range env {
			at := strings.LastIndexByte(value, ' ') + 1 // "Bearer $NAME" in a header
			if from, ok := secret.Reference(value[at:]); ok {
				value, _ = lookup(from)
			}
			environ = append(environ, name+"="+value)
		}
	}
	for _, a := range p.Agents {
		take(a.Env)
	}
	for _, t := range p.Tasks {
		take(t.Env)
	}
	for _, s := range p.Providers {
		take(s.Env)
		take(s.Headers)
	}
	for _, s := range p.Servers {
		take(s.Env)
		take(s.Headers)
	}
	return environ
}

// tokensOf are what the agents of a plan show at our own server.
func tokensOf(p *swarm.Plan, tokens *agenttoken.Tokens) map[string]string {
	all := map[string]string{}
	for _, a := range p.Agents {
		all[tokenOf(a.Name)] = tokens.For(a.Name)
	}
	return all
}

// tokenOf is what stands in the place of an agent's token.
func tokenOf(agent string) string { return "SWARM_AGENT_TOKEN of " + agent }

// A redactor keeps secrets out of what is stored. It knows more of them in time: an agent that joins a run has a token like the others.
type redactor struct {
	environ []string

	mu     sync.Mutex
	tokens map[string]string // by what is written in their place
	atomic.Pointer[secret.Redactor]
}

func newRedactor(environ []string, tokens map[string]string) *redactor {
	k := &redactor{environ: environ, tokens: tokens}
	k.Store(secret.New(environ, tokens))
	return k
}

// learn adds what an agent shows at our own server, before anybody is given it.
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
