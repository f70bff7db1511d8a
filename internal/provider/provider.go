// Package provider reaches agents: programs on the command line, scripts, and recorded runs; coding agents and models over
// HTTP are more of the same. A provider does one turn: a prompt goes in, what is said streams out while it is said, and one
// reply ends it. It knows nothing of runs, logs or plans.
package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/process"
)

// A Provider does turns. It may be used by many turns at once.
type Provider interface {
	// Turn does one turn. It calls live, from one goroutine at a time, with whatever happens while it happens. It returns soon
	// after ctx ends, with no process left behind; the error's kind then is the one of context.Cause(ctx). Other errors are
	// *swarm.Error with the kind that fits, and the reply beside an error holds what is known: output, usage, exit code.
	Turn(ctx context.Context, r Request, live func(swarm.Delta)) (Reply, error)
}

// A Closer holds something between turns, a running program perhaps, which ends when it is closed.
type Closer interface {
	Close() error
}

// A Checker can tell whether its agents could be reached, before anything starts.
type Checker interface {
	Check(ctx context.Context) Health
}

// Health is what `swarm doctor` says of a provider.
type Health struct {
	Found   bool   // the program or server is there
	Path    string // where the program is
	Version string // what it says of itself
	Signed  string // "yes", "no" or "" when there is nothing to sign in to
	With    string // what it is signed in with: the variable that holds its key
	Problem string // what is wrong, or ""
	Hint    string // what to do about it
}

// A Request is one turn to do.
type Request struct {
	Run       swarm.RunID
	Turn      string // task/iteration/attempt
	Task      string
	Agent     string
	Iteration int // from 1
	Attempt   int // from 1
	Prompt    string
	Model     string             // or "" for the provider's own
	Dir       string             // where it works; absolute
	Env       map[string]string  // added to the environment: the agent's and the task's
	Session   string             // a session to continue, or "": then Fresh is all that has to be said, if the session is still there
	Fresh     string             // what of Prompt is new to the session
	Root      string             // the folder that its tools may touch; absolute; "" = Dir
	Tools     []string           // what it may use; nil = the provider's own choice
	Phase     swarm.Phase        // of its team; "" = none
	Door      swarm.ToolEndpoint // where a program finds our own tools; zero = nowhere
	Trace     string             // what the program's own spans belong to, as W3C's traceparent; "" = nothing of ours
	// ToolSpecs are the tools of ours that it is offered, to be done by Call.
	ToolSpecs []swarm.ToolSpec
	// Call does one of our own tools in the agent's name, while the turn runs; an error is an answer for the agent. nil = none.
	Call func(ctx context.Context, tool string, args json.RawMessage) (string, error)
	// Aside is what the agent is to be told beside the answer of a tool that it has just used: mail that is not to wait. "" = nothing;
	// nil = never.
	Aside func(ctx context.Context, tool string) (string, error)
	// Reserve takes what the turn has used so far and what it needs for its next question out of the run's budget, or says that
	// nothing is left. nil = there is no budget.
	Reserve func(swarm.Usage) error
	// Ask asks a person whether the agent may do something, and waits for the answer: ok, and why not. nil = nobody can be asked.
	Ask func(ctx context.Context, what swarm.Approval) (ok bool, reason string, err error)
}

// Folder is the folder that its tools may touch.
func (r Request) Folder() string { return cmp.Or(r.Root, r.Dir) }

// Docs is the folder that it may write to and no other, or "" when the phase does not say so.
func (r Request) Docs() string {
	if r.Phase != swarm.PlanningPhase {
		return ""
	}
	return filepath.Join(r.Folder(), permission.Docs)
}

// Mark is what the turn's programs are told about it, and found by.
func (r Request) Mark() process.Mark {
	return process.Mark{Run: r.Run, Task: r.Task, Agent: r.Agent, Turn: r.Turn, Iteration: r.Iteration, Attempt: r.Attempt, URL: r.Door.URL, Token: r.Door.Token, Trace: r.Trace}
}

// A Reply is how a turn ended.
type Reply struct {
	Output  []byte      // the last MaxOutput bytes of it, cut at a rune's beginning
	Bytes   int64       // how long it was before that
	Usage   swarm.Usage // zero tokens = not reported
	Free    bool        // no model was asked: the turn cost nothing
	Session string      // to continue with, or ""
	Exit    int         // a program's exit code
	Stderr  []byte      // the tail of what a program wrote there, for the error's text
}

// IsCut says that the beginning of the output is missing.
func (r Reply) IsCut() bool { return r.Bytes > int64(min(len(r.Output), MaxOutput)) }

// Ends are what is kept of what a program wrote to its outputs, with a … where the beginning is missing.
func (r Reply) Ends() (stdout, stderr string) {
	stdout = string(r.Output)
	if r.IsCut() {
		stdout = "…" + stdout
	}
	return stdout, process.StderrText(r.Stderr)
}

// MaxOutput is how much of an output is kept.
const MaxOutput = swarm.MaxOutput
