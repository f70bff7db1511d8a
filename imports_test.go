package swarm_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The code has layers, and imports only point down: a package imports packages of lower layers, and
// one beside it only where this table says why. A new package gets a line here. Before another
// import is added, ask whether the code stands in the right package.
//
//	0  nouns        the module's root: no I/O, no clock
//	1  rules        pure functions on nouns: no I/O, no clock
//	2  loops        decide: no I/O, no clock, no goroutine
//	3  adapters     one kind of I/O each
//	4  engines      run the loops
//	5  use cases    what can be done with runs
//	6  doors        parse and print
//	7  programs     wire everything together
//	8  test support
type room struct {
	layer int
	uses  []use
}

// A use is a package of ours that another may import, and what for. One line each, so that two
// changes rarely meet.
type use struct{ path, why string }

const (
	nouns     = "the nouns"
	shortened = "messages shorten texts and lists in one way"
)

var house = map[string]room{
	"swarm": {layer: 0},

	"swarm/internal/plan": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/prompt": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/line": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/prompt", "what is asked of an agent in a line is a prompt like any other"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/excerpt":    {1, nil},
	"swarm/internal/strictjson": {1, []use{{"swarm", nouns}}},
	"swarm/internal/mail": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/prompt", "what others wrote is made safe for a prompt in one place"},
		{"swarm/internal/providerkind", "who can write to others at all"},
		{"swarm/internal/strictjson", "what others wrote is read strictly"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/contextpack": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/mail", "its reference stands in an envelope"},
		{"swarm/internal/prompt", "what others wrote is made safe for a prompt in one place"},
		{"swarm/internal/strictjson", "it is read as strictly as one"},
	}},
	"swarm/internal/providerkind": {1, []use{{"swarm", nouns}}},
	"swarm/internal/toolrule":     {1, []use{{"swarm", nouns}}},
	"swarm/internal/permission":   {1, []use{{"swarm", nouns}}},
	"swarm/internal/growth": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "who is there and who may write to whom is known in one place"},
		{"swarm/internal/strictjson", "how the arguments of a request are read"},
	}},
	"swarm/internal/agenttoken": {1, nil},
	"swarm/internal/secret":     {1, nil},
	"swarm/internal/schema":     {1, nil},
	"swarm/internal/yamlfile":   {1, []use{{"swarm", nouns}}},
	"swarm/internal/compose": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/toolrule", "what an agent's tools allow is said in one place"},
		{"swarm/internal/plan", "cycles, and what can never run, are found where they are for every door"},
		{"swarm/internal/contextpack", "what a team's goals have to keep to goes into their context packs"},
		{"swarm/internal/prompt", "a file is only as good as the prompts that it names"},
		{"swarm/internal/secret", "which values of a file are better left out of it"},
		{"swarm/internal/schema", "expect.schema is looked at before anybody works for it"},
		{"swarm/internal/yamlfile", "a compose file is YAML that a person wrote"},
		{"swarm/internal/providerkind", "which keys a provider takes, and what its agents make of theirs"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/wording": {1, []use{{"swarm", nouns}}},
	"swarm/internal/fact": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "who is to reply to an envelope, and to which one it is the reply"},
		{"swarm/internal/plan", "what is known of a team is facts"},
	}},
	"swarm/internal/view": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/wording", "why nothing goes on is said in one way"},
		{"swarm/internal/fact", "it understands an event as loops do"},
		{"swarm/internal/plan", "who waits for whom is one answer, whoever asks"},
		{"swarm/internal/excerpt", shortened},
	}},

	"swarm/internal/flow": {2, []use{
		{"swarm", nouns},
		{"swarm/internal/plan", "the one scheduler, and the one model of a team"},
		{"swarm/internal/excerpt", shortened},
	}},

	"swarm/internal/process": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/secret", "how a file names a variable of the environment"},
	}},
	"swarm/internal/recording": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/strictjson", "recordings are read strictly"},
	}},
	"swarm/internal/provider": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/permission", "what the phase forbids is a part of what is asked"},
		{"swarm/internal/process", "an agent may be a program"},
		{"swarm/internal/secret", "what is shown of a tool holds no key"},
		{"swarm/internal/yamlfile", "so is a script"},
	}},
	"swarm/internal/provider/model": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "of what it says only the end is kept"},
		{"swarm/internal/secret", "how a file names a key, and how a key is kept out of texts"},
		{"swarm/internal/schema", "what a model says to a tool is held against what the tool takes"},
		{"swarm/internal/providerkind", "where a vendor's server is, and what its models cost"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/tool": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/toolrule", "every call is held against what the agent may use"},
		{"swarm/internal/permission", "and, before that, against the phase"},
		{"swarm/internal/secret", "how a file names a key of a server"},
		{"swarm/internal/schema", "only schemas that come to an end are passed on"},
		{"swarm/internal/strictjson", "arguments are read strictly"},
		{"swarm/internal/process", "commands, and servers that are programs"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/coding": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/permission", "what the phase forbids is not to be had by `tools`"},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "a coding agent is a program"},
		{"swarm/internal/secret", "what the program knows is kept out of what it says"},
		{"swarm/internal/providerkind", "which program it is, and how its user signs in"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/acp": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/permission", "what an agent asks for is answered in one order"},
		{"swarm/internal/tool", "files that go through us are held to the same folders"},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "such an agent is a program"},
		{"swarm/internal/secret", "what the program knows is kept out of what it says"},
		{"swarm/internal/providerkind", "which program it is, and how its user signs in"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/a2a": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "of what it says only the end is kept"},
		{"swarm/internal/secret", "how a file names a key, and how a key is kept out of texts"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/registry": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/provider", "programs and scripts"},
		{"swarm/internal/provider/model", "models over HTTP"},
		{"swarm/internal/provider/coding", "coding agents"},
		{"swarm/internal/provider/acp", "agents that speak the Agent Client Protocol"},
		{"swarm/internal/provider/a2a", "agents that others publish"},
		{"swarm/internal/providerkind", "the rows that it binds to constructors"},
	}},
	"swarm/internal/sqlite":   {3, []use{{"swarm", nouns}}},
	"swarm/internal/statedir": {3, []use{{"swarm", nouns}, {"swarm/internal/excerpt", shortened}}},
	"swarm/internal/project": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/contextpack", "what a folder tells of itself"},
	}},
	"swarm/internal/snapshot": {3, []use{{"swarm", nouns}}},
	"swarm/internal/agentapi": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/fact", "it understands an event as loops do"},
		{"swarm/internal/wording", "what the run says to an agent becomes a sentence when it is written down"},
		{"swarm/internal/plan", "where agents stand is one answer, whoever asks"},
		{"swarm/internal/permission", "in which order an agent is held back"},
		{"swarm/internal/growth", "how a team may grow"},
		{"swarm/internal/mail", "the rules of post"},
		{"swarm/internal/contextpack", "context packs are artifacts that have to be what they say"},
		{"swarm/internal/strictjson", "how the arguments of tools are read"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/turn": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "a turn answers a loop's call"},
		{"swarm/internal/toolrule", "which of a model's tools change files"},
		{"swarm/internal/permission", "what the phase says of the files that a turn has changed"},
		{"swarm/internal/prompt", "it makes the prompt"},
		{"swarm/internal/mail", "with the agent's mail in it"},
		{"swarm/internal/contextpack", "and the context that came with it"},
		{"swarm/internal/agentapi", "an agent acts while it has a turn"},
		{"swarm/internal/provider", "it calls the provider, by its contract"},
		{"swarm/internal/schema", "what was made is held against expect.schema"},
		{"swarm/internal/providerkind", "and asks what its agents can do"},
		{"swarm/internal/excerpt", shortened},
	}},

	"swarm/internal/engine": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the loops"},
		{"swarm/internal/fact", "a loop understands a record as every reader of the log does"},
		{"swarm/internal/wording", "what a loop tells becomes a sentence when it is written down"},
		{"swarm/internal/plan", "and is told facts of a team"},
		{"swarm/internal/turn", "the one table from a call to the adapter that does it"},
	}},
	"swarm/internal/engine/local": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the verbs"},
		{"swarm/internal/engine", "the contract that it fulfils"},
	}},

	"swarm/internal/engine/replay": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the verbs"},
		{"swarm/internal/engine", "the contract that it fulfils"},
		{"swarm/internal/recording", "what it walks"},
		{"swarm/internal/turn", "prompts are made again as turns make them"},
		{"swarm/internal/agentapi", "what prompts say of the team is told by it"},
		{"swarm/internal/excerpt", shortened},
	}},

	"swarm/internal/run": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/recording", "a run is recorded when it is left"},
		{"swarm/internal/plan", "what a run that is tried again keeps is a question of dependencies, and what can be done to an agent one of what it waits for"},
		{"swarm/internal/view", "the fold of the log that everybody looks at"},
		{"swarm/internal/secret", "values of keys are taken out before anything is stored"},
		{"swarm/internal/flow", "a run names the version of its loops"},
		{"swarm/internal/registry", "agents are reached while a run is driven"},
		{"swarm/internal/process", "what a killed driver has left behind is ended"},
		{"swarm/internal/provider", "what running turns say"},
		{"swarm/internal/turn", "the turn runner"},
		{"swarm/internal/agentapi", "what agents do to the run"},
		{"swarm/internal/tool", "what else models may do"},
		{"swarm/internal/statedir", "where a run's files are"},
		{"swarm/internal/snapshot", "what the work tree was before and after"},
		{"swarm/internal/engine", "the contract of what drives a run"},
		{"swarm/internal/agenttoken", "what agents show at our own server"},
	}},
	"swarm/internal/httpd": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/schema", "what comes in is held against what a tool takes"},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/agenttoken", "a key is never what an agent's token could be"},
	}},
	"swarm/internal/feed": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/statedir", "which runs there are, and what running turns say"},
		{"swarm/internal/run", "a run is followed by its timeline"},
		{"swarm/internal/view", "where a run stands when it is first followed"},
	}},
	"swarm/internal/control": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/compose", "a compose file becomes a plan"},
		{"swarm/internal/project", "the files of a folder, and what the folder tells of itself"},
		{"swarm/internal/contextpack", "what goes with the goal of a team"},
		{"swarm/internal/strictjson", "JSON that came with a goal is stored without secrets"},
		{"swarm/internal/agentapi", "the goal and its pack are stored as agents store theirs"},
		{"swarm/internal/registry", "whether agents could be reached"},
		{"swarm/internal/provider", "what providers need to know, and recordings"},
		{"swarm/internal/process", "whoever presses Ctrl-C twice wants nothing left"},
		{"swarm/internal/tool", "whether what tools need is there"},
		{"swarm/internal/view", "what a run looks like now"},
		{"swarm/internal/statedir", "which runs there are"},
		{"swarm/internal/run", "runs are started, resumed and spoken to"},
		{"swarm/internal/recording", "a replay begins with what its recording tells of the folder"},
	}},
	"swarm/internal/api": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "what a person says is an envelope"},
		{"swarm/internal/view", "it shows what the view says"},
		{"swarm/internal/run", "runs are looked at and spoken to as commands do"},
		{"swarm/internal/httpd", "errors look the same at every door"},
		{"swarm/internal/strictjson", "how bodies of requests are read"},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/feed", "streams take what a run tells"},
		{"swarm/internal/statedir", "what a running turn has said"},
	}},
	"swarm/internal/telemetry": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/providerkind", "whose models a turn asked"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/a2a": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "a further message is an envelope"},
		{"swarm/internal/view", "where a task stands is what the view says"},
		{"swarm/internal/run", "runs are looked at and spoken to as commands do"},
		{"swarm/internal/httpd", "errors look the same at every door"},
		{"swarm/internal/strictjson", "what others send is JSON of theirs"},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/feed", "a task is followed as a run is"},
	}},
	"swarm/internal/term": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", "what is too long for a line is cut in one way"},
		{"swarm/internal/plan", "what a task waits for, in words"},
		{"swarm/internal/view", "it draws what the view says"},
	}},
	"swarm/internal/repl": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/plan", "what a task waits for, in words"},
		{"swarm/internal/view", "where agents stand is what the view says"},
		{"swarm/internal/term", "the palette, the signs, the printer and the window of every screen"},
	}},

	"swarm/internal/session": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/plan", "what a task waits for"},
		{"swarm/internal/prompt", "a session that is saved has its prompts in the file"},
		{"swarm/internal/line", "what a line means"},
		{"swarm/internal/view", "where everybody stands"},
		{"swarm/internal/statedir", "where the session's run is"},
		{"swarm/internal/run", "a session is a run"},
		{"swarm/internal/term", "answers to commands are tables too"},
		{"swarm/internal/repl", "it is talked to through a screen"},
	}},

	"swarm/cmd/swarm": {7, []use{
		{"swarm", nouns},
		{"swarm/internal/compose", "a compose file becomes a plan"},
		{"swarm/internal/prompt", "prompts are shown and checked by themselves"},
		{"swarm/internal/flow", "the version of the loops, for swarm version"},
		{"swarm/internal/snapshot", "what changed, for swarm diff"},
		{"swarm/internal/view", "what is shown"},
		{"swarm/internal/registry", "whether agents could be reached"},
		{"swarm/internal/process", "whoever presses Ctrl-C twice wants nothing left"},
		{"swarm/internal/provider", "what providers need to know, and recordings"},
		{"swarm/internal/statedir", "which runs there are"},
		{"swarm/internal/project", "the files of this folder"},
		{"swarm/internal/run", "runs are started, resumed and spoken to"},
		{"swarm/internal/line", "who is always there: the agent that tells a person"},
		{"swarm/internal/session", "conversations"},
		{"swarm/internal/tool", "whether what tools need is there"},
		{"swarm/internal/api", "`swarm serve`"},
		{"swarm/internal/a2a", "and its agents for those of others"},
		{"swarm/internal/mail", "what a person writes to an agent"},
		{"swarm/internal/agentapi", "and what comes of it"},
		{"swarm/internal/growth", "a request as a person edits it"},
		{"swarm/internal/httpd", "its server, and `swarm mcp`"},
		{"swarm/internal/repl", "and what they look like"},
		{"swarm/internal/telemetry", "whom else is told what happens"},
		{"swarm/internal/term", "what it looks like"},
		{"swarm/internal/providerkind", "which kinds `swarm doctor` looks at, and what confines the programs of a run"},
		{"swarm/internal/sqlite", "the store of runs, wired here and nowhere else"},
		{"swarm/internal/engine/local", "the engine, wired here and nowhere else"},
		{"swarm/internal/strictjson", "what a person sends as JSON"},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/feed", "the server follows runs for its clients"},
		{"swarm/internal/engine", "programs choose the engine"},
		{"swarm/internal/engine/replay", "the engine of a run that replays another"},
		{"swarm/internal/recording", "which file is to be replayed"},
	}},

	"swarm/internal/modeltest": {8, []use{
		{"swarm/internal/strictjson", "so is what the stand-in for a model says"},
	}},
	"swarm/internal/npmtest":  {8, nil},
	"swarm/internal/pipetest": {8, nil},
	"swarm/internal/otlptest": {8, nil},
	"swarm/internal/termtest": {8, []use{
		{"swarm", nouns},
		{"swarm/internal/view", "events are made from where a run stands"},
	}},
	"swarm/internal/storetest": {8, []use{{"swarm", nouns}}},
	"swarm/internal/engine/enginetest": {8, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the loops that it crashes"},
		{"swarm/internal/prompt", "prompts for them"},
		{"swarm/internal/provider", "agents for them"},
		{"swarm/internal/agentapi", "by which agents write to each other"},
		{"swarm/internal/turn", "the turn runner that is cut"},
		{"swarm/internal/storetest", "a log that fails when it is told to"},
		{"swarm/internal/engine", "the contract that is tested"},
		{"swarm/internal/providerkind", "which can do what programs can"},
	}},
}

// outside is what measures the house and is no part of it.
var outside = []string{"swarm/bench", "swarm/bench/disk", "swarm/bench/floor", "swarm/bench/standin"}

// foreign says who may import what others wrote. Everything else uses what these packages offer.
var foreign = []struct {
	prefix string
	by     []string
	why    string
}{
	{"modernc.org/", []string{"swarm/internal/sqlite"}, "the store can be changed in one place"},
	{"charm.land/", []string{"swarm/internal/term", "swarm/internal/repl"}, "only a window draws"},
	{"github.com/charmbracelet/", []string{"swarm/internal/term", "swarm/internal/repl", "swarm/internal/termtest"}, "parts of what draws: colours that a terminal has, the width of a text"},
	{"github.com/spf13/", []string{"swarm/cmd/swarm"}, "commands are thin, and they are all there"},
	{"go.yaml.in/yaml/", []string{"swarm/internal/yamlfile", "swarm/internal/compose", "swarm/internal/provider"}, "compose files and scripts are YAML; nothing else is"},
	{"github.com/google/jsonschema-go/", []string{"swarm/internal/schema"}, "it trusts its schemas, and must see only those that were looked at"},
	{"github.com/modelcontextprotocol/go-sdk/", []string{"swarm/internal/httpd", "swarm/internal/tool"}, "MCP is spoken at two places: the server that we are, and the servers that an agent may use"},
	{"go.opentelemetry.io/proto/", []string{"swarm/internal/otlptest"}, "what is told to OpenTelemetry is read in tests with its own messages"},
	{"google.golang.org/protobuf/", []string{"swarm/internal/otlptest"}, "and those messages need it"},
	{"github.com/a2aproject/a2a-go/v2/", []string{"swarm/internal/a2a", "swarm/internal/provider/a2a"}, "A2A is spoken at two places: the agents that we publish, and those of others"},
	{"golang.org/x/sys/", []string{"swarm/internal/sqlite", "swarm/internal/process"}, "processes that write one log: which of them lives, and what they tell each other; programs: waiting for several ends of one at once, and for its orphans"},
	{"golang.org/x/text/", []string{"swarm/internal/prompt"}, "texts of others are compared as they look, and Unicode says what looks the same"},
	{"golang.org/x/term", []string{"swarm/internal/term", "swarm/cmd/swarm"}, "whether somebody is looking"},
}

// outward are the standard packages that reach outside. Nothing below the adapters imports them.
var outward = []string{"os", "net", "syscall", "os/exec", "os/signal", "os/user", "net/http", "net/rpc", "net/smtp", "log", "log/syslog", "plugin", "testing"}

// loopImports are all that the loops may import of the standard library: whatever runs there must
// run the same way again.
var loopImports = []string{"cmp", "errors", "fmt", "maps", "slices", "strconv", "strings", "time"}

// clock are the functions that read the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

type pkg struct {
	path    string // what it is imported by
	dir     string
	files   []string
	imports []string
}

func TestImports(t *testing.T) {
	packages := list(t)
	for _, p := range packages {
		if slices.Contains(outside, p.path) {
			continue
		}
		r, ok := house[p.path]
		if !ok {
			t.Errorf("%s has no line in this table: say in which layer it stands and what it uses, in imports_test.go", p.path)
			continue
		}
		for _, imported := range p.imports {
			switch {
			case imported == "swarm" || strings.HasPrefix(imported, "swarm/"):
				checkOurs(t, p.path, r, imported)
			case strings.Contains(strings.Split(imported, "/")[0], "."):
				checkForeign(t, p.path, imported)
			default:
				checkStandard(t, p.path, r, imported)
			}
		}
		for _, used := range r.uses {
			if !slices.Contains(p.imports, used.path) {
				t.Errorf("%s no longer imports %s: take it out of imports_test.go", p.path, used.path)
			}
		}
	}
	for name := range house {
		if !slices.ContainsFunc(packages, func(p pkg) bool { return p.path == name }) {
			t.Errorf("there is no package %s any more: take it out of imports_test.go", name)
		}
	}
}

func checkOurs(t *testing.T, from string, r room, to string) {
	allowed := slices.ContainsFunc(r.uses, func(u use) bool { return u.path == to })
	switch lower, known := house[to]; {
	case !known:
		t.Errorf("%s imports %s, which is no room of the house: only tests may", from, to)
	case lower.layer > r.layer:
		t.Errorf("%s (layer %d) imports %s (layer %d): arrows only point down", from, r.layer, to, lower.layer)
	case !allowed:
		t.Errorf("%s imports %s, which its line in imports_test.go does not allow: add it with its reason if it is the right room", from, to)
	}
}

func checkForeign(t *testing.T, from, to string) {
	for _, f := range foreign {
		if strings.HasPrefix(to, f.prefix) {
			if !slices.Contains(f.by, from) {
				t.Errorf("%s imports %s, which is left to %s: %s", from, to, strings.Join(f.by, " and "), f.why)
			}
			return
		}
	}
	t.Errorf("%s imports %s: a new dependency needs a line in imports_test.go that says who may use it and why", from, to)
}

func checkStandard(t *testing.T, from string, r room, to string) {
	switch {
	case r.layer <= 2 && slices.Contains(outward, to):
		t.Errorf("%s (layer %d) imports %s: nothing below the adapters reaches outside", from, r.layer, to)
	case from == "swarm/internal/flow" && !slices.Contains(loopImports, to):
		t.Errorf("%s imports %s: the loops may import %s", from, to, strings.Join(loopImports, ", "))
	}
}

// TestLoopsAndRulesReadNoClock: what the same input must bring to the same state may not ask what
// time it is, and the loops may not start anything either.
func TestLoopsAndRulesReadNoClock(t *testing.T) {
	for _, p := range list(t) {
		r, ok := house[p.path]
		if !ok || r.layer > 2 {
			continue
		}
		for _, name := range p.files {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && of.Name == "time" && slices.Contains(clock, n.Sel.Name) {
						t.Errorf("%s: time.%s has no place below the adapters", files.Position(n.Pos()), n.Sel.Name)
					}
				case *ast.GoStmt, *ast.SelectStmt:
					if r.layer == 2 {
						t.Errorf("%s: a loop starts no goroutine and waits on no channel", files.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
}

// TestOnlyProcessMakesGroups: internal/process takes every child of this program that is in another
// process group for an orphan of one of its own programs, and ends it. So nobody else starts
// children with a group or a session of their own, but a command that starts no programs.
func TestOnlyProcessMakesGroups(t *testing.T) {
	for _, p := range list(t) {
		for _, name := range p.files {
			file := filepath.Join(p.dir, name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("SysProcAttr")) && p.path != "swarm/internal/process" && file != filepath.Join("cmd", "swarm", "detach.go") {
				t.Errorf("%s sets SysProcAttr: start the program by internal/process", file)
			}
		}
	}
}

// list finds the packages of the module that are more than tests. It reads them itself, so that go
// test knows what its result depends on.
func list(t *testing.T) []pkg {
	t.Helper()
	var packages []pkg
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); dir != "." && err == nil {
			return fs.SkipDir // another module
		}
		p, err := build.ImportDir(dir, 0)
		var none *build.NoGoError
		if errors.As(err, &none) || err == nil && len(p.GoFiles) == 0 {
			return nil
		}
		packages = append(packages, pkg{path.Join("swarm", filepath.ToSlash(dir)), dir, p.GoFiles, p.Imports})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
