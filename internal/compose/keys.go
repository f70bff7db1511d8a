package compose

import (
	"reflect"
	"strconv"
	"sync"

	"swarm"
	"swarm/internal/providerkind"
)

// This file is the table of keys. The tags of a field are its rule: key, doc, among (a list in
// choices), min, max, loose, single.

var tiers = []string{"small", "medium", "large"}

// choices are functions because kinds can be registered after this package has started.
var choices = map[string]func() []string{
	"kinds":      providerkind.Names,
	"tiers":      fixed(tiers...),
	"conditions": fixed(swarm.Conditions...),
	"on_failure": fixed(swarm.OnFailures...),
	"workers":    fixed(swarm.Workers...),
	"task_kinds": fixed(swarm.TaskKinds...),
	"on_limit":   fixed(limitWaits, limitFails),
	"on_stall":   fixed(swarm.OnStalls...),
	"strategies": fixed(swarm.Strategies...),
	"approvals":  fixed("ask", "auto", "deny"),
	"apis":       fixed(providerkind.Responses, providerkind.Chat),
	"engines":    fixed("local", swarm.EngineTemporal),
	"efforts":    fixed("none", "minimal", "low", "medium", "high", "xhigh", "max"),
	"sandboxes":  fixed(swarm.SandboxOS),
	"sessions":   fixed(swarm.NoSession),
	"networks":   fixed(swarm.NetworkAll, swarm.NetworkNone),
}

func fixed(list ...string) func() []string { return func() []string { return list } }

// fileKeys are the keys at the top of the file.
type fileKeys struct {
	section
	Version      text                `key:"version" loose:"" doc:"The version of this format: \"1\"."`
	Provider     text                `key:"provider" doc:"The provider of agents that name none; --provider and SWARM_PROVIDER go before it."`
	Providers    named[providerKeys] `key:"providers" doc:"How agents are reached. Every built-in kind is there without being declared."`
	Agents       named[agentKeys]    `key:"agents" doc:"The participants."`
	Edges        list[text]          `key:"edges" doc:"Which agent may message which: \"a -> b\" or \"a <-> b\"."`
	Tasks        named[taskKeys]     `key:"tasks" doc:"The work."`
	Pipelines    named[pipelineKeys] `key:"pipelines" doc:"Sets of tasks that iterate together. swarm up runs main, else the only one, else all tasks."`
	DefaultAgent text                `key:"default_agent" doc:"The agent that gets a line without an @name."`
	Desks        text                `key:"desks" doc:"The folder of the desks, such as a shared one; without it one in the state folder."`
	Store        text                `key:"store" doc:"The database of runs that several machines share: postgres://user@host:port/database. SWARM_STORE goes before it. Without it runs are in the state folder."`
	Engine       text                `key:"engine" among:"engines" doc:"Who drives runs: the process that begins them (local), or workers on machines that share the store (temporal). SWARM_ENGINE goes before it."`
	MaxParallel  integer             `key:"max_parallel" min:"1" max:"10000" doc:"Turns of a run at once."`
	WaitTimeout  duration            `key:"wait_timeout" doc:"How long a reference waits."`
	ReplyTimeout duration            `key:"reply_timeout" doc:"How long an agent waits for a required reply."`
	OnLimit      onLimitKeys         `key:"on_limit" doc:"What agents do when their provider's limit is reached and it says until when: wait, fail, or {use: PROVIDER}; wait without it."`
	LimitWait    duration            `key:"limit_wait" doc:"How long a turn waits for a provider's limit at most; 12h without it."`
	Approvals    approvalKeys        `key:"approvals" doc:"What needs the approval of a person."`
	Notify       notifyKeys          `key:"notify" doc:"How a person is notified."`
	Budget       budgetKeys          `key:"budget" doc:"What a run may cost."`
	Team         teamKeys            `key:"team" doc:"How a team works, and the rules for all its goals."`
	Swarm        swarmKeys           `key:"swarm" doc:"Limits of swarm mode."`
	Tools        toolKeys            `key:"tools" doc:"Tools of MCP servers."`
}

// providerKeys are the keys of a provider. Package providerkind says which of them each kind takes.
type providerKeys struct {
	section
	Kind        text        `key:"kind" among:"kinds" doc:"What kind of provider it is."`
	Command     list[text]  `key:"command" loose:"" doc:"Program and arguments. The prompt comes on standard input, unless an argument holds {prompt}; {model} is the model."`
	Script      text        `key:"script" doc:"The YAML file of a provider of the kind script."`
	BaseURL     text        `key:"base_url" doc:"Where its server is."`
	API         text        `key:"api" among:"apis" doc:"Which API of OpenAI its server is asked by: responses, or chat; without it responses at OpenAI itself, and chat at a base_url."`
	Models      named[text] `key:"models" loose:"" doc:"Models by tier: small, medium, large."`
	Mode        text        `key:"mode" doc:"The session mode of an ACP agent, by the name that its program has for it."`
	MaxTokens   integer     `key:"max_tokens" min:"1" doc:"How long an answer of a model over HTTP may be."`
	Temperature number      `key:"temperature" max:"2" doc:"The sampling temperature of a model over HTTP; without it the default of its server."`
	Effort      text        `key:"effort" among:"efforts" doc:"How much a model over HTTP thinks; not every model takes every word."`
	Thinking    thinking    `key:"thinking" doc:"How a model of Anthropic thinks: adaptive, disabled, or the most tokens that it may think."`
	ServiceTier text        `key:"service_tier" doc:"How fast a model over HTTP is served, in the words of its server."`
	Images      boolean     `key:"images" doc:"Whether a model over HTTP is shown the images that tools return; without it models that are known to take images are."`
	Extra       object      `key:"extra" doc:"More fields of each request to a model over HTTP. Objects are merged."`
	Context     contextKeys `key:"context" doc:"How much of its session an agent that names no other limits is sent with each turn, of a model over HTTP."`
	Price       priceKeys   `key:"price" doc:"US dollars for a million tokens."`
	Env         named[text] `key:"env" loose:"" doc:"Added to its environment."`
	Headers     named[text] `key:"headers" loose:"" doc:"Sent to an A2A agent, or to a model over HTTP, with each request; Bearer $NAME takes its end from the environment."`
	Sandbox     sandboxKeys `key:"sandbox" doc:"What confines its programs: os, or a mapping."`
}

// sandboxKeys is a sandbox: its kind alone, or a mapping.
type sandboxKeys struct {
	section
	Kind    text       `key:"kind" among:"sandboxes" doc:"os uses bubblewrap, on Linux."`
	Write   list[text] `key:"write" doc:"What the programs may write beside their workspace."`
	Read    list[text] `key:"read" doc:"What the programs may read although it is hidden otherwise."`
	Hide    list[text] `key:"hide" doc:"What is hidden from the programs, beside ~/.ssh and the like."`
	Network network    `key:"network" doc:"What they reach: all, none, or a list of hosts: example.org, *.example.org, localhost:8080."`
}

// contextKeys limit what a model over HTTP is sent of its session.
type contextKeys struct {
	section
	Tokens integer `key:"tokens" min:"1000" doc:"At most so many tokens, estimated. Older turns lose the results of their tools, and then everything but a line. Without it half of the model's context window, at most 80,000, and 32,000 if that is unknown."`
	Keep   integer `key:"keep" min:"1" max:"1000" doc:"The newest turns that are shortened last; 3 without it."`
}

type priceKeys struct {
	section
	Input  number `key:"input" doc:"For a million tokens of input."`
	Output number `key:"output" doc:"For a million tokens of output."`
}

// agentKeys are the keys of an agent.
type agentKeys struct {
	section
	Provider    text           `key:"provider" doc:"How it is reached."`
	Role        text           `key:"role" doc:"Its role: a prompt by name, or else .claude/agents/NAME.md; without it the prompt that has the agent's name, if there is one."`
	Model       text           `key:"model" loose:"" doc:"Its model."`
	Tier        text           `key:"tier" among:"tiers" doc:"Its model, by size."`
	Tools       list[text]     `key:"tools" doc:"The tools it may use: file_read, file_write, file_list, command(go test), web_fetch(example.org), a server of tools.mcp or one tool of it; a coding agent's are called as its program calls them."`
	Root        text           `key:"root" doc:"The folder that its tools may touch."`
	Permissions permissionKeys `key:"permissions" doc:"What it may do beside its work."`
	Env         named[text]    `key:"env" loose:"" doc:"Added to its environment."`
	OnLimit     onLimitKeys    `key:"on_limit" doc:"What it does when its provider's limit is reached and that one says until when: wait, fail, or {use: PROVIDER}; without it as the file says."`
	LimitWait   duration       `key:"limit_wait" doc:"How long its turns wait for a provider's limit at most; without it as the file says."`
	Desk        boolean        `key:"desk" doc:"It does its turns at a desk: a folder with the instructions, in which the worker delivers files."`
	Session     text           `key:"session" among:"sessions" doc:"none: its turns know nothing of each other. Without it a later turn continues the session of the one before, if its provider has sessions."`
	Context     contextKeys    `key:"context" doc:"How much of its session it is sent with each turn, if it is a model over HTTP."`
	Budget      limitKeys      `key:"budget" doc:"What all its turns in a run may cost. Without room for another one the agent has failed, and the others go on."`
	Worker      text           `key:"worker" among:"workers" doc:"Who works at the desk: command is its provider, external a person or a program that is not started; command without it."`
}

type permissionKeys struct {
	section
	Spawn       boolean `key:"spawn" doc:"It may ask for new agents."`
	Orchestrate boolean `key:"orchestrate" doc:"It leads: when it is done, the run is."`
}

// taskKeys are the keys of a task.
type taskKeys struct {
	section
	Kind         text            `key:"kind" among:"task_kinds" doc:"What does it: its agent, or a swarm whose agents are like its agent. The prompt is the query of a swarm, and the answer its output."`
	Agent        text            `key:"agent" doc:"The agent that does it. Without it the task is its own agent."`
	Prompt       text            `key:"prompt" doc:"Its prompt, by name."`
	PromptFile   text            `key:"prompt-file" doc:"Its prompt, as a file, relative to this one."`
	PromptString text            `key:"prompt-string" doc:"Its prompt, as text."`
	DependsOn    list[afterKeys] `key:"depends_on" single:"" doc:"The tasks that it waits for."`
	Inputs       named[text]     `key:"inputs" doc:"What {{input:NAME}} stands for: a task's output."`
	Expect       expectKeys      `key:"expect" doc:"Conditions for its success; all must hold."`
	Retries      integer         `key:"retries" max:"1000" doc:"How many more attempts it gets."`
	Timeout      duration        `key:"timeout" doc:"How long one attempt may take."`
	OnFailure    text            `key:"on_failure" among:"on_failure" doc:"What happens when it has failed for good."`
	Model        text            `key:"model" loose:"" doc:"The model for this task."`
	Tier         text            `key:"tier" among:"tiers" doc:"The model for this task, by size."`
	Iterations   integer         `key:"iterations" min:"1" max:"1000000" doc:"How often it is done; only outside a pipeline."`
	Parallelism  integer         `key:"parallelism" min:"1" max:"1000" doc:"How many copies of it run; only outside a pipeline."`
	Concurrency  integer         `key:"concurrency" min:"1" max:"10000" doc:"How many copies of it may run at the same time."`
	Prefix       text            `key:"prefix" doc:"Text before its prompt."`
	Suffix       text            `key:"suffix" doc:"Text after its prompt."`
	Budget       limitKeys       `key:"budget" doc:"What all its turns in a run may cost, in all iterations and attempts. Without room for another one the task has failed."`
	Env          named[text]     `key:"env" loose:"" doc:"Added to its environment."`
	Workdir      text            `key:"workdir" doc:"The folder in which it works."`
	Desk         boolean         `key:"desk" doc:"It is done at a desk: a folder with the instructions, in which the worker delivers files. Without it as the agent says."`
	Files        list[text]      `key:"files" doc:"Files and folders that are copied to the inbox of its desk; of those over 4 MB the path."`
	Worker       text            `key:"worker" among:"workers" doc:"Who works at the desk: command is the agent's provider, external a person or a program that is not started; command without it."`
}

// afterKeys is one dependency: a name, or a mapping with a condition.
type afterKeys struct {
	section
	Task      text       `key:"task" doc:"The task to wait for."`
	Condition text       `key:"condition" among:"conditions" doc:"How it must have ended; any is the default."`
	Outputs   list[text] `key:"outputs" doc:"Of two tasks with desks: files and folders of its outbox that are copied into the inbox before the start. Without it all that it delivered."`
	CopyTo    text       `key:"copy_to" doc:"Of two tasks with desks: the folder of the inbox that gets the outputs; without it one with the task's name."`
}

// expectKeys are the conditions for the success of a task.
type expectKeys struct {
	section
	Command text `key:"command" loose:"" doc:"A command that must end with 0."`
	File    text `key:"file" doc:"A file that must be there."`
	Schema  text `key:"schema" doc:"The file of a JSON Schema for the output, or for file."`
	Matches text `key:"matches" loose:"" doc:"A regular expression (RE2) that the output must match."`
}

// pipelineKeys are the keys of a pipeline.
type pipelineKeys struct {
	section
	Tasks       list[text] `key:"tasks" doc:"Its tasks."`
	Iterations  integer    `key:"iterations" min:"1" max:"1000000" doc:"How often they are done."`
	Parallelism integer    `key:"parallelism" min:"1" max:"1000" doc:"How many copies run side by side."`
}

type approvalKeys struct {
	section
	Spawn text `key:"spawn" among:"approvals" doc:"New agents, and new edges, that an agent with the permission asks for."`
	Tools text `key:"tools" among:"approvals" doc:"What a coding agent asks permission for while it works."`
}

type notifyKeys struct {
	section
	Command list[text] `key:"command" loose:"" doc:"A program to run; {text} is the message."`
	Bell    boolean    `key:"bell" doc:"Ring the terminal's bell."`
	Webhook text       `key:"webhook" doc:"A URL to which {\"text\": …} is posted; $NAME takes it from the environment."`
	Slack   text       `key:"slack" doc:"The same for an incoming webhook of Slack: $NAME, because its URL is a secret."`
	Ntfy    text       `key:"ntfy" doc:"A topic of ntfy: https://ntfy.sh/my-topic, or $NAME."`
	Desktop boolean    `key:"desktop" doc:"Show a message on the desktop, by notify-send or osascript."`
}

type budgetKeys struct {
	section
	Tokens integer  `key:"tokens" min:"1" doc:"Tokens, in and out."`
	USD    number   `key:"usd" doc:"US dollars."`
	Calls  integer  `key:"calls" min:"1" doc:"Turns."`
	Wall   duration `key:"wall" doc:"Time from start to end."`
}

// limitKeys are the budget of an agent or a task.
type limitKeys struct {
	section
	Tokens integer `key:"tokens" min:"1" doc:"Tokens, in and out."`
	USD    number  `key:"usd" doc:"US dollars."`
	Calls  integer `key:"calls" min:"1" doc:"Turns."`
}

func (k *limitKeys) budget() swarm.Budget {
	return swarm.Budget{Tokens: k.Tokens.value, USD: k.USD.value, Calls: k.Calls.value}
}

// teamKeys are the rules of a team.
type teamKeys struct {
	section
	Done        list[text]  `key:"done" doc:"When a goal is reached: one sentence each; --done adds to them."`
	Constraints named[text] `key:"constraints" loose:"" doc:"Constraints on all work, under names of your choice: noNewDependencies: true."`
	Expect      expectKeys  `key:"expect" doc:"Conditions that the run checks before a team is completed; all must hold. matches and schema are about the lead's report."`
	MaxChecks   integer     `key:"max_checks" min:"1" max:"1000" doc:"How often that check may fail before the run fails; 5 without it."`
	Retries     integer     `key:"retries" max:"1000" doc:"How many more attempts a turn gets that failed, before its agent is ended; 2 without it."`
	OnStall     text        `key:"on_stall" among:"on_stall" doc:"What happens when the team makes no progress: pause waits for a person, fail ends the run. Without it, fail where no person is there: AUTO mode without a terminal."`
}

// swarmKeys are the limits of swarm mode.
type swarmKeys struct {
	section
	MaxAgents             integer `key:"max_agents" min:"1" max:"10000" doc:"Agents in a swarm."`
	MaxIterationsPerAgent integer `key:"max_iterations_per_agent" min:"1" max:"1000000" doc:"Turns of one agent."`
	AgentTimeoutSeconds   integer `key:"agent_timeout_seconds" min:"1" max:"31536000" doc:"Time of one agent."`
	MaxMessagesPerAgent   integer `key:"max_messages_per_agent" min:"1" max:"1000000" doc:"Messages that one agent may send."`
	WorkspaceSnippetChars integer `key:"workspace_snippet_chars" min:"1" max:"1000000" doc:"Characters of a topic's entry that are shown."`
	WorkspaceMaxEntries   integer `key:"workspace_max_entries" min:"1" max:"10000" doc:"Entries of a topic that are shown."`
	Workspace             text    `key:"workspace" doc:"The folder of the agents that name no root."`
	Strategy              text    `key:"strategy" among:"strategies" doc:"How a query is answered. In a team, agents divide the work; in a council, they answer independently, review each other and vote. Default: team."`
	Provider              text    `key:"provider" doc:"The provider of the supervisor. Default: the file's provider. --provider overrides it."`
	Replan                boolean `key:"replan" doc:"Whether the supervisor plans again when an agent fails, or when it gets a message. Default: true."`
}

type toolKeys struct {
	section
	MCP named[mcpKeys] `key:"mcp" doc:"MCP servers."`
}

// mcpKeys are the keys of a tool server.
type mcpKeys struct {
	section
	Command list[text]  `key:"command" loose:"" doc:"Program and arguments of a server on standard input and output."`
	URL     text        `key:"url" doc:"Where an HTTP server is."`
	Headers named[text] `key:"headers" loose:"" doc:"Sent to an HTTP server with each request; Bearer $NAME takes its end from the environment."`
	Env     named[text] `key:"env" loose:"" doc:"Added to its environment."`
}

// A table is the keys of one struct, in its order.
type table struct {
	keys  []string
	byKey map[string]field
}

type field struct {
	rule
	index int
}

var tables sync.Map // reflect.Type → *table

// fieldsOf reads the table of keys from a struct's tags. Tables are cached by type.
func fieldsOf(t reflect.Type) *table {
	if known, ok := tables.Load(t); ok {
		return known.(*table)
	}
	made := &table{byKey: map[string]field{}}
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key := tag.Get("key")
		if key == "" {
			continue
		}
		f := field{index: i, rule: rule{key: key, doc: tag.Get("doc"), among: choices[tag.Get("among")]}}
		_, f.loose = tag.Lookup("loose")
		_, f.single = tag.Lookup("single")
		f.min, _ = strconv.ParseFloat(tag.Get("min"), 64)
		f.max, _ = strconv.ParseFloat(tag.Get("max"), 64)
		made.keys = append(made.keys, key)
		made.byKey[key] = f
	}
	tables.Store(t, made)
	return made
}
