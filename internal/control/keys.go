package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/process"
	"swarm/internal/providerkind"
	"swarm/internal/secret"
)

// A keyUse is a key of the environment that a plan hands on: to a program, or to a server.
type keyUse struct {
	variable string
	to       string // the address, or the command line
	detail   string // what else decides where it goes; a part of the question's identity
	text     string // what happens, as a sentence without its beginning
	provider string // the provider that gets it; "" = server
	server   string // the MCP server that gets it
}

// keyUses returns the uses of keys that the vendor's own preset does not have: a key of one vendor for
// another one, for a program or an address that the file names, or in a header. A key that its own
// vendor gets in the usual way is not among them, and neither is a variable that is no known key.
func keyUses(p *swarm.Plan) (uses []keyUse) {
	for i := range p.Providers {
		s := &p.Providers[i]
		env := envOf(p, s)
		switch kind := providerkind.Of(s.Kind); {
		case kind.BaseURL != "":
			uses = append(uses, modelKeys(s, kind, env)...)
		case kind.Tools == providerkind.ByDoor:
			uses = append(uses, programKeys(s, kind, env)...)
		}
		for _, v := range headerKeys(s.Headers) {
			to := cmp.Or(s.BaseURL, providerkind.Of(s.Kind).BaseURL)
			uses = append(uses, keyUse{variable: v.variable, to: to, detail: v.header, provider: s.Name,
				text: "sends " + v.variable + " to " + to + ", in the header " + v.header})
		}
	}
	uses = append(uses, commandKeys(p)...)
	for _, s := range p.Servers {
		for _, v := range headerKeys(s.Headers) {
			uses = append(uses, keyUse{variable: v.variable, to: s.URL, detail: v.header, server: s.Name,
				text: "sends " + v.variable + " to " + s.URL + ", in the header " + v.header})
		}
		for _, e := range sortedEnv(s.Env) {
			if v, ok := e.takes(); ok && len(s.Command) > 0 && isWithheld(v) {
				uses = append(uses, givesTo(v, s.Command, "", keyUse{server: s.Name}))
			}
		}
	}
	return uses
}

// Variables returns the variables of our own environment that a file uses in `env` and in headers,
// for all of its tasks and agents.
func (c *Control) Variables(r Request) (all []string, err error) {
	o, p, err := c.Compose(r)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	o = o.ReadOnce()
	o.Stdin = func() ([]byte, error) { return nil, nil }
	tasks, err := compose.CompileAll(o)
	if err != nil {
		return nil, err
	}
	plans := []*swarm.Plan{&tasks.Plan}
	if team, err := compose.CompileTeam(o); err == nil { // on an error its agents cannot work without tasks
		plans = append(plans, &team.Plan)
	}
	for _, p := range plans {
		for i := range p.Providers {
			all = append(all, taken(p.Providers[i].Env, p.Providers[i].Headers)...)
		}
		for i := range p.Servers {
			all = append(all, taken(p.Servers[i].Env, p.Servers[i].Headers)...)
		}
		for _, a := range p.AllAgents() {
			all = append(all, taken(a.Env, nil)...)
		}
		for i := range p.Tasks {
			all = append(all, taken(p.Tasks[i].Env, nil)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// taken returns the variables that the values of `env` and of headers refer to.
func taken(env, headers map[string]string) (all []string) {
	for _, e := range sortedEnv(env) {
		if v, ok := e.takes(); ok {
			all = append(all, v)
		}
	}
	for _, value := range headers {
		if v, ok := secret.Reference(value[strings.LastIndexByte(value, ' ')+1:]); ok {
			all = append(all, v)
		}
	}
	return all
}

// A setVariable is an entry of an `env`.
type setVariable struct{ name, value string }

// takes returns the variable of our own environment whose value the entry takes, as package process
// reads it.
func (e setVariable) takes() (variable string, ok bool) {
	if e.value == "" && process.IsProviderKey(e.name) {
		return e.name, true
	}
	return secret.Reference(e.value)
}

func sortedEnv(env map[string]string) (all []setVariable) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, setVariable{name, env[name]})
	}
	return all
}

// envOf returns all variables that the plan sets for the programs or the model of a provider: its own,
// those of its agents, and those of their tasks.
func envOf(p *swarm.Plan, s *swarm.ProviderSpec) []setVariable {
	all := sortedEnv(s.Env)
	uses := map[string]bool{}
	for _, a := range p.AllAgents() {
		if a.Provider == s.Name {
			uses[a.Name] = true
			all = append(all, sortedEnv(a.Env)...)
		}
	}
	for i := range p.Tasks {
		if uses[p.Tasks[i].Agent] {
			all = append(all, sortedEnv(p.Tasks[i].Env)...)
		}
	}
	slices.SortFunc(all, func(a, b setVariable) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	return slices.Compact(all)
}

// isWithheld reports whether a program gets a variable only if the file names it. It has all others
// anyway.
func isWithheld(variable string) bool {
	value, _ := process.Lookup(nil, variable)
	return process.IsProviderKey(variable) || secret.OpensCollector(variable, value)
}

// isOwn reports whether a variable holds a key of the vendor of a kind.
func isOwn(kind *providerkind.Kind, variable string) bool {
	vendor := process.KeyVendor(variable)
	return vendor != "" && slices.ContainsFunc(kind.KeyVars, func(own string) bool { return process.KeyVendor(own) == vendor })
}

// modelKeys returns the keys that a model over HTTP gets. Without an address in the file the vendor
// gets its own key.
func modelKeys(s *swarm.ProviderSpec, kind *providerkind.Kind, env []setVariable) (uses []keyUse) {
	for _, e := range env {
		variable, ok := e.takes()
		if e.name != kind.KeyVars[0] || !ok || !process.IsKnownKey(variable) || s.BaseURL == "" && isOwn(kind, variable) {
			continue
		}
		to := cmp.Or(s.BaseURL, kind.BaseURL)
		uses = append(uses, keyUse{variable: variable, to: to, provider: s.Name, text: "sends " + variable + " to " + to})
	}
	return uses
}

// programKeys returns the keys that a program gets. A coding agent gets its vendor's keys by itself.
// The file changes who gets them if it names another command, or sets a variable: some variables name
// a server, and others the code that a program loads.
func programKeys(s *swarm.ProviderSpec, kind *providerkind.Kind, env []setVariable) (uses []keyUse) {
	var keys, changes, changed []string
	if kind.Program.Name != "" {
		keys = append(keys, kind.KeyVars...)
	}
	for _, e := range env {
		variable, takes := e.takes()
		switch {
		case !takes || !isWithheld(variable):
		case !slices.Contains(keys, variable):
			keys = append(keys, variable)
		}
		usual := takes && isOwn(kind, variable) && isOwn(kind, e.name)
		if !usual && kind.Program.Name != "" { // the file names the program of any other kind, whatever its variables are
			changes, changed = append(changes, e.name+"="+e.value), append(changed, e.name)
		}
	}
	own := len(s.Command) == 0 && len(changes) == 0
	command := s.Command
	if len(command) == 0 {
		command = []string{kind.Program.Name}
	}
	for _, variable := range keys {
		if own && isOwn(kind, variable) {
			continue
		}
		use := givesTo(variable, command, strings.Join(changes, "\x00"), keyUse{provider: s.Name})
		if len(changed) > 0 && len(s.Command) == 0 {
			use.text += ", for which the file sets " + strings.Join(slices.Compact(changed), ", ")
		}
		uses = append(uses, use)
	}
	return uses
}

// commandKeys returns the keys that the commands of models get by their agents' `env`. Variables that
// are named like a vendor's key are not passed on to commands.
func commandKeys(p *swarm.Plan) (uses []keyUse) {
	kinds := map[string]*providerkind.Kind{}
	for _, s := range p.Providers {
		kinds[s.Name] = providerkind.Of(s.Kind)
	}
	for _, a := range p.AllAgents() {
		if kind := kinds[a.Provider]; kind == nil || kind.ToolNames != providerkind.OurNames {
			continue
		}
		for _, e := range sortedEnv(a.Env) {
			if variable, ok := e.takes(); ok && isWithheld(variable) && !process.IsProviderKey(e.name) {
				name := cmp.Or(a.Base, a.Name)
				uses = append(uses, keyUse{variable: variable, to: "commands of @" + name, detail: e.name, provider: a.Provider,
					text: "gives " + variable + " to the commands that @" + name + " runs"})
			}
		}
	}
	return uses
}

// givesTo completes a use by a program.
func givesTo(variable string, command []string, detail string, use keyUse) keyUse {
	use.variable, use.to, use.detail = variable, strings.Join(command, " "), detail
	// All of it: a person who sees the beginning of a command does not know what it does.
	use.text = fmt.Sprintf("gives %s to the program %q", variable, use.to)
	return use
}

// A headerKey is a header whose value ends with a known key.
type headerKey struct{ header, variable string }

func headerKeys(headers map[string]string) (all []headerKey) {
	for _, e := range sortedEnv(headers) {
		last := e.value[strings.LastIndexByte(e.value, ' ')+1:]
		if variable, ok := secret.Reference(last); ok && process.IsKnownKey(variable) {
			all = append(all, headerKey{e.name, variable})
		}
	}
	return all
}
