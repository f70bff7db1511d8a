package acp

import (
	"maps"

	"swarm"
	"swarm/internal/providerkind"
)

// A preset is what is known of a program beyond its row in the table of kinds.
type preset struct {
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
	providerkind.Gemini: {
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

// complete is a provider's description with what the table knows of its kind.
func complete(spec swarm.ProviderSpec, k *providerkind.Kind) swarm.ProviderSpec {
	if k.Program.Name == "" {
		return spec
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{k.Program.Name}
	}
	env := map[string]string{}
	for _, key := range k.KeyVars {
		env[key] = "" // taken from our environment
	}
	maps.Copy(env, spec.Env)
	spec.Env = env
	return spec
}
