// Package compose turns a compose file into a plan.
//
// The bytes are first a tree (package yamlfile: size, depth and text are checked before anything is built). The tree is decoded into the
// types in keys.go, whose struct tags are the one table of keys: the decoder, --set and the JSON Schema for editors all read
// it. Then names, providers, dependencies and pipelines are resolved over the whole file, what is to run is selected, its
// prompts are read, and the plan is written down. Every step collects all that is wrong, each with its file, line and column.
//
// The package does no I/O: prompts, scripts and schemas come through [Prompts].
package compose

import (
	"swarm"
)

// Prompts reads the files that a compose file names. A file that is not there is an error of the kind swarm.NotFound.
type Prompts interface {
	// Prompt finds a prompt by its name in the prompt folders. The path is for messages and spans.
	Prompt(name string) (path string, text []byte, err error)
	// File reads a prompt-file, schema or script, relative to the compose file's folder.
	File(path string) (shown string, text []byte, err error)
	// Include reads what an {{include: rel}} in the file from ("" = a prompt-string) names.
	Include(from, rel string) (path string, text []byte, err error)
}

// Options are a compose file, and what a command line says about it.
type Options struct {
	File        string // the name for messages
	Source      []byte
	Prompts     Prompts
	Select      []string               // a pipeline, or tasks; none = main, else the only pipeline, else all tasks
	Only        bool                   // without what the selected tasks depend on
	Set         []string               // "a.b=c": written over the file before it is looked at
	Provider    string                 // for agents that name none; over the file's
	MaxParallel int                    // over the file's; 0 = the file's
	Dir         string                 // absolute: where tasks work, and what relative folders are relative to
	Stdin       func() ([]byte, error) // called only when a selected prompt holds {{STDIN}}
}

// A Bundle is a plan and everything it refers to.
type Bundle struct {
	Plan     swarm.Plan
	Bodies   [][]byte       // the texts that the plan names by their hash
	Warnings []*swarm.Error // of the kinds Warning and Notice
	Settings Settings
	Places   Places // in the file
}

// The kinds of warnings. Nothing is wrong with the file, but perhaps with what it says.
const (
	Warning swarm.ErrorKind = "warning"
	Notice  swarm.ErrorKind = "notice" // of low rank: only `swarm check` says it
)

// Compile makes the plan of what is selected. The error is the first of those that Check would find.
func Compile(o Options) (*Bundle, error) {
	c := newCompiler(o)
	return c.compile(nil, c.choose)
}

// compile makes a plan in steps, until one finds an error. A replace that is not nil puts other tasks in
// the place of the file's: the file then need not be there, and is not blamed for what it does not say.
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
			e := c.sortedErrors()[0]
			if replace != nil && i > 0 && e.Line == 0 {
				e.File = ""
			}
			return nil, e
		}
	}
	return &Bundle{Plan: p, Bodies: c.bodies.texts, Warnings: c.sortedWarnings(), Settings: c.settings(), Places: c.places(sel)}, nil
}

// ReadSettings reads the settings alone: it needs no prompts, no provider and no selection.
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

// Check finds everything that is wrong with the file, and everything that looks wrong, each list in order of place.
// Without a selection it looks at every pipeline, and at the tasks that are in none.
func Check(o Options) (errs, warnings []*swarm.Error) {
	c := newCompiler(o)
	c.working = true
	if c.read(); c.root == nil || c.enough() {
		return c.sortedErrors(), nil
	}
	if !c.file.Tasks.given() && !c.file.Agents.given() && c.namesProvider() {
		c.declareTeam() // what `swarm run` makes of such a file
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
	for _, name := range c.agentNames { // those, too, that nothing selected needs
		c.provide(c.agents[name], false)
		c.checkTools(c.agents[name])
	}
	c.checkUnused()
	c.checkApart()
	return c.sortedErrors(), c.sortedWarnings()
}
