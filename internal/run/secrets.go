package run

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/prompt"
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

// redactPlan returns a plan and its texts without secrets, to be stored. The prompts of turns have
// none either, so agents get the same text as without it. A script or a schema with [secret NAME]
// in it could mean something else, so one that holds a secret is refused.
func redactPlan(p *swarm.Plan, texts [][]byte, redact func([]byte) []byte) (*swarm.Plan, [][]byte, error) {
	templates, files := map[swarm.Hash]bool{}, map[swarm.Hash]string{}
	for _, t := range p.Tasks {
		templates[t.Prompt] = true
		if t.Expect != nil {
			files[t.Expect.Schema] = t.Expect.SchemaFile
		}
	}
	for _, a := range p.Agents {
		templates[a.Role] = true
	}
	for _, s := range p.Providers {
		files[s.Script] = s.ScriptFile
	}
	texts = slices.Clone(texts)
	renamed := map[swarm.Hash]swarm.Hash{}
	for i, text := range texts {
		hash, clean := swarm.HashOf(text), text
		switch file, isFile := files[hash]; {
		case templates[hash]:
			t, err := prompt.Unmarshal(text)
			if err != nil {
				return nil, nil, err
			}
			for i, part := range t.Parts {
				t.Parts[i].Text = string(redact([]byte(part.Text)))
			}
			clean = t.Marshal()
		case hash == p.Stdin:
			clean = redact(text)
		case isFile && !bytes.Equal(redact(text), text):
			return nil, nil, swarm.Errorf(swarm.BadInput, "%s holds the value of a key", file).WithHint("take it out: the run's log stores this file")
		}
		if !bytes.Equal(clean, text) {
			texts[i], renamed[hash] = clean, swarm.HashOf(clean)
		}
	}
	stored := *p
	stored.Name = string(redact([]byte(p.Name))) // a line's plan is named by its text
	if len(renamed) > 0 {
		rename := func(h *swarm.Hash) {
			if to, ok := renamed[*h]; ok {
				*h = to
			}
		}
		stored.Tasks, stored.Agents = slices.Clone(p.Tasks), slices.Clone(p.Agents)
		for i := range stored.Tasks {
			rename(&stored.Tasks[i].Prompt)
		}
		for i := range stored.Agents {
			rename(&stored.Agents[i].Role)
		}
		rename(&stored.Stdin)
	}
	return &stored, texts, nil
}
