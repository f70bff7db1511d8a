package run

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/prompt"
	"swarm/internal/secret"
	"swarm/internal/statedir"
	"swarm/internal/tool"
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
	if p.Notify != nil {
		addAll(map[string]string{"NOTIFY_ADDRESS_SECRET": p.Notify.BaseURL})
	}
	for _, a := range p.AllAgents() {
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

// newRedactor makes the redactor of a run: for the secrets of its plan and this environment, for the
// tokens of its logins at tool servers, and for the tokens of its agents. A token that is refreshed
// while the run goes on is a secret only in what its server says.
func newRedactor(h *statedir.Home, p *swarm.Plan, tokens *agenttoken.Tokens) *secret.Redactor {
	return secret.New(append(os.Environ(), secretsOf(p, os.LookupEnv)...), tool.LoginSecrets(h, p.Servers),
		secret.Beginning{Name: "SWARM_AGENT_TOKEN", Text: tokens.Beginning(), Rest: agenttoken.MaxRest})
}

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
	if p.Team != nil && p.Team.Expect != nil {
		files[p.Team.Expect.Schema] = p.Team.Expect.SchemaFile
	}
	for _, a := range p.AllAgents() {
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
		case hash == p.Stdin, p.Edited != nil && hash == p.Edited.Text:
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
		if p.Edited != nil {
			edited := *p.Edited
			rename(&edited.Text)
			stored.Edited = &edited
		}
	}
	return &stored, texts, nil
}
