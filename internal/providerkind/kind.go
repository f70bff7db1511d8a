// Package providerkind is the one table of provider kinds. A row says what a provider of the kind
// takes from a compose file, what its agents can do, and what a user gets without declaring
// anything. All other packages ask a row for a capability and never compare a kind's name.
//
// The table is data without I/O, so the rules can read it. Package registry binds each row to the
// constructor that reaches the agents. A new kind is a row, a package and one line in registry.
package providerkind

import (
	"slices"
	"strings"

	"swarm"
)

// A Kind is one row of the table. A row does not change once it is registered.
type Kind struct {
	Name string

	// Configuration: what `providers:` of a compose file may say about it.
	Keys    []string          // the keys it takes, beside kind and price
	Needs   Need              // the key it cannot do without; zero = it works undeclared, as a preset
	Instead map[string]string // by key that it does not take: what to do instead, where that is special

	// Capabilities: what its agents can do.
	Tools      Tools     // how they are given our tools
	Commands   bool      // they act by the program's commands (swarm send), so texts for them name commands
	ToolNames  ToolNames // whose names `tools` of an agent lists
	ToolSample string    // of program names: an example to paste
	ToolPrefix string    // of program names: only entries with this prefix mean something
	// CommandTool is the entry of `tools` without which each command is asked for; "" = none is asked for
	// because of `tools`. CommandSample is a command that goes in parentheses behind it; "" = none does.
	CommandTool   string
	CommandSample string
	Sessions      Sessions // whether a later turn can continue an earlier one
	Files         Files    // how they change files
	Plays         bool     // it plays agents of any kind: of `tools`, names of a coding agent's program mean nothing to it
	Person        bool     // it tells a person: it gets the bare text, and no compose file names it
	Outside       bool     // it starts nothing: a person, or a program of others, does its turns at a desk
	Checked       Checked  // what a check of whether they can be reached does
	Confined      Confined // what keeps their programs from doing what they like
	Login         Login    // what their programs need of the home folder, in a sandbox too

	// Models and money.
	Model       Model
	ListPrices  bool   // its own models have list prices
	ReportsCost bool   // each turn reports what it cost
	Vendor      string // its name in OpenTelemetry's conventions; "" = the kind's name

	// Preset: what a provider is given that its user leaves out.
	Models  map[string]string // by tier
	BaseURL string
	Program Program
	KeyVars []string // variables of the environment that sign it in; the first one is suggested
}

// A Need is a key that a provider must declare.
type Need struct {
	Key     string
	Example string // to paste
	About   string // what the value is, where the key alone does not say it
}

// String is the key as a compose file writes it.
func (n Need) String() string { return n.Key + ": " + n.Example }

// Hint says what to write.
func (n Need) Hint() string {
	if n.About != "" {
		return "write " + n.About + ": " + n.String()
	}
	return "write " + n.String()
}

// Tools says how an agent is given our tools.
type Tools int

// The ways to give an agent our tools.
const (
	NoTools   Tools = iota // not at all: it cannot message other agents
	InProcess              // the provider calls them for it while the turn runs
	ByDoor                 // it is a program that finds our MCP server, and a token, in its environment
)

// Sessions says what keeps the conversation that later turns of an agent continue.
type Sessions int

// The keepers of a session.
const (
	NoSessions      Sessions = iota // nothing: each turn is sent the whole prompt
	ProgramSessions                 // the agent's program or server, under an id of its own
	LogSessions                     // the run's log: a turn is sent what was said before
)

// ToolNames says whose names the entries of an agent's `tools` are.
type ToolNames int

// The owners of the names.
const (
	Unheeded     ToolNames = iota // no one: the list means nothing to such an agent
	OurNames                      // ours, as package toolrule reads them
	ProgramNames                  // its program's own
)

// Files says how an agent changes files, and so whether what a turn changed is worth a record.
type Files int

// The ways to change files.
const (
	NoFiles   Files = iota // not at all
	ByTools                // only with the tools that its `tools` list
	ByProgram              // by itself, in turns that may be thousands and quick: recorded in teams only
	ByAgent                // by itself, in turns that are long: always recorded
)

// Checked says what a check does to find out whether agents can be reached.
type Checked int

// What a check does.
const (
	Looked  Checked = iota // it looks at PATH and the environment
	Started                // it starts the program
	Asked                  // it asks the server
)

// Model says what decides on a turn's model.
type Model int

// The ways to decide on it.
const (
	AnyModel  Model = iota // optional: a tier without a model means no model
	OwnModel               // its program, unless the file names one; a tier must have a model
	NeedModel              // the file or the preset must name one
)

// Confined says what confines the agents' programs, in words that follow a provider's name. The
// program's own sandbox decides what it may write; the words say what we know of it.
type Confined struct {
	Always   string // "" = nothing is known
	Planning string // in the phase PLANNING, where only docs/ may be written
	KeyVar   string // the variable with which WithKey is so, in place of Always; "" = none
	WithKey  string
}

// A Login is where a program keeps its login, settings and sessions: paths in the home folder.
type Login struct {
	Folders []string // it writes these
	Obeyed  []string // files in them that a person's own program would obey: read-only in a sandbox
}

// A Program is the program of a kind's agents when the user names no other.
type Program struct {
	Title   string // what people call it
	Name    string // its name in PATH
	Package string // its npm package
	SignIn  string // what to do to sign in
}

// Install says how to get the program.
func (p Program) Install() string {
	return "install " + p.Title + ": npm install -g " + p.Package + "; or write where it is: command: [/path/to/" + p.Name + "]"
}

// Takes says whether a provider of the kind may declare a key.
func (k *Kind) Takes(key string) bool {
	return key == "kind" || key == "price" || slices.Contains(k.Keys, key)
}

// WithoutKey says what to do about a key that the kind does not take: leave it out, or choose a
// kind that takes it.
func (k *Kind) WithoutKey(key string) string {
	if hint := k.Instead[key]; hint != "" {
		return hint
	}
	takers := names(func(o *Kind) bool { return !o.Person && o.Takes(key) })
	switch last := len(takers) - 1; {
	case last < 0:
		return "leave it out"
	case last == 0 || last > 2: // of many, the first is the simplest
		return "leave it out, or write kind: " + takers[0]
	default:
		return "leave it out, or write kind: " + strings.Join(takers[:last], ", ") + " or " + takers[last]
	}
}

// VendorName returns the kind's name in OpenTelemetry's conventions.
func (k *Kind) VendorName() string {
	if k.Vendor != "" {
		return k.Vendor
	}
	return k.Name
}

// KnowsCost says whether the cost of turns is known without a price in the file. A server of the
// user's own has its own prices, so list prices do not apply.
func (k *Kind) KnowsCost(spec *swarm.ProviderSpec) bool {
	return k.ReportsCost || k.ListPrices && spec.BaseURL == ""
}

// Of returns the row of a kind. For an unknown name it returns a row without capabilities.
func Of(name string) *Kind {
	if i := slices.IndexFunc(table, func(k *Kind) bool { return k.Name == name }); i >= 0 {
		return table[i]
	}
	return &Kind{Name: name}
}

// Exists says whether a compose file may name the kind.
func Exists(name string) bool { return slices.Contains(Names(), name) }

// Names returns the kinds that a compose file may name, in the order of the table.
func Names() []string {
	return names(func(k *Kind) bool { return !k.Person })
}

// AllKeyVars returns the variables that hold keys of known vendors, sorted.
func AllKeyVars() (all []string) {
	for _, k := range table {
		all = append(all, k.KeyVars...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Presets returns the kinds that reach an agent without being declared.
func Presets() []string {
	return names(func(k *Kind) bool { return !k.Person && !k.Outside && k.Needs == (Need{}) })
}

// DeskWorkers returns the kinds whose agents work at a desk without further ado: they read and write
// files in any folder.
func DeskWorkers() []string {
	return names(func(k *Kind) bool { return k.Files == ByProgram || k.Files == ByAgent })
}

func names(which func(*Kind) bool) (list []string) {
	for _, k := range table {
		if which(k) {
			list = append(list, k.Name)
		}
	}
	return list
}

// Register adds a row. Kinds are registered while the program starts, so no mutex guards the table.
func Register(k Kind) {
	if k.Name == "" || slices.ContainsFunc(table, func(o *Kind) bool { return o.Name == k.Name }) {
		panic("providerkind: the kind " + swarm.Quote(k.Name) + " is registered twice, or has no name")
	}
	table = append(table, &k)
}
