package provider

import (
	"cmp"
	"time"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/process"
	"swarm/internal/providerkind"
	"swarm/internal/sandbox"
)

// Options are what a provider needs beside its description in the plan.
type Options struct {
	Script   []byte           // of the kind script: its text
	Dir      string           // where commands run if a request does not say; "" = the current folder
	Environ  []string         // the environment that commands inherit; nil = this process's
	Hidden   []string         // folders that no agent reads or writes through us: our own state; absolute
	Guard    permission.Guard // files that an agent writes through us only if its `tools` name them
	Versions Versions         // of programs, as they were told before; nil = a check always starts the program
	Grace    time.Duration    // between asking processes to end and killing them; 0 = process.DefaultGrace
}

// OpenCommand makes a provider whose agents are programs. It starts no process.
func OpenCommand(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	return newCommand(spec, opt)
}

// OpenScript makes a provider whose agents play a file.
func OpenScript(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	return ParseScript(cmp.Or(spec.ScriptFile, spec.Name), opt.Script)
}

// OpenNotifier makes a provider that notifies a person. It makes no connection.
func OpenNotifier(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	return newNotifier(spec, opt)
}

// Unset returns the variables that the user has not set. They are defaults, and the user's own win.
func Unset(own []string, defaults map[string]string) map[string]string {
	unset := map[string]string{}
	for name, value := range defaults {
		if _, set := process.Lookup(own, name); !set {
			unset[name] = value
		}
	}
	return unset
}

// NewSandbox makes the sandbox of a provider's programs, or nil if the provider has none.
func NewSandbox(spec swarm.ProviderSpec, opt Options) *sandbox.Box {
	login := providerkind.Of(spec.Kind).Login
	return sandbox.New(spec.Sandbox, sandbox.Options{
		Dir: opt.Dir, Hidden: opt.Hidden, Guarded: opt.Guard.Paths, Login: login.Folders, Obeyed: login.Obeyed,
	})
}
