package provider

import (
	"cmp"
	"time"

	"swarm"
)

// Options are what a provider needs beside its description in the plan.
type Options struct {
	Script  []byte        // of kind script: the script's text
	Dir     string        // where commands run when a request does not say; "" = the current folder
	Environ []string      // the environment that commands inherit; nil = this process's
	Hidden  []string      // folders that no agent reads or writes through us: our own state; absolute
	Grace   time.Duration // between asking processes to end and ending them; 0 = process.DefaultGrace
}

// OpenCommand makes a provider whose agents are programs. It starts nothing.
func OpenCommand(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	return newCommand(spec, opt)
}

// OpenScript makes a provider whose agents play a file.
func OpenScript(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	return ParseScript(cmp.Or(spec.ScriptFile, spec.Name), opt.Script)
}

// OpenNotifier makes a provider that tells a person. It reaches nobody yet.
func OpenNotifier(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	return newNotifier(spec, opt)
}
