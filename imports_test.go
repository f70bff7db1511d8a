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

// A packageRule is the layer of a package and the packages of ours that it imports. Imports only
// point down: to lower layers, or within a layer. Each import has its reason in this table. A new
// package gets a line here. Before you add an import, ask whether the code is in the right package.
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
type packageRule struct {
	layer int
	uses  []use
}

// A use is a package of ours that another may import, and why. Each has a line of its own, so that
// two changes rarely conflict.
type use struct{ path, why string }

const (
	nouns     = "the nouns"
	shortened = "messages shorten texts and lists in one way"
)

var packageRules = map[string]packageRule{
	"swarm": {layer: 0},

	"swarm/internal/plan": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/wording", "the sentence that says why a worker of a swarm ends"},
	}},
	"swarm/internal/prompt": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/line": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/prompt", "the text of a line is a prompt"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/excerpt":    {1, nil},
	"swarm/internal/strictjson": {1, []use{{"swarm", nouns}}},
	"swarm/internal/station":    {1, []use{{"swarm", nouns}}},
	"swarm/internal/modeljson": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/strictjson", "what was mended is read strictly"},
	}},
	"swarm/internal/action": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/modeljson", "an action is a JSON object in a model's answer"},
		{"swarm/internal/strictjson", "parameters that stand in a string are read strictly"},
	}},
	"swarm/internal/review": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/modeljson", "a review is a JSON object in a model's answer"},
	}},
	"swarm/internal/subtask": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/modeljson", "subtasks are a JSON object in a model's answer"},
		{"swarm/internal/plan", "cycles of dependencies"},
		{"swarm/internal/strictjson", "a person's file is read strictly"},
	}},
	"swarm/internal/mail": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/prompt", "text of others is escaped for prompts in one place"},
		{"swarm/internal/providerkind", "which kinds of agents can send mail"},
		{"swarm/internal/strictjson", "JSON of others is read strictly"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/contextpack": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/mail", "an envelope carries its reference"},
		{"swarm/internal/prompt", "text of others is escaped for prompts in one place"},
		{"swarm/internal/strictjson", "packs are read strictly"},
	}},
	"swarm/internal/providerkind": {1, []use{{"swarm", nouns}}},
	"swarm/internal/hostrule":     {1, []use{{"swarm", nouns}}},
	"swarm/internal/toolrule": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/hostrule", "web_fetch names hosts"},
	}},
	"swarm/internal/permission": {1, []use{{"swarm", nouns}}},
	"swarm/internal/growth": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "mail has the list of agents and edges"},
		{"swarm/internal/providerkind", "which agents have their tools from us"},
		{"swarm/internal/station", "names the agents of a swarm"},
		{"swarm/internal/strictjson", "arguments of requests are read strictly"},
		{"swarm/internal/toolrule", "the file tools of a swarm's agents"},
	}},
	"swarm/internal/agenttoken": {1, nil},
	"swarm/internal/jsonedit":   {1, nil},
	"swarm/internal/secret":     {1, nil},
	"swarm/internal/schema":     {1, nil},
	"swarm/web":                 {1, nil},
	"swarm/internal/yamlfile":   {1, []use{{"swarm", nouns}}},
	"swarm/internal/agentfile": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/yamlfile", "front matter is YAML"},
	}},
	"swarm/internal/compose": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/agentfile", "roles that Claude Code knows"},
		{"swarm/internal/hostrule", "the syntax of a sandbox's network list"},
		{"swarm/internal/toolrule", "the syntax of an agent's tools"},
		{"swarm/internal/plan", "finds cycles and tasks that can never run"},
		{"swarm/internal/contextpack", "a team's constraints go into context packs"},
		{"swarm/internal/prompt", "compiling a file checks its prompts"},
		{"swarm/internal/secret", "warns of secrets in a file"},
		{"swarm/internal/schema", "expect.schema is checked before the run"},
		{"swarm/internal/growth", "the agents of a swarm that does a task, whose cost is forecast"},
		{"swarm/internal/yamlfile", "compose files are YAML"},
		{"swarm/internal/providerkind", "the keys and capabilities of provider kinds"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/wording": {1, []use{{"swarm", nouns}}},
	"swarm/internal/fact": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "which envelope replies to which"},
		{"swarm/internal/plan", "the type of a fact about a team"},
	}},
	"swarm/internal/view": {1, []use{
		{"swarm", nouns},
		{"swarm/internal/wording", "the sentence that says why a run is stuck"},
		{"swarm/internal/fact", "decodes events as the loops do"},
		{"swarm/internal/plan", "the machines that know who waits for whom"},
		{"swarm/internal/providerkind", "the context window of a model"},
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
		{"swarm/internal/secret", "references to environment variables"},
	}},
	"swarm/internal/sandbox": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/hostrule", "which hosts a program in a sandbox reaches"},
		{"swarm/internal/process", "ends what a program has started, where it has no namespace of processes"},
	}},
	"swarm/internal/recording": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/strictjson", "recordings are read strictly"},
	}},
	"swarm/internal/provider": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/permission", "requests carry what the phase forbids"},
		{"swarm/internal/process", "an agent may be a program"},
		{"swarm/internal/providerkind", "what programs of a kind need in a sandbox"},
		{"swarm/internal/sandbox", "confines programs"},
		{"swarm/internal/secret", "redacts tool calls"},
		{"swarm/internal/yamlfile", "scripts are YAML"},
	}},
	"swarm/internal/provider/model": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "keeps the end of a long output"},
		{"swarm/internal/secret", "references to keys, and redaction"},
		{"swarm/internal/schema", "checks a model's arguments against the tool's schema"},
		{"swarm/internal/providerkind", "addresses and prices of vendors"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/tool": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/toolrule", "checks each call against the agent's tools"},
		{"swarm/internal/permission", "checks each call against the phase"},
		{"swarm/internal/secret", "references to keys of servers, which they may repeat"},
		{"swarm/internal/schema", "passes on only schemas that terminate"},
		{"swarm/internal/strictjson", "arguments are read strictly"},
		{"swarm/internal/process", "commands, and servers that are programs"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/coding": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/permission", "`tools` cannot override the phase"},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/toolrule", "the lines that allow a refused tool"},
		{"swarm/internal/process", "a coding agent is a program"},
		{"swarm/internal/sandbox", "confines programs"},
		{"swarm/internal/secret", "redacts the output of the program"},
		{"swarm/internal/providerkind", "which program it is, and how its user signs in"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/acp": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/permission", "the order of permission checks"},
		{"swarm/internal/tool", "confines file requests to the agent's root"},
		{"swarm/internal/toolrule", "the paths that an entry of the agent's tools names, and the lines that allow a refused tool"},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "such an agent is a program"},
		{"swarm/internal/sandbox", "confines programs"},
		{"swarm/internal/secret", "redacts the output of the program"},
		{"swarm/internal/providerkind", "which program it is, and how its user signs in"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/a2a": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/provider", "the contract that it fulfils"},
		{"swarm/internal/process", "keeps the end of a long output"},
		{"swarm/internal/secret", "references to keys, and redaction"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/provider/desk": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/desk", "the file protocol"},
		{"swarm/internal/prompt", "which parts of a prompt are role, task and context"},
		{"swarm/internal/provider", "the contract that it fulfils, and the provider that works at the desk"},
		{"swarm/internal/process", "keeps the end of a long output"},
	}},
	"swarm/internal/registry": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/provider/desk", "desks at which external workers work"},
		{"swarm/internal/provider", "programs and scripts"},
		{"swarm/internal/provider/model", "models over HTTP"},
		{"swarm/internal/provider/coding", "coding agents"},
		{"swarm/internal/provider/acp", "agents that speak the Agent Client Protocol"},
		{"swarm/internal/provider/a2a", "agents that others publish"},
		{"swarm/internal/providerkind", "the rows that it binds to constructors"},
	}},
	"swarm/internal/desk": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/strictjson", "files of workers are read strictly"},
	}},
	"swarm/internal/logbase": {3, []use{{"swarm", nouns}}},
	"swarm/internal/sqlite": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/logbase", "group commit, the newest events in memory, and the chain of checksums"},
	}},
	"swarm/internal/postgres": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/logbase", "group commit, the newest events in memory, and the chain of checksums"},
	}},
	"swarm/internal/statedir": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/process", "whether an agent's program makes the folder"},
	}},
	"swarm/internal/project": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/agentfile", "where the files of agents are"},
		{"swarm/internal/contextpack", "the facts about a folder are a pack"},
	}},
	"swarm/internal/snapshot": {3, []use{{"swarm", nouns}}},
	"swarm/internal/agentapi": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/subtask", "reads how a query is divided"},
		{"swarm/internal/fact", "decodes events as the loops do"},
		{"swarm/internal/wording", "makes sentences of message codes"},
		{"swarm/internal/plan", "the machines that know the state of agents"},
		{"swarm/internal/permission", "the order of permission checks"},
		{"swarm/internal/growth", "the rules of growth requests"},
		{"swarm/internal/mail", "the rules of mail"},
		{"swarm/internal/contextpack", "validates context packs"},
		{"swarm/internal/strictjson", "arguments of tools are read strictly"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/turn": {3, []use{
		{"swarm", nouns},
		{"swarm/internal/action", "reads what an agent of a swarm does next"},
		{"swarm/internal/subtask", "reads how a query is divided"},
		{"swarm/internal/modeljson", "what a model thought is no part of its answer"},
		{"swarm/internal/review", "reads how a member of a council judges the others"},
		{"swarm/internal/plan", "what a turn of a swarm is for"},
		{"swarm/internal/flow", "a turn answers a loop's call"},
		{"swarm/internal/toolrule", "which of a model's tools change files, and the lines that allow a refused one"},
		{"swarm/internal/permission", "checks a turn's changes against the phase"},
		{"swarm/internal/prompt", "renders the prompt"},
		{"swarm/internal/mail", "the prompt contains the agent's mail"},
		{"swarm/internal/contextpack", "the prompt contains context packs"},
		{"swarm/internal/agentapi", "opens the agent's tools for the turn"},
		{"swarm/internal/provider", "it calls the provider, by its contract"},
		{"swarm/internal/provider/desk", "has a provider work at the desk of one turn"},
		{"swarm/internal/desk", "what a worker delivered goes into the log"},
		{"swarm/internal/schema", "checks outputs against expect.schema"},
		{"swarm/internal/providerkind", "the capabilities of a provider's agents"},
		{"swarm/internal/excerpt", shortened},
	}},

	"swarm/internal/engine": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the loops"},
		{"swarm/internal/fact", "decodes records as every reader of the log does"},
		{"swarm/internal/wording", "makes sentences of message codes"},
		{"swarm/internal/plan", "the facts that a loop is given"},
		{"swarm/internal/turn", "the adapter of turn calls"},
	}},
	"swarm/internal/engine/local": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the verbs"},
		{"swarm/internal/engine", "the contract that it fulfils"},
	}},

	"swarm/internal/engine/temporal": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the verbs"},
		{"swarm/internal/engine", "the contract that it fulfils"},
	}},

	"swarm/internal/engine/replay": {4, []use{
		{"swarm", nouns},
		{"swarm/internal/flow", "the verbs"},
		{"swarm/internal/engine", "the contract that it fulfils"},
		{"swarm/internal/recording", "the recording that it walks"},
		{"swarm/internal/turn", "renders prompts as live turns do"},
		{"swarm/internal/agentapi", "the parts of a prompt about the team"},
		{"swarm/internal/excerpt", shortened},
	}},

	"swarm/internal/run": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/recording", "writes the recording of a run"},
		{"swarm/internal/plan", "dependencies decide what a retry redoes; waits decide which actions an agent allows"},
		{"swarm/internal/view", "the fold of the log"},
		{"swarm/internal/mail", "a person's open questions are mail"},
		{"swarm/internal/secret", "redacts before anything is stored"},
		{"swarm/internal/prompt", "redacts the parts of a stored prompt"},
		{"swarm/internal/flow", "a run names the version of its loops"},
		{"swarm/internal/registry", "opens providers"},
		{"swarm/internal/process", "ends orphaned processes of a killed driver"},
		{"swarm/internal/providerkind", "which agents have their file tools from us"},
		{"swarm/internal/provider", "the deltas of running turns"},
		{"swarm/internal/turn", "the turn runner"},
		{"swarm/internal/desk", "what a retry takes of the desks of the run before"},
		{"swarm/internal/agentapi", "the tools by which agents act"},
		{"swarm/internal/tool", "the other tools of models"},
		{"swarm/internal/permission", "the files that the run obeys, which agents may not write"},
		{"swarm/internal/statedir", "the run's files"},
		{"swarm/internal/snapshot", "snapshots of the work tree"},
		{"swarm/internal/engine", "the interface of engines"},
		{"swarm/internal/agenttoken", "tokens of agents"},
		{"swarm/internal/compose", "holds back the answer of a swarm that does a task"},
		{"swarm/internal/growth", "the plan of a swarm that does a task"},
		{"swarm/internal/station", "reports in a workspace whose names no agent may get"},
	}},
	"swarm/internal/httpd": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/schema", "checks arguments against a tool's schema"},
		{"swarm/internal/strictjson", "JSON-RPC is read strictly"},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/agenttoken", "tells agents' tokens from API keys"},
	}},
	"swarm/internal/feed": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/statedir", "the store of runs, and streams"},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/plan", "what a turn of a swarm is for"},
		{"swarm/internal/run", "a run is followed by its timeline"},
		{"swarm/internal/view", "the state at which following begins"},
	}},
	"swarm/internal/control": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/subtask", "reads the file that divides a query"},
		{"swarm/internal/growth", "adds an agent for each subtask"},
		{"swarm/internal/compose", "a compose file becomes a plan"},
		{"swarm/internal/project", "a folder's files, and the facts about it"},
		{"swarm/internal/contextpack", "the context pack of a goal"},
		{"swarm/internal/strictjson", "redacts the JSON of a goal"},
		{"swarm/internal/agentapi", "the goal and its pack are stored as agents store theirs"},
		{"swarm/internal/mail", "a person's message is an envelope"},
		{"swarm/internal/registry", "preflight checks of providers"},
		{"swarm/internal/provider", "the options of providers"},
		{"swarm/internal/process", "a second Ctrl-C kills the agents' processes; which variables hold whose keys"},
		{"swarm/internal/providerkind", "whose key a kind of provider gets by itself"},
		{"swarm/internal/secret", "references to keys in a plan"},
		{"swarm/internal/tool", "preflight checks of tools"},
		{"swarm/internal/view", "the picture of a run"},
		{"swarm/internal/statedir", "finds runs"},
		{"swarm/internal/run", "starts, resumes and steers runs"},
		{"swarm/internal/recording", "a replay takes the facts about the folder from its recording"},
	}},
	"swarm/internal/api": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "a person's message is an envelope"},
		{"swarm/internal/view", "shows the picture of a run"},
		{"swarm/internal/run", "reads and steers runs, as commands do"},
		{"swarm/internal/httpd", "errors look the same at every door"},
		{"swarm/internal/strictjson", "request bodies are read strictly"},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/feed", "the frames of streams"},
		{"swarm/internal/statedir", "streams of running turns"},
	}},
	"swarm/internal/telemetry": {5, []use{
		{"swarm", nouns},
		{"swarm/internal/providerkind", "the vendor of a turn's model"},
		{"swarm/internal/excerpt", shortened},
	}},
	"swarm/internal/a2a": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/mail", "a further message is an envelope"},
		{"swarm/internal/view", "the status of a task"},
		{"swarm/internal/run", "reads and steers runs, as commands do"},
		{"swarm/internal/strictjson", "JSON of others is read strictly"},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/feed", "a task is followed as a run is"},
	}},
	"swarm/internal/mcpdrive": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/mail", "a message to an agent is an envelope"},
		{"swarm/internal/run", "reads runs, as commands do"},
		{"swarm/internal/strictjson", "arguments are read strictly"},
		{"swarm/internal/view", "the picture of a run"},
	}},
	"swarm/internal/term": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", "messages shorten texts and lists in one way"},
		{"swarm/internal/plan", "describes what a task waits for"},
		{"swarm/internal/view", "draws the picture of a run"},
	}},
	"swarm/internal/repl": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/plan", "describes what a task waits for"},
		{"swarm/internal/view", "the state of agents"},
		{"swarm/internal/term", "the palette, the signs, the printer and the window of every screen"},
	}},

	"swarm/internal/session": {6, []use{
		{"swarm", nouns},
		{"swarm/internal/plan", "what a task waits for"},
		{"swarm/internal/prompt", "a saved session contains its prompts"},
		{"swarm/internal/line", "what a line means"},
		{"swarm/internal/view", "the state of agents and tasks"},
		{"swarm/internal/statedir", "where the session's run is"},
		{"swarm/internal/run", "a session is a run"},
		{"swarm/internal/term", "answers to commands are tables too"},
		{"swarm/internal/repl", "its screen"},
	}},

	"swarm/cmd/swarm": {7, []use{
		{"swarm", nouns},
		{"swarm/internal/compose", "a compose file becomes a plan"},
		{"swarm/internal/prompt", "prompts are shown and checked by themselves"},
		{"swarm/internal/flow", "the version of the loops, for swarm version"},
		{"swarm/internal/snapshot", "what changed, for swarm diff"},
		{"swarm/internal/view", "the picture of a run"},
		{"swarm/internal/registry", "preflight checks of providers"},
		{"swarm/internal/sandbox", "the program is its stages too, and doctor says whether it works"},
		{"swarm/internal/process", "a second Ctrl-C kills the agents' processes"},
		{"swarm/internal/provider", "the options of providers"},
		{"swarm/internal/statedir", "finds runs"},
		{"swarm/internal/project", "the files of this folder"},
		{"swarm/internal/run", "starts, resumes and steers runs"},
		{"swarm/internal/line", "the built-in agent that notifies a person"},
		{"swarm/internal/session", "conversations"},
		{"swarm/internal/desk", "desks by themselves, without a run"},
		{"swarm/internal/agentfile", "a desk's role that Claude Code knows"},
		{"swarm/internal/tool", "preflight checks of tools"},
		{"swarm/internal/api", "`swarm serve`, and the server beside a run"},
		{"swarm/web", "the files of the page"},
		{"swarm/internal/a2a", "publishes agents to other programs"},
		{"swarm/internal/mail", "a person's mail"},
		{"swarm/internal/agentapi", "sends a person's mail"},
		{"swarm/internal/growth", "a request as a person edits it"},
		{"swarm/internal/httpd", "its server, and `swarm mcp`"},
		{"swarm/internal/mcpdrive", "`swarm mcp --drive`"},
		{"swarm/internal/jsonedit", "the configuration of an MCP client"},
		{"swarm/internal/repl", "the screen of conversations"},
		{"swarm/internal/telemetry", "exports runs to OpenTelemetry"},
		{"swarm/internal/term", "prints runs"},
		{"swarm/internal/providerkind", "the kinds that `swarm doctor` checks, and what confines a run's programs"},
		{"swarm/internal/sqlite", "the store of runs, wired here and nowhere else"},
		{"swarm/internal/postgres", "the store that machines share, wired here and nowhere else"},
		{"swarm/internal/engine/local", "the engine, wired here and nowhere else"},
		{"swarm/internal/strictjson", "JSON of a person is read strictly"},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/control", "what can be done with runs"},
		{"swarm/internal/feed", "the server follows runs for its clients"},
		{"swarm/web", "the page, for exports"},
		{"swarm/internal/engine", "programs choose the engine"},
		{"swarm/internal/engine/replay", "the engine of a run that replays another"},
		{"swarm/internal/recording", "opens the file to replay"},
	}},

	"swarm/cmd/swarm-worker": {7, []use{
		{"swarm", nouns},
		{"swarm/internal/control", "the variable of the store"},
		{"swarm/internal/engine", "programs choose the engine"},
		{"swarm/internal/engine/local", "the engine of swarms that do a task: their budgets are in one process"},
		{"swarm/internal/engine/temporal", "the engine of all other runs, wired here and nowhere else"},
		{"swarm/internal/excerpt", shortened},
		{"swarm/internal/flow", "workers of another version of the loops have another queue"},
		{"swarm/internal/httpd", "the server of agents' tools"},
		{"swarm/internal/postgres", "the store that machines share"},
		{"swarm/internal/process", "a second Ctrl-C kills the agents' processes"},
		{"swarm/internal/run", "drives runs, and assists other workers"},
		{"swarm/internal/sandbox", "the program is its stages too"},
		{"swarm/internal/statedir", "the files of runs on this machine"},
		{"swarm/internal/telemetry", "exports runs to OpenTelemetry"},
	}},

	"swarm/internal/modeltest": {8, []use{
		{"swarm", "tokens are estimated as everywhere"},
		{"swarm/internal/strictjson", "replies of the stand-in are read strictly"},
	}},
	"swarm/internal/npmtest":  {8, nil},
	"swarm/internal/pipetest": {8, nil},
	"swarm/internal/otlptest": {8, nil},
	"swarm/internal/termtest": {8, []use{
		{"swarm", nouns},
		{"swarm/internal/view", "makes events from the state of a run"},
	}},
	"swarm/internal/storetest":    {8, []use{{"swarm", nouns}}},
	"swarm/internal/postgrestest": {8, []use{{"swarm/internal/servertest", "starts the cluster"}}},
	"swarm/internal/temporaltest": {8, []use{{"swarm/internal/servertest", "starts the server"}}},
	"swarm/internal/servertest":   {8, nil}, // tests only
	"swarm/internal/simulation":   {8, nil}, // tests only
	"swarm/internal/mutants":      {8, nil}, // tests only
	"swarm/internal/engine/enginetest": {8, []use{
		{"swarm", nouns},
		{"swarm/internal/growth", "makes the plan of a council"},
		{"swarm/internal/station", "the names of a swarm"},
		{"swarm/internal/plan", "what the answer of a swarm may use"},
		{"swarm/internal/flow", "the loops that it crashes"},
		{"swarm/internal/prompt", "prompts for them"},
		{"swarm/internal/provider", "agents for them"},
		{"swarm/internal/agentapi", "the tools by which agents write to each other"},
		{"swarm/internal/turn", "the turn runner that is cut"},
		{"swarm/internal/storetest", "a log with faults that a test chooses"},
		{"swarm/internal/engine", "the contract that is tested"},
		{"swarm/internal/providerkind", "the capabilities of programs"},
	}},
}

// outside are the benchmarks, which the layers do not cover.
var outside = []string{"swarm/bench", "swarm/bench/disk", "swarm/bench/floor", "swarm/bench/standin"}

// foreign says which packages may import a dependency. All others use those packages.
var foreign = []struct {
	prefix string
	by     []string
	why    string
}{
	{"modernc.org/", []string{"swarm/internal/sqlite"}, "the store can be changed in one place"},
	{"github.com/jackc/", []string{"swarm/internal/postgres"}, "the shared store can be changed in one place"},
	{"go.temporal.io/", []string{"swarm/internal/engine/temporal"}, "its SDK would make the program half as large again, and each start of it slower"},
	{"github.com/fsnotify/", []string{"swarm/internal/desk"}, "changes of files are followed in one place"},
	{"charm.land/", []string{"swarm/internal/term", "swarm/internal/repl"}, "only screens draw"},
	{"github.com/charmbracelet/", []string{"swarm/internal/term", "swarm/internal/repl", "swarm/internal/termtest"}, "terminal colours and the width of texts"},
	{"github.com/spf13/", []string{"swarm/cmd/swarm"}, "only the program has commands"},
	{"go.yaml.in/yaml/", []string{"swarm/internal/yamlfile", "swarm/internal/compose", "swarm/internal/provider", "swarm/internal/agentfile"}, "compose files, scripts and front matter are YAML; nothing else is"},
	{"github.com/google/jsonschema-go/", []string{"swarm/internal/schema"}, "it trusts its schemas, so they are checked first"},
	{"github.com/modelcontextprotocol/go-sdk/", []string{"swarm/internal/httpd", "swarm/internal/tool"}, "MCP is spoken at two places: the server that we are, and the servers that an agent may use"},
	{"golang.org/x/oauth2", []string{"swarm/internal/tool"}, "logins at MCP servers over HTTP"},
	{"go.opentelemetry.io/proto/", []string{"swarm/internal/otlptest"}, "tests decode the exported messages"},
	{"google.golang.org/protobuf/", []string{"swarm/internal/otlptest"}, "the messages need it"},
	{"github.com/a2aproject/a2a-go/v2/", []string{"swarm/internal/a2a", "swarm/internal/provider/a2a"}, "A2A is spoken at two places: the agents that we publish, and those of others"},
	{"golang.org/x/sys/", []string{"swarm/internal/sqlite", "swarm/internal/process", "swarm/internal/sandbox", "swarm/internal/statedir"}, "inotify and start times of processes; pidfd, poll, orphaned processes and peers of sockets; seccomp and Landlock; when a file was made"},
	{"golang.org/x/text/", []string{"swarm/internal/prompt"}, "compares texts of others as they look, by Unicode"},
	{"golang.org/x/term", []string{"swarm/internal/term", "swarm/cmd/swarm"}, "whether a terminal is connected"},
}

// outward are the standard packages that reach outside. Nothing below the adapters imports them.
var outward = []string{"os", "net", "syscall", "os/exec", "os/signal", "os/user", "net/http", "net/rpc", "net/smtp", "log", "log/syslog", "plugin", "testing"}

// loopImports are the standard packages that loops may import. A loop must be deterministic,
// because a run is resumed by running its loop again.
var loopImports = []string{"cmp", "errors", "fmt", "maps", "slices", "strconv", "strings", "time"}

// clock are the functions that read the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

type pkg struct {
	path    string // its import path
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
		r, ok := packageRules[p.path]
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
	for name := range packageRules {
		if !slices.ContainsFunc(packages, func(p pkg) bool { return p.path == name }) {
			t.Errorf("there is no package %s any more: take it out of imports_test.go", name)
		}
	}
}

// `swarm` itself never links Temporal's SDK, by whichever way.
func TestTheProgramHasNoTemporal(t *testing.T) {
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		for _, u := range packageRules[path].uses {
			visit(u.path)
		}
	}
	visit("swarm/cmd/swarm")
	if !seen["swarm/internal/turn"] || seen["swarm/internal/engine/temporal"] {
		t.Error("cmd/swarm imports internal/engine/temporal, which is left to a program of its own")
	}
}

func checkOurs(t *testing.T, from string, r packageRule, to string) {
	allowed := slices.ContainsFunc(r.uses, func(u use) bool { return u.path == to })
	switch lower, known := packageRules[to]; {
	case !known:
		t.Errorf("%s imports %s, which is not in this table: only tests may", from, to)
	case lower.layer > r.layer:
		t.Errorf("%s (layer %d) imports %s (layer %d): arrows only point down", from, r.layer, to, lower.layer)
	case !allowed:
		t.Errorf("%s imports %s, which its line in imports_test.go does not allow: add it with its reason, if the code is in the right package", from, to)
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

func checkStandard(t *testing.T, from string, r packageRule, to string) {
	switch {
	case r.layer <= 2 && slices.Contains(outward, to):
		t.Errorf("%s (layer %d) imports %s: nothing below the adapters reaches outside", from, r.layer, to)
	case from == "swarm/internal/flow" && !slices.Contains(loopImports, to):
		t.Errorf("%s imports %s: the loops may import %s", from, to, strings.Join(loopImports, ", "))
	}
}

// TestLoopsAndRulesReadNoClock keeps loops and rules deterministic: the same input must lead to the
// same state. Loops start no goroutine either.
func TestLoopsAndRulesReadNoClock(t *testing.T) {
	for _, p := range list(t) {
		r, ok := packageRules[p.path]
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

// TestOnlyProcessMakesGroups: internal/process treats every child in another process group as an
// orphaned process of one of its programs, and ends it. So no other package starts children with a
// group or session of their own. The exception is a command that starts no programs.
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

// list returns the packages of the module that are more than tests. It reads the files itself, so
// that the cache of go test sees what the result depends on.
func list(t *testing.T) []pkg {
	t.Helper()
	var packages []pkg
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "node_modules") {
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
