package acp

import (
	"maps"

	"swarm"
	"swarm/internal/providerkind"
)

// A preset holds what is known of a program beyond its row in the table of kinds.
type preset struct {
	// args are the arguments after the user's own. model is the model of the turn, or "".
	args func(model string, phase swarm.Phase) []string
	// readsFiles says that the program reads files by itself. Through us it could not tell that a
	// file does not exist, and so would never create one.
	readsFiles   bool
	editsUnasked bool   // it edits files without asking, so where it has to ask, the answer is yes
	versionVar   string // a variable that makes it print its version sooner
	// signed returns what its user is signed in with, or "".
	signedIn func(env func(string) string) string
}

// presets are the kinds that have one.
var presets = map[string]preset{
	// Gemini CLI also has a stream of JSON, which is worse for us. There it learns of our tools
	// only by a settings file that replaces the user's own. It also starts anew in each turn, which
	// takes seconds.
	providerkind.Gemini: {
		args: func(model string, phase swarm.Phase) []string {
			mode := "auto_edit"
			if phase == swarm.PlanningPhase {
				mode = "default" // it asks before each edit, and the path decides the answer
			}
			// In a folder that it does not trust it uses no MCP server, so not ours either.
			args := []string{"--acp", "--skip-trust", "--approval-mode=" + mode}
			if model != "" {
				args = append(args, "--model="+model)
			}
			return args
		},
		readsFiles:   true,
		editsUnasked: true,
		versionVar:   "GEMINI_CLI_NO_RELAUNCH=true", // else it starts itself a second time, for more memory
		signedIn:     signedInGemini,
	},
}

// complete fills in what the table of kinds knows about a provider.
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
