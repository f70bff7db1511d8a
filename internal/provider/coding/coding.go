// Package coding runs coding agents: programs such as Claude Code, Codex and opencode, which bring
// their own model, tools and sandbox.
//
// A turn writes the prompt to the program's standard input and reads a stream of JSON lines. This
// package holds what all programs share:
//
//   - Each program has its own process group and ends with its turn, whatever it does.
//   - Lines are decoded one by one and never kept, so a flood of output needs little memory.
//   - A program that takes several prompts is kept for the agent's next turn. Any other program
//     continues its session by name in a new process.
//
// What differs is behind [vendor], in one file per vendor: arguments, the format of the stream, and
// how a user signs in.
//
// The user's own settings stay in force, and no settings file is edited. Arguments and variables
// tell a program about the swarm tools. The token is in no argument, because other users of the
// machine can read those.
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
	"swarm/internal/sandbox"
)

// vendors makes the vendor of each kind of provider. confined says that its programs run in a sandbox
// of ours.
var vendors = map[string]func(confined bool) vendor{
	providerkind.ClaudeCode: func(bool) vendor { return &claude{} },
	providerkind.Codex:      func(confined bool) vendor { return &codex{confined: confined} },
	providerkind.Opencode:   func(bool) vendor { return opencode{} },
}

// A vendor knows one program: how to start it, how to read its stream, and how its user signs in.
// One vendor serves many turns at once, so it guards its own state.
type vendor interface {
	facts() facts
	// launch says how to start the program for a turn. session is the session to continue, "" for a
	// new one. env is the program's environment.
	launch(r provider.Request, session string, env lookup) launch
	// begin makes the bytes that the program reads first in a turn: the prompt, or a greeting after
	// which its listener writes the prompt.
	begin(t *turn, l launch) string
	// newListener makes the listener for one turn of a program that was started like this.
	newListener(t *turn, l launch) listener
	// signedIn says what the user is signed in with, if at all. ask runs the program.
	signedIn(
		ctx context.Context,
		env lookup,
		ask func(ctx context.Context, args ...string) (said string, exit int),
	) (with string, ok bool)
}

// A listener decodes one line after the other and reports what it means to its turn. An error ends
// both the turn and the program. A line that comes from the model ends the wait for it (modelWait).
type listener interface {
	hearLine(line []byte) error
}

// A stderrListener is a listener that also reads standard error. Pieces need not be whole lines.
type stderrListener interface {
	hearStderr(piece string)
}

// A downgrader is a vendor that can also start its program in a way in which the program can do
// less, because older versions of it refuse the usual way.
type downgrader interface {
	// downgrade returns what the program cannot do, if the vendor has another launch to try, and else
	// "". The program of this launch did not begin the turn.
	downgrade(l launch, t *turn) string
}

// cannotAsk is what a program cannot do that has no way to ask.
const cannotAsk = "ask a person; it starts again, and refuses what it would ask for"

// A lookup returns the value of a variable in the program's environment.
type lookup func(name string) string

// facts describe a program. They are the same for every turn.
type facts struct {
	providerkind.Program // its row in the table of kinds

	defaultEnv  map[string]string // variables set unless the user has set them
	nestedVars  []string          // variables that would make it believe it runs inside another instance
	sessionGone string            // what it prints when it does not know a session
}

// A launch says how to start a program for one turn.
type launch struct {
	args       []string
	env        map[string]string
	overlay    map[string]object // settings to merge into variables that hold JSON
	files      map[string]string // contents by name, for a private folder; {folder} in args and env is its path
	talks      bool              // the program's standard input stays open in the turn, for what its listener writes
	persistent bool              // as talks, and the program takes more prompts after this one
}

// folderHere stands for the folder of the launch's files in its arguments and variables.
const folderHere = "{folder}"

// Time limits.
const (
	settleFor = 5 * time.Second // for a program to exit after it has reported its result
)

// An agent is a provider whose agents are programs of one kind. It serves many turns at once.
type agent struct {
	spec       swarm.ProviderSpec
	vendor     vendor
	facts      facts
	argv       []string // the program, and the arguments that the user adds
	dir        string
	env        *process.Environment
	box        *sandbox.Box
	versions   provider.Versions
	grace      time.Duration
	settleTime time.Duration
	patience   time.Duration

	provider.Idle[*program]
}

// Open makes the provider that spec describes. It starts no process.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	return open(spec, opt)
}

// open is Open with its concrete type, for tests.
func open(spec swarm.ProviderSpec, opt provider.Options) (*agent, error) {
	maker, ok := vendors[spec.Kind]
	if !ok {
		return nil, swarm.Errorf(swarm.BadInput, "the provider %q is of the kind %q, which is not a coding agent", spec.Name, spec.Kind).
			WithHint("%s", swarm.DidYouMean(spec.Kind, slices.Sorted(maps.Keys(vendors))))
	}
	v := maker(spec.Sandbox != nil)
	a := &agent{
		spec:       spec,
		vendor:     v,
		facts:      v.facts(),
		dir:        opt.Dir,
		box:        provider.NewSandbox(spec, opt),
		versions:   opt.Versions,
		grace:      opt.Grace,
		settleTime: settleFor,
		patience:   provider.Patience,
		Idle:       provider.Idle[*program]{End: (*program).end},
	}
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

// environment makes the environment of all programs of the provider. It is our own, plus the
// vendor's keys, plus what a program needs to work in a team. The user's own variables win.
func (a *agent) environment(own, keys []string) (*process.Environment, error) {
	if own == nil {
		own = os.Environ()
	}
	name := func(kv string) string { n, _, _ := strings.Cut(kv, "="); return n }
	own = slices.DeleteFunc(
		slices.Clone(own),
		func(kv string) bool { return slices.Contains(a.facts.nestedVars, name(kv)) },
	)
	added := provider.Unset(own, a.facts.defaultEnv)
	_, shown := provider.ShowAllTools(a.facts.Name)
	maps.Copy(added, provider.Unset(own, shown))
	for _, key := range keys {
		added[key] = ""
	}
	maps.Copy(added, a.spec.Env)
	return process.NewEnvironment(own, added)
}
