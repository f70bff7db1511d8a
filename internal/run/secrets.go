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

// A vault keeps secrets out of what is stored. It knows more of them in time: an agent that joins a run has a token like the others.
type vault struct {
	environ []string

	mu     sync.Mutex
	tokens map[string]string // by what is written in their place
	atomic.Pointer[secret.Redactor]
}

func newVault(environ []string, tokens map[string]string) *vault {
	k := &vault{environ: environ, tokens: tokens}
	k.Store(secret.New(environ, tokens))
	return k
}

// learn adds what an agent shows at our own server, before anybody is given it.
func (k *vault) learn(agent, token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name := tokenOf(agent); k.tokens[name] != token {
		k.tokens[name] = token
		k.Store(secret.New(k.environ, k.tokens))
	}
}

func (k *vault) bytes(b []byte) []byte  { return k.Load().Bytes(b) }
func (k *vault) cut(text string) string { return k.Load().Cut(text) }
