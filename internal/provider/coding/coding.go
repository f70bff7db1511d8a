// Package coding reaches coding agents: programs with models, tools and a sandbox of their own, such as Claude Code and Codex.
//
// A turn gives the program a prompt on its standard input and reads what it says, a stream of lines of JSON. What all of them have in
// common is here: a program is started in its own process group, its lines are read one by one and never kept, and whatever it does it
// is ended when the turn is. What is a maker's own, the arguments, the words of the stream and where one signs in, is behind [vendor], a
// file for each. A program that can go on after a turn is kept for the agent's next one; another is told to continue the session.
//
// The user's own settings stay in force and none of them is edited: what a program is told of our tools is told by arguments and
// variables, without the token in any of them that others could read.
package coding

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// makers are the vendors whose programs are known here, by the kind of the provider.
var makers = map[string]func() vendor{
	providerkind.ClaudeCode: func() vendor { return claude{} },
	providerkind.Codex:      func() vendor { return &codex{totals: map[string]swarm.Usage{}} },
	providerkind.Opencode:   func() vendor { return opencode{} },
}

// A vendor knows one maker's program: how it is started, what it says, and what it wants of its user. It serves many turns at once.
type vendor interface {
	facts() facts
	// launch says how the program is started for a turn that begins a session, or continues the one that is named.
	launch(r provider.Request, session string) launch
	// say is what is written to the program for it to take up a prompt. The message is named by id, where messages have names.
	say(prompt, id string) string
	// listen makes what understands the lines that the program writes in one turn.
	listen(t *turn) listener
	// signed says what the program's user is signed in with, if at all. ask runs the program.
	signed(ctx context.Context, env lookup, ask func(ctx context.Context, args ...string) (said string, exit int)) (with string, ok bool)
}

// A listener hears one line after the other, and tells its turn what it means. An error ends the turn, and the program.
type listener interface {
	line(line []byte) error
}

// A mutterer is a listener that understands what its program writes to standard error, too: in pieces that need not be lines.
type mutterer interface {
	mutters(piece string)
}

// A lookup finds a variable in the environment that the program is given.
type lookup func(name string) string

// facts are what does not change from turn to turn.
type facts struct {
	providerkind.Program // of the table of kinds

	usual  map[string]string // variables that it is given unless the user has set them
	outer  []string          // variables by which it would take itself for a part of another one
	forgot string            // the words by which it says that it does not know a session
}

// A launch is how a program is started.
type launch struct {
	args  []string
	env   map[string]string
	over  map[string]object // settings to be laid over the JSON that is in variables
	files map[string]string // to be in a folder of the program's own, by name; {folder} in args and env is that folder
	kept  bool              // the program takes more prompts when it is through with one
}

// folderHere stands in a launch for the folder in which its files are.
const folderHere = "{folder}"

// Bounds of what is waited for.
const (
	settleFor   = 5 * time.Second // a program that has said its result and does not end
	patienceFor = 5 * time.Minute // a program that waits because its model's server has told it to
)

// An agent is a provider whose agents are coding agents of one kind.
type agent struct {
	spec    swarm.ProviderSpec
	vendor  vendor
	facts   facts
	argv    []string // the program and what the user adds to its arguments
	dir     string
	env     *process.Environment
	grace   time.Duration
	settle  time.Duration
	patient time.Duration

	provider.Idle[*program]
}

// Open makes the provider that spec describes. It starts nothing.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	return open(spec, opt)
}

func open(spec swarm.ProviderSpec, opt provider.Options) (*agent, error) {
	maker, ok := makers[spec.Kind]
	if !ok {
		return nil, swarm.Errorf(swarm.BadInput, "the provider %q is of the kind %q, which is no coding agent's", spec.Name, spec.Kind).
			WithHint("%s", swarm.DidYouMean(spec.Kind, slices.Sorted(maps.Keys(makers))))
	}
	v := maker()
	a := &agent{spec: spec, vendor: v, facts: v.facts(), dir: opt.Dir, grace: opt.Grace, settle: settleFor, patient: patienceFor, Idle: provider.Idle[*program]{End: (*program).end}}
	kind := providerkind.Of(spec.Kind)
	a.facts.Program = kind.Program
	if a.argv = spec.Command; len(a.argv) == 0 {
		a.argv = []string{a.facts.Name}
	}
	if err := provider.CheckCommand(spec); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(a.argv, func(arg string) bool { return strings.Contains(arg, "{prompt}") }) {
		return nil, swarm.Errorf(swarm.BadInput, "the command of the provider %q holds {prompt}", spec.Name).
			WithHint("take it out: %s is given its prompt on standard input", a.facts.Title)
	}
	if a.argv[0] == "" {
		return nil, swarm.Errorf(swarm.BadInput, "the command of the provider %q begins with an empty text", spec.Name).
			WithHint("write the program first: command: [%s]", a.facts.Name)
	}
	var err error
	a.env, err = a.environment(opt.Environ, kind.KeyVars)
	return a, err
}

// environment is what all programs of the provider are given: our own with the maker's keys, and what a program needs to be a part
// of a team, unless the user has decided otherwise.
func (a *agent) environment(own, keys []string) (*process.Environment, error) {
	if own == nil {
		own = os.Environ()
	}
	name := func(kv string) string { n, _, _ := strings.Cut(kv, "="); return n }
	own = slices.DeleteFunc(slices.Clone(own), func(kv string) bool { return slices.Contains(a.facts.outer, name(kv)) })
	added := map[string]string{}
	for _, key := range keys {
		added[key] = ""
	}
	for k, v := range a.facts.usual {
		if !slices.ContainsFunc(own, func(kv string) bool { return name(kv) == k }) {
			added[k] = v
		}
	}
	maps.Copy(added, a.spec.Env)
	return process.NewEnvironment(own, added)
}
