package swarm

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A RunKind says what kind of work a run does: tasks of a pipeline or a line, or the turns of a
// team.
type RunKind string

// The kinds of runs.
const (
	PipelineRun RunKind = "pipeline"
	LineRun     RunKind = "line"
	TeamRun     RunKind = "team"
	SwarmRun    RunKind = "swarm"
)

// Team reports whether the agents of such a run live on. They have no tasks, and get a turn when
// they have mail.
func (k RunKind) Team() bool { return k == TeamRun || k == SwarmRun }

// A Plan says what a run is to do. Every door makes one, and one scheduler runs them all. A plan
// holds references to texts, not the texts.
type Plan struct {
	Kind        RunKind        `json:"kind"`
	Name        string         `json:"name,omitempty"` // the pipeline's name
	Tasks       []Task         `json:"tasks"`          // in the order of the file
	Groups      []Group        `json:"groups"`
	Agents      []Agent        `json:"agents"`
	Edges       []Edge         `json:"edges,omitempty"`
	Providers   []ProviderSpec `json:"providers,omitempty"`    // those that the agents use
	Servers     []ToolServer   `json:"servers,omitempty"`      // MCP servers whose tools agents may use
	Approvals   Approvals      `json:"approvals,omitzero"`     // which requests a person must approve
	MaxParallel int            `json:"max_parallel,omitempty"` // turns at once; 0 = no limit
	Budget      Budget         `json:"budget,omitzero"`
	Notify      *ProviderSpec  `json:"notify,omitempty"` // how a person learns that the run needs them; nil = not at all
	Topics      *TopicLimits   `json:"topics,omitempty"` // nil = [DefaultTopics]
	Team        *Team          `json:"team,omitempty"`   // of a team, which has no tasks: how it works
	Swarm       *Swarm         `json:"swarm,omitempty"`  // of a swarm, which is a team too: how its agents iterate
	Stdin       Hash           `json:"stdin,omitempty"`  // the text of {{STDIN}}
	Edited      *EditedPrompt  `json:"edited,omitempty"` // of a fork: the prompt that a person has changed
	Desks       string         `json:"desks,omitempty"`  // the folder of the desks; absolute; "" = one in the state folder
	Open        bool           `json:"open,omitempty"`   // more may be added: a REPL session
	More        bool           `json:"more,omitempty"`   // of a line: further lines may give its agents further turns
}

// A Group is a set of tasks that iterate together: a copy of a pipeline, or one task by itself. Its
// next iteration begins when every task of the current one has ended. A dependency on a task of
// another group is met when that group has ended its last iteration.
type Group struct {
	Iterations int `json:"iterations"`
}

// A Task is work assigned to one agent.
type Task struct {
	Name      string       `json:"name"`            // unique in the run; copy 2 of "code" is "code.2"
	Base      string       `json:"base,omitempty"`  // the name without the copy's number, when it is a copy
	Copy      int          `json:"copy,omitempty"`  // from 1, when it is a copy
	Group     int          `json:"group,omitempty"` // index into Plan.Groups
	Agent     string       `json:"agent"`           // the agent that does it; copies have their own agents
	Prompt    Hash         `json:"prompt"`          // the parsed prompt: prompt.Template
	DependsOn []Dependency `json:"depends_on,omitempty"`
	// Awaits are agents whose output the task needs and that have made none yet.
	Awaits []string `json:"awaits,omitempty"`
	// WaitTimeout is how long the task waits for others before it fails. 0 means without limit.
	WaitTimeout time.Duration     `json:"wait_timeout,omitempty"`
	Inputs      map[string]string `json:"inputs,omitempty"` // {{input:x}} is {{output:Inputs[x]}}
	Expect      *Expect           `json:"expect,omitempty"`
	Retries     int               `json:"retries,omitempty"`
	OnFailure   OnFailure         `json:"on_failure,omitempty"`
	Timeout     time.Duration     `json:"timeout,omitempty"`
	Concurrency int               `json:"concurrency,omitempty"` // parallel turns of all its copies; 0 = no limit
	Model       string            `json:"model,omitempty"`
	Tier        string            `json:"tier,omitempty"`
	Budget      Budget            `json:"budget,omitzero"` // of all its turns, without a wall time
	Env         map[string]string `json:"env,omitempty"`
	Workdir     string            `json:"workdir,omitempty"` // absolute
	Desk        Worker            `json:"desk,omitempty"`    // who does it at a desk; "" = as the agent says
	// OldDesk is the task's desk in the run that this one retries, if the task is not done again, or if a
	// person has corrected the inbox of that desk.
	OldDesk string `json:"old_desk,omitempty"`
	// OldInstructions says that the person has also rewritten the instructions.
	OldInstructions bool `json:"old_instructions,omitempty"`
	// LateDesk is the task's desk in that run, if an external worker finished there after the attempt
	// had ended.
	LateDesk string     `json:"late_desk,omitempty"`
	Files    []string   `json:"files,omitempty"` // files and folders that its desk gets; absolute
	Swarm    *SwarmTask `json:"swarm,omitempty"` // a swarm does it, and its agents are like Agent; nil = the agent does
}

// A Worker says who works at a desk, the folder through which a turn is done by files.
type Worker string

// The workers.
const (
	CommandWorker  Worker = "command"  // the agent's provider, with the desk as its folder
	ExternalWorker Worker = "external" // a person or a program that the runtime does not start
	NoWorker       Worker = "none"     // there is no desk, although the agent has one
)

// Workers lists the workers that a file may name. The first is the default.
var Workers = []string{string(CommandWorker), string(ExternalWorker)}

// WorkerOf returns who does the task at a desk; "" = it has no desk. The task's own value wins over
// its agent's.
func (t *Task) WorkerOf(a *Agent) Worker {
	switch t.Desk {
	case "":
		return a.Desk
	case NoWorker:
		return ""
	}
	return t.Desk
}

// The kinds of tasks: what does a task.
const (
	AgentTask = "agent" // the default
	SwarmKind = "swarm"
)

// TaskKinds lists the kinds of tasks, for files.
var TaskKinds = []string{AgentTask, SwarmKind}

// A SwarmTask holds the limits of the swarm that does a task. The task's prompt is its query, and its
// answer is the task's output.
type SwarmTask struct {
	Swarm
	MaxAgents int `json:"max_agents"`
}

// DefaultWorkers is how many agents of a swarm work at once if nothing says otherwise.
const DefaultWorkers = 3

// MaxOutput is how much of a task's output is stored, in bytes. The end of a longer output is kept,
// cut at the beginning of a rune.
const MaxOutput = 102_400

// NewTurnID returns the id of the task's turn in an iteration and attempt, both counted from 1.
func NewTurnID(task string, iteration, attempt int) TurnID {
	return TurnID(task + "/" + strconv.Itoa(iteration) + "/" + strconv.Itoa(attempt))
}

// FirstAttempt returns the id of the first attempt of a turn. Idempotency keys of an agent's
// actions use it, so an action that a retry repeats takes effect once.
func FirstAttempt(turn TurnID) TurnID {
	if i := strings.LastIndexByte(string(turn), '/'); i >= 0 {
		return TurnID(string(turn[:i]) + "/1")
	}
	return turn
}

// An EditedPrompt is the text that a turn gets in the place of its prompt, in each of its attempts.
type EditedPrompt struct {
	Turn TurnID `json:"turn"`
	Text Hash   `json:"text"`
	// Want is what the turn is for, as [TurnStart.Want]. A turn of the same number that is for something
	// else is not edited. "" = any.
	Want string `json:"want,omitempty"`
	// Upto is the last event whose mail the person had before them. Later mail comes after the text. 0
	// means that no mail does.
	Upto int64 `json:"upto,omitempty"`
}

// A Dependency is a task that another task waits for.
type Dependency struct {
	Task      string    `json:"task"`
	Condition Condition `json:"condition"`
	// Outputs are paths below outbox/ of its desk that the desk of the waiting task gets; nil = all that
	// it delivered. CopyTo is the folder below inbox/ for them; "" = one with the task's name.
	Outputs []string `json:"outputs,omitempty"`
	CopyTo  string   `json:"copy_to,omitempty"`
}

// A Condition says which outcomes of a task meet a dependency on it.
type Condition string

// The conditions.
const (
	OnSuccess Condition = "success" // completed
	OnFailed  Condition = "failure" // failed
	OnAny     Condition = "any"     // completed or failed; the default
	OnAlways  Condition = "always"  // any outcome
	// Completed; any other outcome fails the waiting task. Lines use it, files cannot name it.
	OnNeeded Condition = "needed"
)

// Conditions lists the conditions that a file may name.
var Conditions = []string{string(OnSuccess), string(OnFailed), string(OnAny), string(OnAlways)}

// OnFailure says what happens when a task has failed and has no retries left.
type OnFailure string

// What may happen.
const (
	FailContinue OnFailure = "continue" // the conditions of the dependents decide; the default
	FailStop     OnFailure = "stop"     // the run ends: running turns finish, the rest is cancelled
	FailSkip     OnFailure = "skip"     // the task counts as skipped, and the skip propagates
	FailFix      OnFailure = "fix"      // a person fixes the problem and retries the task
	FailEscalate OnFailure = "escalate" // a person decides: retry, or give up
)

// OnFailures lists all values, for files.
var OnFailures = []string{string(FailContinue), string(FailStop), string(FailSkip), string(FailFix), string(FailEscalate)}

// Expect lists the conditions that must all hold before a task is completed.
type Expect struct {
	File       string `json:"file,omitempty"`        // this file exists, relative to the task's folder
	Matches    string `json:"matches,omitempty"`     // RE2 that the output must contain
	Schema     Hash   `json:"schema,omitempty"`      // a JSON Schema, stored with the plan; for File if given, else for the output
	SchemaFile string `json:"schema_file,omitempty"` // its name, for messages
	Command    string `json:"command,omitempty"`     // exits with 0
}

// An Agent is a named participant of a run.
type Agent struct {
	Name        string            `json:"name"`           // unique in the run; the agents of copy 2 end in ".2"
	Base        string            `json:"base,omitempty"` // the name without the copy's number, when it is a copy
	Like        string            `json:"like,omitempty"` // of a swarm's agent: the agent of the file whose budget it has, with all others that are like it
	Provider    string            `json:"provider"`       // a name in Plan.Providers
	Model       string            `json:"model,omitempty"`
	Tier        string            `json:"tier,omitempty"`
	Role        Hash              `json:"role,omitempty"`      // its role prompt: prompt.Template
	RoleName    string            `json:"role_name,omitempty"` // the name of that prompt in the file
	Tools       []string          `json:"tools,omitempty"`     // the tools that it may use; nil = its provider's own
	Root        string            `json:"root,omitempty"`      // the folder that its tools may touch; absolute
	Permissions Permissions       `json:"permissions,omitzero"`
	Env         map[string]string `json:"env,omitempty"`
	Desk        Worker            `json:"desk,omitempty"`    // who does its turns at a desk; "" = they have none
	Session     string            `json:"session,omitempty"` // [NoSession], or "": its turns continue one session
	Context     ContextLimits     `json:"context,omitzero"`  // how much of it a turn is sent, if the log keeps it
	Budget      Budget            `json:"budget,omitzero"`   // of all its turns, without a wall time
	OnLimit     *OnLimit          `json:"on_limit,omitempty"`
}

// An OnLimit says what an agent does when its provider's limit is reached and the provider says
// until when. nil means that the agent waits, for [DefaultLimitWait] at most.
type OnLimit struct {
	Fail bool          `json:"fail,omitempty"` // its turn fails
	Use  string        `json:"use,omitempty"`  // this provider of the plan does its turns meanwhile; "" = none
	Wait time.Duration `json:"wait,omitempty"` // the longest time that a turn waits; 0 = DefaultLimitWait
}

// Uses says whether the turns of an agent may be done by a provider.
func (a *Agent) Uses(provider string) bool {
	return a.Provider == provider || a.OnLimit != nil && a.OnLimit.Use == provider
}

// DefaultLimitWait is the longest time that a turn waits for a limit, if nothing else is said.
const DefaultLimitWait = 12 * time.Hour

// LimitWait is the longest time that a turn waits for a limit.
func (o *OnLimit) LimitWait() time.Duration {
	if o == nil || o.Wait == 0 {
		return DefaultLimitWait
	}
	return o.Wait
}

// Permissions are the actions beyond its work that an agent may take.
type Permissions struct {
	Spawn       bool `json:"spawn,omitempty"`
	Orchestrate bool `json:"orchestrate,omitempty"`
}

// An Edge is permission for one agent to message another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Both bool   `json:"both,omitempty"`
}

// Approvals say what happens when an agent needs permission: "ask" a person, "auto" or "deny". ""
// means ask.
type Approvals struct {
	Tools string `json:"tools,omitempty"` // a tool that its program wants to use
	Spawn string `json:"spawn,omitempty"` // a new agent, or a new edge
}

// A Team says how agents work that live on and message each other. An agent gets a turn when it has
// mail.
type Team struct {
	Lead         string        `json:"lead"` // the agent whose report_done ends the run
	Mode         TeamMode      `json:"mode"`
	Phase        Phase         `json:"phase"`
	ReplyTimeout time.Duration `json:"reply_timeout,omitempty"` // how long a required reply may take
	MaxAgents    int           `json:"max_agents,omitempty"`
	Retries      *int          `json:"retries,omitempty"`  // how many retries a failed turn gets; nil = 2
	OnStall      OnStall       `json:"on_stall,omitempty"` // what happens when it makes no progress; "" = it pauses
	Pack         string        `json:"pack,omitempty"`     // the ref of the goal's context pack; "" = none
	// Expect is what the run checks before it is completed; nil = nothing. Matches and Schema are about
	// the lead's report. MaxChecks is how often it may fail; 0 = [DefaultChecks].
	Expect    *Expect `json:"expect,omitempty"`
	MaxChecks int     `json:"max_checks,omitempty"`
	// Done are the sentences that say when the goal is reached. No program can check them.
	Done []string `json:"done,omitempty"`
}

// DefaultChecks is how often the check of a team's goal may fail if nothing else is said.
const DefaultChecks = 5

// Checks returns how often the check of the goal may fail before the run fails.
func (t *Team) Checks() int { return cmp.Or(t.MaxChecks, DefaultChecks) }

// A Strategy says how a swarm answers a query.
type Strategy string

// The strategies.
const (
	TeamStrategy    Strategy = "team"    // its agents work together on parts of the query
	CouncilStrategy Strategy = "council" // its agents answer the query independently, review each other, and vote
)

// Strategies lists the strategies, for files and flags. The first is the default.
var Strategies = []string{string(TeamStrategy), string(CouncilStrategy)}

// A council has at least two members, or there is no vote, and at most as many as there are letters.
const (
	LeastCouncil = 2
	MostCouncil  = 26
)

// A Swarm says how a team divides a query, works on the parts in iterations, and answers.
type Swarm struct {
	Query      Hash          `json:"query,omitempty"`
	Workers    int           `json:"workers"`            // agents that work at once
	Iterations int           `json:"iterations"`         // of one agent
	Timeout    time.Duration `json:"timeout"`            // of one agent, from its first turn
	Messages   int           `json:"messages"`           // that one agent may send
	Subtasks   []Subtask     `json:"subtasks"`           // the parts of the query that this plan adds
	Approve    bool          `json:"approve,omitempty"`  // a person decides whether the agents work on the subtasks
	Costs      *SwarmCosts   `json:"costs,omitempty"`    // what its turns use at most
	Worker     Agent         `json:"worker,omitzero"`    // what an agent is like whose subtask names no role
	Roles      []Agent       `json:"roles,omitempty"`    // what agents are like whose subtask names one of these
	Strategy   Strategy      `json:"strategy,omitempty"` // "" = a team
	Replan     bool          `json:"replan,omitempty"`   // the supervisor plans anew when a worker fails, or somebody writes to it
	By         TurnID        `json:"by,omitempty"`       // the turn of the supervisor that names the subtasks; "" = none did
	Entries    []Subtask     `json:"entries,omitempty"`  // entries of the task list that this plan adds, or that its agents claim
	// Names is the run whose agents have the same names: this one carries their turns over. "" = the names
	// are the run's own.
	Names RunID `json:"names,omitempty"`
	// Workspace is the folder of the agents that name no root; absolute. "" = one in the state folder.
	Workspace string `json:"workspace,omitempty"`
	// Taken are the names that no agent gets: the workspace had a report under each of them before the
	// run, and a report of this run would replace it.
	Taken []string `json:"taken,omitempty"`
}

// SwarmCosts are what the turns of a swarm use, as far as prices are known.
type SwarmCosts struct {
	Division  CallCost `json:"division,omitzero"` // none if a person has divided the query
	Iteration CallCost `json:"iteration"`
	Usual     CallCost `json:"usual"`           // an iteration whose prompt shows as many results as it can, and nothing of others
	Review    CallCost `json:"review,omitzero"` // of a council
	Replan    CallCost `json:"replan"`
	Answer    CallCost `json:"answer"`
}

// A CallCost is the most that one turn uses.
type CallCost struct {
	Use       Usage   `json:"use"`
	AnswerUSD float64 `json:"answer_usd,omitempty"` // the part of its dollars that is for the answer
	Open      bool    `json:"open,omitempty"`       // a program does it, which may use any number of tokens
}

// MessagesPerAgent is how many messages an agent can send in so many iterations. A model takes one
// action in each. A program may take any number.
func (c *SwarmCosts) MessagesPerAgent(iterations int64) int64 {
	if c.Iteration.Open {
		return math.MaxInt64
	}
	return iterations
}

// IsCouncil says whether the agents answer the query independently.
func (s *Swarm) IsCouncil() bool { return s.Strategy == CouncilStrategy }

// AllAgents returns the agents of a plan, and what those are like that a swarm adds to it.
func (p *Plan) AllAgents() []Agent {
	if p.Swarm == nil {
		return p.Agents
	}
	return slices.Concat(p.Agents, []Agent{p.Swarm.Worker}, p.Swarm.Roles)
}

// A Subtask is a part of a swarm's query. One agent works on it.
type Subtask struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Role        string   `json:"role,omitempty"`       // an agent of the compose file that works on it; "" = any
	DependsOn   []string `json:"depends_on,omitempty"` // subtasks that must have ended before
	Agent       string   `json:"agent,omitempty"`      // who works on it
	For         string   `json:"for,omitempty"`        // the agent that asked for help with it, or added it; "" = none
	Origin      string   `json:"origin,omitempty"`     // of an entry of the task list: the call that added it
}

// TopicLimits bound how much of each topic a prompt shows.
type TopicLimits struct {
	Entries int `json:"entries"` // the newest of each topic
	Chars   int `json:"chars"`   // the first characters of each entry
}

// DefaultTopics are the limits if the file names none.
var DefaultTopics = TopicLimits{Entries: 5, Chars: 800}

// OnStall says what happens to a team that makes no progress after its agents were told so.
type OnStall string

// What may happen.
const (
	StallPauses OnStall = "pause" // the run pauses, and a person decides
	StallFails  OnStall = "fail"  // the run ends, because no person is there to decide
)

// OnStalls lists all values, for files.
var OnStalls = []string{string(StallPauses), string(StallFails)}

// A TeamMode says when a team's run ends.
type TeamMode string

// The modes.
const (
	AutoMode        TeamMode = "AUTO"        // when every agent is idle and no mail is open
	InteractiveMode TeamMode = "INTERACTIVE" // when a person ends it
)

// A Phase says which files agents may write.
type Phase string

// The phases.
const (
	PlanningPhase       Phase = "PLANNING"       // under docs/ only
	ImplementationPhase Phase = "IMPLEMENTATION" // in their folders
)

// A ToolServer is an MCP server: a program that speaks over its standard input and output, or a
// URL.
type ToolServer struct {
	Name    string   `json:"name"`
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
	// Headers of requests to URL. "Bearer $NAME" takes its end from the environment, so that no key
	// is in the plan.
	Headers map[string]string `json:"headers,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// A ProviderSpec says how a kind of agent is reached. Presets fill in what a user leaves out.
type ProviderSpec struct {
	Name       string            `json:"name"`
	Kind       string            `json:"kind"` // a row of the table in package providerkind
	Command    []string          `json:"command,omitempty"`
	Script     Hash              `json:"script,omitempty"`      // the script's file, stored with the plan
	ScriptFile string            `json:"script_file,omitempty"` // its name in the compose file
	BaseURL    string            `json:"base_url,omitempty"`
	API        string            `json:"api,omitempty"`    // of several that a server may have; "" = what is usual at BaseURL
	Models     map[string]string `json:"models,omitempty"` // by tier: small, medium, large
	// Model is for turns that name neither a model nor a tier. "" leaves the choice to the program.
	Model string `json:"model,omitempty"`
	Mode  string `json:"mode,omitempty"` // of an ACP agent's sessions; "" leaves the choice to us and the program
	// The parameters of models over HTTP. "" and nil leave the choice to the server.
	MaxTokens   int64             `json:"max_tokens,omitempty"` // the maximum length of an answer
	Temperature *float64          `json:"temperature,omitempty"`
	Effort      string            `json:"effort,omitempty"`   // how much the model thinks
	Thinking    string            `json:"thinking,omitempty"` // adaptive, disabled, or a number of tokens
	ServiceTier string            `json:"service_tier,omitempty"`
	Images      *bool             `json:"images,omitempty"` // whether models are shown the images of tools; nil = those that are known to take them
	Extra       json.RawMessage   `json:"extra,omitempty"`  // an object: more fields of each request
	Context     ContextLimits     `json:"context,omitzero"` // of agents that name none
	Price       Price             `json:"price,omitzero"`
	Env         map[string]string `json:"env,omitempty"`
	// Headers of requests to its server. "Bearer $NAME" takes its end from the environment.
	Headers map[string]string `json:"headers,omitempty"`
	Sandbox *Sandbox          `json:"sandbox,omitempty"` // what confines its programs; nil = nothing of ours
}

// A Sandbox confines the programs of a provider by means of the operating system. Paths are
// absolute, relative to the folder of the run, or begin with ~/.
type Sandbox struct {
	Kind    string   `json:"kind"`
	Write   []string `json:"write,omitempty"` // beside the workspace
	Read    []string `json:"read,omitempty"`  // although it would be hidden or writable
	Hide    []string `json:"hide,omitempty"`  // beside what is always hidden
	Network string   `json:"network"`
	Hosts   []string `json:"hosts,omitempty"` // of NetworkHosts, as package hostrule reads them
}

// SandboxOS is the kind of sandbox that uses what the operating system has.
const SandboxOS = "os"

// What a program in a sandbox reaches.
const (
	NetworkAll   = "all"  // what the machine reaches, its loopback interface too
	NetworkNone  = "none" // our own server only
	NetworkHosts = "hosts"
)

// ModelFor returns the model of a task's turns: the task's, else the agent's, else the provider's.
// "" leaves the choice to the program.
func (s *ProviderSpec) ModelFor(t *Task, a *Agent) string {
	for _, named := range []struct{ model, tier string }{{t.Model, t.Tier}, {a.Model, a.Tier}} {
		if named.model != "" {
			return named.model
		}
		if named.tier != "" {
			return s.Models[named.tier]
		}
	}
	return s.Model
}

// Lead returns the agent that leads a team whose goal is addressed to an agent. It is the first
// agent that may orchestrate, else the addressed one, else the first of all.
func (p *Plan) Lead(to string) string {
	for _, a := range p.Agents {
		if a.Permissions.Orchestrate {
			return a.Name
		}
	}
	if to == "" && len(p.Agents) > 0 {
		return p.Agents[0].Name
	}
	return to
}

// A Price is in US dollars per million tokens.
type Price struct {
	Input  float64 `json:"input,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// Of returns what a usage costs at this price.
func (p Price) Of(u Usage) float64 {
	return (p.Input*float64(u.InputTokens) + p.Output*float64(u.OutputTokens)) / 1e6
}

// A Budget limits a run. Zero means no limit.
type Budget struct {
	Tokens int64         `json:"tokens,omitempty"`
	USD    float64       `json:"usd,omitempty"`
	Calls  int64         `json:"calls,omitempty"`
	Wall   time.Duration `json:"wall,omitempty"`
	// Held is the part of the budget that only the answer of a swarm may use.
	Held Usage `json:"held,omitzero"`
}

// Minus returns what is left of a budget. A part that has run out is as little as possible, since 0
// is no limit.
func (b Budget) Minus(used Usage, took time.Duration) Budget {
	if b.Tokens > 0 {
		b.Tokens = max(1, b.Tokens-used.Tokens())
	}
	if b.USD > 0 {
		b.USD = max(math.SmallestNonzeroFloat64, b.USD-used.USD)
	}
	if b.Calls > 0 {
		b.Calls = max(1, b.Calls-used.Calls)
	}
	if b.Wall > 0 {
		b.Wall = max(1, b.Wall-took)
	}
	return b
}

// Within returns the budget, with at most what another one allows.
func (b Budget) Within(most Budget) Budget {
	b.Tokens, b.USD = lower(b.Tokens, most.Tokens), lower(b.USD, most.USD)
	b.Calls, b.Wall = lower(b.Calls, most.Calls), lower(b.Wall, most.Wall)
	return b
}

// lower returns the lower of two limits; 0 is no limit.
func lower[N int64 | float64 | time.Duration](a, b N) N {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// LimitsUse reports whether the budget limits what turns use. The loop watches the wall time.
func (b Budget) LimitsUse() bool { return b.Tokens > 0 || b.USD > 0 || b.Calls > 0 }

// Usage is the cost of turns.
type Usage struct {
	Calls        int64   `json:"calls,omitempty"`
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CachedTokens int64   `json:"cached_tokens,omitempty"` // the part of the input that came from the provider's cache
	USD          float64 `json:"usd,omitempty"`
	Estimated    bool    `json:"estimated,omitempty"` // some tokens were not reported but estimated as bytes/4; shown with ~
	CutCalls     int64   `json:"cut_calls,omitempty"` // those of Calls that were cut with their process: what they used is not known, and what they had reserved is counted
}

// AsCut is what a turn counts for that was cut with its process: what it had reserved.
func (u Usage) AsCut() Usage {
	u.CutCalls, u.Estimated = u.Calls, u.Tokens() > 0
	return u
}

// Tokens returns the sum of input and output tokens.
func (u Usage) Tokens() int64 { return plus(u.InputTokens, u.OutputTokens) }

// Plus returns the sum of two usages. A sum never overflows and has no negative part, whatever a
// server reports: otherwise a bad figure could lower the use of a budget.
func (u Usage) Plus(v Usage) Usage {
	return Usage{plus(u.Calls, v.Calls), plus(u.InputTokens, v.InputTokens), plus(u.OutputTokens, v.OutputTokens), plus(u.CachedTokens, v.CachedTokens),
		plusUSD(u.USD, v.USD), u.Estimated || v.Estimated, plus(u.CutCalls, v.CutCalls)}
}

// Minus returns u without v, which is a part of it.
func (u Usage) Minus(v Usage) Usage {
	return Usage{max(0, u.Calls-v.Calls), max(0, u.InputTokens-v.InputTokens), max(0, u.OutputTokens-v.OutputTokens), max(0, u.CachedTokens-v.CachedTokens),
		max(0, u.USD-v.USD), u.Estimated, max(0, u.CutCalls-v.CutCalls)}
}

// plus adds counts and saturates at the largest number.
func plus(a, b int64) int64 {
	a, b = max(0, a), max(0, b)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// plusUSD adds dollars. NaN and infinity, which JSON cannot hold, do not get into the sum.
func plusUSD(a, b float64) float64 {
	sum := 0.0
	for _, usd := range []float64{a, b} {
		if usd > 0 { // false for NaN
			sum += usd
		}
	}
	return min(sum, math.MaxFloat64)
}

// EstimateTokens returns the number of tokens that n bytes count as when the provider reports none.
func EstimateTokens(n int64) int64 { return (n + 3) / 4 }
