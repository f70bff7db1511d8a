package run

import (
	"strings"

	"swarm"
	"swarm/internal/httpd"
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
	}
	for _, s := range p.Servers {
		take(s.Env)
		take(s.Headers)
	}
	return environ
}

// tokensOf are what the agents of a plan show at our own server.
func tokensOf(p *swarm.Plan, tokens *httpd.Tokens) map[string]string {
	all := map[string]string{}
	for _, a := range p.Agents {
		all["SWARM_AGENT_TOKEN of "+a.Name] = tokens.For(a.Name)
	}
	return all
}
