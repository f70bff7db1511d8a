package acp

import (
	"maps"

	"swarm"
)

// A preset is a program that needs no command in the file, and what is known of it.
type preset struct {
	title   string // what people call it
	program string // what it is called in PATH
	pack    string // and in npm
	login   string // what to do to sign in
	keys    []string
	// args are the arguments after the user's own. Model is what the turn asks for, or "".
	args  func(model string, phase swarm.Phase) []string
	reads bool   // it reads files by itself: through us it cannot tell one that is not there, and so makes no new one
	edits bool   // it changes files without asking; where it has to ask, nobody is bothered
	quick string // a variable with which it says its version sooner
	// signed says what its user is signed in with, or "".
	signed func(env func(string) string) string
}

// presets are the kinds that have one.
var presets = map[string]preset{
	// Gemini CLI is spoken to by this protocol rather than by its stream of JSON: there it could be told of our tools only by a file of
	// settings that takes the place of the user's own, and it would be started anew, for seconds, in each turn.
	"gemini": {
		title: "Gemini CLI", program: "gemini", pack: "@google/gemini-cli",
		login: "run `gemini` and sign in, or set GEMINI_API_KEY",
		keys:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		args: func(model string, phase swarm.Phase) []string {
			mode := "auto_edit"
			if phase == swarm.PlanningPhase {
				mode = "default" // it asks before each edit, and is answered by where it is
			}
			// In a folder that it does not trust it uses no tool server, and ours would be none.
			args := []string{"--acp", "--skip-trust", "--approval-mode=" + mode}
			if model != "" {
				args = append(args, "--model="+model)
			}
			return args
		},
		reads:  true,
		edits:  true,
		quick:  "GEMINI_CLI_NO_RELAUNCH=true", // else it starts itself a second time, for more memory
		signed: signedInGemini,
	},
}

// with is a provider's description with what its preset knows.
func (p preset) with(spec swarm.ProviderSpec) swarm.ProviderSpec {
	if p.program == "" {
		return spec
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{p.program}
	}
	env := map[string]string{}
	for _, key := range p.keys {
		env[key] = "" // taken from our environment
	}
	maps.Copy(env, spec.Env)
	spec.Env = env
	return spec
}
