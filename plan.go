package swarm

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A RunKind says which door a run came in by.
type RunKind string

// The kinds of runs.
const (
	PipelineRun RunKind = "pipeline"
	LineRun     RunKind = "line"
	TeamRun     RunKind = "team"
	SwarmRun    RunKind = "swarm"
)

// Team says whether the agents of such a run live on: they have a turn when they have mail, and no tasks.
func (k RunKind) Team() bool { return k == TeamRun || k == SwarmRun }

// A Plan is what a run is to do. Every door makes one; the one scheduler runs it. It holds references to texts, not the texts.
type Plan struct {
	Kind        RunKind        `json:"kind"`
	Name        string         `json:"name,omitempty"` // the pipeline's
	Tasks       []Task         `json:"tasks"`          // in the file's order
	Groups      []Group        `json:"groups"`
	Agents      []Agent        `json:"agents"`
	Edges       []Edge         `json:"edges,omitempty"`
	Providers   []ProviderSpec `json:"providers,omitempty"`    // those that the agents use
	Servers     []ToolServer   `json:"servers,omitempty"`      // MCP servers whose tools agents may use
	Approvals   Approvals      `json:"approvals,omitzero"`     // what a person is asked
	MaxParallel int            `json:"max_parallel,omitempty"` // turns at once; 0 = no limit
	Budget      Budget         `json:"budget,omitzero"`
	Notify      *ProviderSpec  `json:"notify,omitempty"` // how a person is told that the run needs one; nil = nobody is
	Topics      *TopicLimits   `json:"topics,omitempty"` // nil = [DefaultTopics]
	Team        *Team          `json:"team,omitempty"`   // of a team: how it works; it has no tasks
	Stdin       Hash           `json:"stdin,omitempty"`  // what {{STDIN}} stands for
	Open        bool           `json:"open,omitempty"`   // more may be added: a REPL session
}

// A Group is a set of tasks that iterate together: a copy of a pipeline, or one task by itself. Its next iteration begins when
// every task of this one has ended. A dependency on a task of another group is met when that group is through.
type Group struct {
	Iterations int `json:"iterations"`
}

// A Task is work asked of one agent.
type Task struct {
	Name        string            `json:"name"`            // unique in the run; copy 2 of "code" is "code.2"
	Base        string            `json:"base,omitempty"`  // the name without the copy's number, when it is a copy
	Copy        int               `json:"copy,omitempty"`  // from 1, when it is a copy
	Group       int               `json:"group,omitempty"` // index into Plan.Groups
	Agent       string            `json:"agent"`           // who does it; copies have agents of their own
	Prompt      Hash              `json:"prompt"`          // the parsed prompt: prompt.Template
	DependsOn   []Dependency      `json:"depends_on,omitempty"`
	Awaits      []string          `json:"awaits,omitempty"`       // agents of which it needs an output, and that have made none yet
	WaitTimeout time.Duration     `json:"wait_timeout,omitempty"` // how long it waits for others before it fails; 0 = as long as it takes
	Inputs      map[string]string `json:"inputs,omitempty"`       // {{input:x}} is {{output:Inputs[x]}}
	Expect      *Expect           `json:"expect,omitempty"`
	Retries     int               `json:"retries,omitempty"`
	OnFailure   OnFailure         `json:"on_failure,omitempty"`
	Timeout     time.Duration     `json:"timeout,omitempty"`
	Concurrency int               `json:"concurrency,omitempty"` // turns of all copies of it at once; 0 = no limit
	Model       string            `json:"model,omitempty"`
	Tier        string            `json:"tier,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Workdir     string            `json:"workdir,omitempty"` // absolute
	Desk        bool              `json:"desk,omitempty"`
}

// MaxOutput is how much of a task's output is kept: its last bytes, cut at a rune's beginning.
const MaxOutput = 102_400

// NewTurnID is the id of the task's turn in an iteration and attempt, both from 1.
func NewTurnID(task string, iteration, attempt int) TurnID {
	return TurnID(task + "/" + strconv.Itoa(iteration) + "/" + strconv.Itoa(attempt))
}

// FirstAttempt is the first attempt of the turn that this is an attempt of. What an agent does in any of them it does once.
func FirstAttempt(turn TurnID) TurnID {
	if i := strings.LastIndexByte(string(turn), '/'); i >= 0 {
		return TurnID(string(turn[:i]) + "/1")
	}
	return turn
}

// A Dependency is one task that another waits for.
type Dependency struct {
	Task      string    `json:"task"`
	Condition Condition `json:"condition"`
}

// A Condition says which ends of a task meet a dependency on it.
type Condition string

// The conditions.
const (
	OnSuccess Condition = "success" // completed
	OnFailed  Condition = "failure" // failed
	OnAny     Condition = "any"     // completed or failed; the default
	OnAlways  Condition = "always"  // any end
	OnNeeded  Condition = "needed"  // completed, and any other end fails the task that waits; of lines, not of files
)

// Conditions lists those that a file may name.
var Conditions = []string{string(OnSuccess), string(OnFailed), string(OnAny), string(OnAlways)}

// OnFailure says what happens when a task has failed for good.
type OnFailure string

// What may happen.
const (
	FailContinue OnFailure = "continue" // dependents are judged by their conditions; the default
	FailStop     OnFailure = "stop"     // the run ends: running turns finish, the rest is cancelled
	FailSkip     OnFailure = "skip"     // the task counts as skipped, and the skip travels on
	FailFix      OnFailure = "fix"      // a person mends what is wrong, and has it tried again
	FailEscalate OnFailure = "escalate" // a person decides: again, or given up
)

// OnFailures lists them all.
var OnFailures = []string{string(FailContinue), string(FailStop), string(FailSkip), string(FailFix), string(FailEscalate)}

// Expect is what must hold before a task is completed; all of it.
type Expect struct {
	File       string `json:"file,omitempty"`        // exists, relative to the task's folder
	Matches    string `json:"matches,omitempty"`     // RE2, somewhere in the output
	Schema     Hash   `json:"schema,omitempty"`      // a JSON Schema, stored with the plan; for File if given, else for the output
	SchemaFile string `json:"schema_file,omitempty"` // its name, for messages
	Command    string `json:"command,omitempty"`     // ends with 0
}

// An Agent is a named participant.
type Agent struct {
	Name        string            `json:"name"`           // unique in the run; the agents of copy 2 end in ".2"
	Base        string            `json:"base,omitempty"` // the name without the copy's number, when it is a copy
	Provider    string            `json:"provider"`       // a name in Plan.Providers
	Model       string            `json:"model,omitempty"`
	Tier        string            `json:"tier,omitempty"`
	Role        Hash              `json:"role,omitempty"`      // its role prompt: prompt.Template
	RoleName    string            `json:"role_name,omitempty"` // the prompt that the file names for it
	Tools       []string          `json:"tools,omitempty"`     // what it may use; nil = what its provider gives it anyway
	Root        string            `json:"root,omitempty"`      // the folder its tools may touch; absolute
	Permissions Permissions       `json:"permissions,omitzero"`
	Env         map[string]string `json:"env,omitempty"`
}

// Permissions are what an agent may do beside its work.
type Permissions struct {
	Spawn       bool `json:"spawn,omitempty"`
	Orchestrate bool `json:"orchestrate,omitempty"`
}

// An Edge is the permission to hand work from one agent to another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Both bool   `json:"both,omitempty"`
}

// Approvals say what happens when an agent may do something only if it is allowed: ask a person, auto, or deny; "" is ask.
type Approvals struct {
	Tools string `json:"tools,omitempty"` // a tool that its program wants to use
	Spawn string `json:"spawn,omitempty"` // a new agent, or a new edge
}

// A Team is how agents work that live on and hand work to each other: each has a turn when it has mail.
type Team struct {
	Lead         string        `json:"lead"` // the orchestrator: when it is done, the run is
	Mode         TeamMode      `json:"mode"`
	Phase        Phase         `json:"phase"`
	ReplyTimeout time.Duration `json:"reply_timeout,omitempty"` // how long a required reply is waited for
	MaxAgents    int           `json:"max_agents,omitempty"`
	Retries      *int          `json:"retries,omitempty"`  // how many more attempts a turn gets that fails; nil = 2
	OnStall      OnStall       `json:"on_stall,omitempty"` // what happens when it makes no progress; "" = it pauses
	Pack         string        `json:"pack,omitempty"`     // the ref of the context pack that goes with the goal; "" = there is none
}

// TopicLimits say how much of what was published a prompt tells.
type TopicLimits struct {
	Entries int `json:"entries"` // the newest of each topic
	Chars   int `json:"chars"`   // of each entry
}

// DefaultTopics are the limits of a file that names none.
var DefaultTopics = TopicLimits{Entries: 5, Chars: 800}

// OnStall says what happens to a team that makes no progress, after its agents were told so.
type OnStall string

// What may happen.
const (
	StallPauses OnStall = "pause" // the run pauses, and a person decides
	StallFails  OnStall = "fail"  // the run ends: there is nobody to decide
)

// OnStalls lists them all.
var OnStalls = []string{string(StallPauses), string(StallFails)}

// A TeamMode says when a team is through.
type TeamMode string

// The modes.
const (
	AutoMode        TeamMode = "AUTO"        // when everybody is idle and nothing is open
	InteractiveMode TeamMode = "INTERACTIVE" // when a person says so
)

// A Phase says what agents may do to files.
type Phase string

// The phases.
const (
	PlanningPhase       Phase = "PLANNING"       // write under docs/ only
	ImplementationPhase Phase = "IMPLEMENTATION" // write in their folders
)

// A ToolServer is an MCP server: a program that is spoken to over its standard input and output, or a URL.
type ToolServer struct {
	Name    string            `json:"name"`
	Command []string          `json:"command,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // of requests to URL; "Bearer $NAME" takes its end from the environment
	Env     map[string]string `json:"env,omitempty"`
}

// A ProviderSpec says how a kind of agent is reached. Presets fill what a user leaves out.
type ProviderSpec struct {
	Name       string            `json:"name"`
	Kind       string            `json:"kind"` // a row of the table of kinds, package providerkind
	Command    []string          `json:"command,omitempty"`
	Script     Hash              `json:"script,omitempty"`      // the script's file, stored with the plan
	ScriptFile string            `json:"script_file,omitempty"` // as the compose file names it
	BaseURL    string            `json:"base_url,omitempty"`
	Models     map[string]string `json:"models,omitempty"` // by tier: small, medium, large
	Model      string            `json:"model,omitempty"`  // for turns that name neither a model nor a tier; "" = the program's own choice
	// MaxTokens and Temperature are asked of models over HTTP.
	MaxTokens   int64             `json:"max_tokens,omitempty"` // of an answer
	Temperature *float64          `json:"temperature,omitempty"`
	Price       Price             `json:"price,omitzero"`
	Env         map[string]string `json:"env,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"` // of requests to BaseURL; "Bearer $NAME" takes its end from the environment
}

// ModelFor is the model of a task's turns: what the task names, else the agent, else the provider. "" is the program's own choice.
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

// Lead is the agent that leads a team whose goal is given to an agent: the first that may orchestrate, else that one, else the
// first of all.
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

// A Price is US dollars for a million tokens.
type Price struct {
	Input  float64 `json:"input,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// A Budget bounds a run; zero is no bound.
type Budget struct {
	Tokens int64         `json:"tokens,omitempty"`
	USD    float64       `json:"usd,omitempty"`
	Calls  int64         `json:"calls,omitempty"`
	Wall   time.Duration `json:"wall,omitempty"`
}

// LimitsUse says whether the budget bounds what turns use. The wall time is the loop's to watch.
func (b Budget) LimitsUse() bool { return b.Tokens > 0 || b.USD > 0 || b.Calls > 0 }

// Usage is what turns have cost.
type Usage struct {
	Calls        int64   `json:"calls,omitempty"`
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CachedTokens int64   `json:"cached_tokens,omitempty"` // of the input, read from the provider's cache
	USD          float64 `json:"usd,omitempty"`
	Estimated    bool    `json:"estimated,omitempty"` // some tokens were not reported but counted as bytes/4; shown with ~
}

// Tokens is input and output together.
func (u Usage) Tokens() int64 { return plus(u.InputTokens, u.OutputTokens) }

// Plus is the sum of two usages. A sum never overflows and nothing in it is negative, whatever a
// server has reported: a budget that a figure could lower would be none.
func (u Usage) Plus(v Usage) Usage {
	return Usage{plus(u.Calls, v.Calls), plus(u.InputTokens, v.InputTokens), plus(u.OutputTokens, v.OutputTokens), plus(u.CachedTokens, v.CachedTokens),
		plusUSD(u.USD, v.USD), u.Estimated || v.Estimated}
}

// Minus is u without v, which is a part of it.
func (u Usage) Minus(v Usage) Usage {
	return Usage{max(0, u.Calls-v.Calls), max(0, u.InputTokens-v.InputTokens), max(0, u.OutputTokens-v.OutputTokens), max(0, u.CachedTokens-v.CachedTokens),
		max(0, u.USD-v.USD), u.Estimated}
}

// plus is a sum of counts that stays at the largest number.
func plus(a, b int64) int64 {
	a, b = max(0, a), max(0, b)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// plusUSD is a sum of dollars that can be written as JSON.
func plusUSD(a, b float64) float64 {
	sum := 0.0
	for _, usd := range []float64{a, b} {
		if usd > 0 { // and a number
			sum += usd
		}
	}
	return min(sum, math.MaxFloat64)
}

// EstimateTokens is how many tokens n bytes count when nobody reports them.
func EstimateTokens(n int64) int64 { return (n + 3) / 4 }
