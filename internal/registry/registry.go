// Package registry binds each row of the table of provider kinds to the constructor that reaches
// its agents. It is the one package that imports all packages of providers.
package registry

import (
	"fmt"
	"os/exec"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/provider/a2a"
	"swarm/internal/provider/acp"
	"swarm/internal/provider/coding"
	"swarm/internal/provider/desk"
	"swarm/internal/provider/model"
	"swarm/internal/providerkind"
)

// An Opener makes the provider that spec describes. It starts no process and makes no connection.
type Opener func(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error)

var openers = map[string]Opener{
	providerkind.Command:    provider.OpenCommand,
	providerkind.Script:     provider.OpenScript,
	providerkind.Notify:     provider.OpenNotifier,
	providerkind.Desk:       desk.Open,
	providerkind.ClaudeCode: coding.Open,
	providerkind.Codex:      coding.Open,
	providerkind.Opencode:   coding.Open,
	providerkind.Gemini:     acp.Open,
	providerkind.ACP:        acp.Open,
	providerkind.A2A:        a2a.Open,
	providerkind.Anthropic:  model.Open,
	providerkind.OpenAI:     model.Open,
}

// Register adds a kind to the table, with its constructor. It is for the start of a program: no
// mutex guards the table.
func Register(kind providerkind.Kind, open Opener) {
	providerkind.Register(kind)
	openers[kind.Name] = open
}

// Open makes the provider that spec describes. It starts no process and makes no connection.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	if open := openers[spec.Kind]; open != nil {
		return open(spec, opt)
	}
	err := swarm.Errorf(swarm.BadInput, "the provider %q is of the kind %q, which does not exist", spec.Name, spec.Kind)
	if spec.Kind == "" {
		err.Msg = fmt.Sprintf("the provider %q has no kind", spec.Name)
	}
	return nil, err.WithHint("%s", swarm.DidYouMean(spec.Kind, providerkind.Names()))
}

// Installed returns the kinds whose programs are in PATH, in the order of the table. It starts none of
// them.
func Installed() (kinds []string) {
	for _, kind := range providerkind.Presets() {
		if program := providerkind.Of(kind).Program.Name; program != "" {
			if _, err := exec.LookPath(program); err == nil {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}
