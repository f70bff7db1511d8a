package provider

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"swarm"
)

// Options are what a provider needs beside its description in the plan.
type Options struct {
	Script  []byte        // of kind script: the script's text
	Dir     string        // where commands run when a request does not say; "" = the current folder
	Environ []string      // the environment that commands inherit; nil = this process's
	Grace   time.Duration // between asking processes to end and ending them; 0 = process.DefaultGrace
}

// Kinds are the kinds of providers that a compose file may name and that work.
var Kinds = []string{"command", "script", "anthropic", "openai", "claude-code", "codex", "gemini", "opencode", "acp", "a2a"}

// Open makes the provider that spec describes, if its agents are programs or scripts. It starts nothing.
func Open(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	switch spec.Kind {
	case "command":
		return newCommand(spec, opt)
	case "notify":
		return newNotifier(spec, opt)
	case "script":
		return ParseScript(cmp.Or(spec.ScriptFile, spec.Name), opt.Script)
	}
	working := "providers of the kinds " + strings.Join(Kinds[:len(Kinds)-1], ", ") + " and " + Kinds[len(Kinds)-1] + " work"
	err := swarm.Errorf(swarm.BadInput, "the provider %q is of the kind %q, which does not exist", spec.Name, spec.Kind)
	switch near := swarm.Nearest(spec.Kind, Kinds); {
	case spec.Kind == "":
		err.Msg = fmt.Sprintf("the provider %q has no kind", spec.Name)
	case near != "":
		working = fmt.Sprintf("did you mean %q? %s", near, working)
	}
	return nil, err.WithHint("%s", working)
}
