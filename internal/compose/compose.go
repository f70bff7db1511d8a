// Package compose turns a compose file into a plan, in steps:
//
//   - Package yamlfile parses the bytes into a tree. It checks size, depth and text before
//     anything is built.
//   - The tree is decoded into the types in keys.go. Their struct tags are the one table of keys:
//     the decoder, --set and the JSON Schema for editors all read it.
//   - Names, providers, dependencies and pipelines are resolved over the whole file.
//   - What is to run is selected, its prompts are read, and the plan is made.
//
// Every step collects all errors, each with its file, line and column.
//
// The package does no I/O: prompts, scripts and schemas come through [Prompts].
package compose

import (
	"io/fs"
	"strings"
	"sync"

	"swarm"
)

// Prompts reads the files that a compose file names. A missing file is an error of the kind
// swarm.NotFound.
type Prompts interface {
	// Prompt finds a prompt by its name in the prompt folders. The path is for messages and spans.
	Prompt(name string) (path string, text []byte, err error)
	// HasPrompt reports whether there is a prompt of this name, readable or not.
	HasPrompt(name string) bool
	// AgentFile finds a file of .claude/agents by its name, in the project and then in the home folder.
	AgentFile(name string) (path string, text []byte, err error)
	// File reads a prompt-file, schema or script, relative to the compose file's folder.
	File(path string) (shown string, text []byte, err error)
	// Include reads the file of an {{include: rel}} in the file from ("" = a prompt-string).
	Include(from, rel string) (path string, text []byte, err error)
	// Mode says what is at an absolute path. A link there is not followed.
	Mode(path string) (fs.FileMode, error)
}

// Options are a compose file, and what the command line says about it.
type Options struct {
	File        string // the name for messages
	Source      []byte
	Prompts     Prompts
	Select      []string               // a pipeline, or tasks; none = main, else the only pipeline, else all tasks
	Only        bool                   // without what the selected tasks depend on
	Set         []string               // "a.b=c": replaces values of the file before it is decoded
	Provider    string                 // of agents that name none; overrides the file's
	MaxParallel int                    // overrides the file's; 0 = the file's
	Dir         string                 // absolute: where tasks work, and the base of relative folders
	Stdin       func() ([]byte, error) // called only if a selected prompt has {{STDIN}}
	Found       *Found                 // replaces a missing file; nil = the machine was not searched
	reading     func() *reading        // see ReadOnce; nil = the file is read by each call
}

// Found lists the agents that a machine offers without a compose file.
type Found struct {
	Programs []string // kinds of providers whose programs are installed: each is an agent
	Roles    []string // names of files of .claude/agents: each is an agent
}

// ReadOnce returns options that several calls can share. The first call parses the file, and the
// later ones use its result. The calls must not run at the same time, and File, Source and Set must
// not change between them.
func (o Options) ReadOnce() Options {
	if o.reading != nil {
		return o
	}
	o.reading = sync.OnceValue(func() *reading { return readFile(o) })
	return o
}

// A Bundle is a plan and everything it refers to.
type Bundle struct {
	Plan     swarm.Plan
	Bodies   [][]byte       // the texts that the plan names by their hash
	Warnings []*swarm.Error // of the kinds Warning and Notice
	Settings Settings
	Places   Places   // in the file
	Sources  []string // the files that were read beside the compose file, as they are shown
	NoFile   bool     // there is no compose file
	// DeclaresAgents says that the file declares the agents of a team itself.
	DeclaresAgents bool
	// Supervisor is the provider of a swarm's supervisor; nil = that of its first agent.
	Supervisor *swarm.ProviderSpec
}

// The kinds of warnings. The file is valid, but it may not mean what its author intended.
const (
	Warning swarm.ErrorKind = "warning"
	Notice  swarm.ErrorKind = "notice" // of low rank: only `swarm check` shows it
)

// Compile makes the plan of what is selected. The error is the first of those that Check would
// find.
func Compile(o Options) (*Bundle, error) {
	c := newCompiler(o)
	return c.compile(nil, c.choose)
}

// CompileAll makes a plan of all tasks, whichever pipelines they are in. No run has it: it says what
// the file can start.
func CompileAll(o Options) (*Bundle, error) {
	c := newCompiler(o)
	return c.compile(nil, c.selectAll)
}

// compile makes a plan in steps, until one finds an error. If replace is not nil, it replaces the
// file's tasks by others. Then the file may be missing, and an error that is not about the file
// does not name it.
func (c *compiler) compile(replace func(), choose func() *selection) (*Bundle, error) {
	var sel *selection
	var p swarm.Plan
	for i, step := range []func(){
		func() {
			if replace == nil || len(c.o.Source) > 0 {
				c.read()
			}
		},
		func() {
			if replace != nil {
				replace()
				c.file.Pipelines, c.file.broken = named[pipelineKeys]{}, false
			}
			c.resolve()
		},
		func() { sel = choose() },
		func() { c.loadPrompts(sel) },
		func() { c.checkReferences(sel) },
		func() { c.checkModels(sel) },
		func() { c.checkMoney(sel) },
		func() { c.checkCopies(sel) },
		func() { c.checkDesks(sel) },
		func() { p = c.emit(sel) },
	} {
		if step(); c.failed() {
			errs := c.sortedErrors()
			e := *errs[0] // others may share it
			if replace != nil && i > 0 && e.Line == 0 {
				e.File = ""
			}
			if len(errs) > 1 {
				e.Hint = strings.TrimPrefix(e.Hint+"; to see all errors: swarm check -f "+c.o.File, "; ")
			}
			return nil, &e
		}
	}
	return &Bundle{
		Plan:     p,
		Bodies:   c.bodies.texts,
		Warnings: c.sortedWarnings(),
		Settings: c.settings(),
		Places:   c.places(sel),
		Sources:  c.sources.paths,
		NoFile:   c.o.Source == nil,
	}, nil
}

// ReadSettings reads the settings alone. It needs no prompts, no provider and no selection.
func ReadSettings(o Options) (*Settings, error) {
	c := newCompiler(o)
	for _, step := range []func(){c.read, c.resolve} {
		if step(); c.failed() {
			return nil, c.firstError()
		}
	}
	s := c.settings()
	return &s, nil
}

// Check finds all errors and all warnings of the file, each list in order of place. Without a
// selection it checks every pipeline, and the tasks that are in none.
func Check(o Options) (errs, warnings []*swarm.Error) {
	c := newCompiler(o)
	c.working = true
	if c.read(); c.root == nil || c.enough() {
		return c.sortedErrors(), nil
	}
	if !c.file.Tasks.given() && !c.file.Agents.given() && c.namesProvider() {
		c.declareTeam() // as `swarm run` does with such a file
	}
	c.resolve()
	for _, sel := range c.everySelection() {
		c.loadPrompts(sel)
		c.checkReferences(sel)
		c.checkOrder(sel)
		c.checkModels(sel)
		c.checkMoney(sel)
		c.checkCopies(sel)
		c.checkDesks(sel)
		c.agentsOf(sel)
	}
	for _, name := range c.agentNames { // also those that nothing selected needs
		c.findProvider(c.agents[name], false)
		c.checkTools(c.agents[name])
		c.checkSession(c.agents[name])
	}
	c.checkUnused()
	c.checkTeamEdges()
	c.checkCommands()
	return c.sortedErrors(), c.sortedWarnings()
}
