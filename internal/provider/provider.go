// Package provider reaches agents: programs on the command line and scripts. Its subpackages reach
// coding agents, models over HTTP and remote agents. A provider does one turn: a prompt goes in,
// output streams out, and one reply ends it. It knows nothing of runs, logs or plans.
package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/process"
	"swarm/internal/sandbox"
)

// A Provider does turns, many at once.
type Provider interface {
	// Turn does one turn. It calls live, from one goroutine at a time, with everything that
	// happens. It returns soon after ctx ends, with no process left behind; the error's kind then
	// is that of context.Cause(ctx). Other errors are *swarm.Error with the kind that fits. The
	// reply beside an error holds what is known: output, usage, exit code.
	Turn(ctx context.Context, r Request, live func(swarm.Delta)) (Reply, error)
}

// A Closer holds something between turns, such as a running program. Close ends it.
type Closer interface {
	Close() error
}

// A Checker can tell before anything starts whether its agents can be reached.
type Checker interface {
	Check(ctx context.Context) Health
}

// Health is what `swarm doctor` reports about a provider.
type Health struct {
	Found   bool   // the program or server is there
	Path    string // where the program is
	Version string // as it reports it
	Signed  string // "yes", "no", or "" if there is nothing to sign in to
	With    string // what it is signed in with: the variable that holds its key
	Problem string // what is wrong, or ""
	Hint    string // what to do about it
}

// A Request is one turn to do.
type Request struct {
	Run       swarm.RunID
	Turn      swarm.TurnID // task/iteration/attempt
	Task      string
	Agent     string
	Iteration int // from 1
	Attempt   int // from 1
	Prompt    string
	Model     string             // or "" for the provider's own
	Dir       string             // where it works; absolute
	Desk      bool               // Dir is a desk: files that the command names are of the folder of the run
	Env       map[string]string  // added to the environment: the agent's and the task's
	Session   string             // a session to continue, or ""; then Fresh is sent, if the session still exists
	Fresh     string             // the part of Prompt that is new to the session
	Stable    int                // how many bytes at the beginning of Prompt are the same in later turns
	Later     bool               // the agent probably has later turns: what they repeat is worth caching
	Root      string             // the folder that its tools may touch; absolute; "" = Dir
	Read      []string           // files elsewhere that it may read, also in a sandbox; absolute
	Tools     []string           // what it may use; nil = the provider decides
	Phase     swarm.Phase        // of its team; "" = none
	Door      swarm.ToolEndpoint // where a program finds the swarm tools; zero = nowhere
	Trace     string             // W3C traceparent for the program's own spans; "" = none
	// SessionTotal is what Session had cost in all when its last turn ended, as its program reported
	// it. Some programs report nothing but that. nil = unknown.
	SessionTotal *swarm.Usage
	// History is the session, of a provider that keeps none itself: what is sent before Fresh.
	History []swarm.ChatMessage
	// Context is the most tokens that a request of such a provider should have, estimated. If there
	// are more, it leaves out old results of the turn's own tools. 0 = there is no limit.
	Context int64
	// Plain asks a model for one answer without tools. nil = it is asked until it calls no tools.
	Plain *Plain
	// ToolSpecs are the swarm tools that it is offered. Call runs them.
	ToolSpecs []swarm.ToolSpec
	// Call runs a swarm tool in the agent's name, while the turn runs. An error is an answer for
	// the agent. nil = there are no tools.
	Call func(ctx context.Context, tool string, args json.RawMessage) (string, error)
	// Aside returns text for the agent beside the result of a tool that it has just used, such as
	// urgent mail. "" = nothing; nil = never.
	Aside func(ctx context.Context, tool string) (string, error)
	// Reserve reserves what the turn has used so far and what its next request needs in the run's
	// budget. It fails if nothing is left. nil = there is no budget.
	Reserve func(swarm.Usage) error
	// AwaitRoom waits until the budget has room for what Reserve would reserve, and reserves it. Only a
	// swarm that does the turn has it; nil = it does not wait.
	AwaitRoom func(context.Context, swarm.Usage) error
	// Ask asks a person for an approval, and waits for the answer: ok, and why not. It fails if no
	// person is to be asked. nil = no person can be asked. Providers call AskPerson.
	Ask func(ctx context.Context, what swarm.Approval) (ok bool, reason string, err error)
	// AskDenied says that Ask refuses everything and asks no person. A program that can be told so
	// does not ask, and does only what it may do without asking.
	AskDenied bool
}

// Plain says how a model is asked for one answer that it gives in words. An answer that is cut at
// its limit of tokens is an answer too.
type Plain struct {
	System      string  // instructions before the prompt
	Prefill     string  // the beginning of the answer, where the server has that; the output begins with it
	Temperature float64 // if the provider's configuration has none
	MaxTokens   int64   // of the answer, if the provider's configuration has none
}

// Folder returns the folder that its tools may touch.
func (r Request) Folder() string { return cmp.Or(r.Root, r.Dir) }

// Docs returns the only folder to which it may write, or "" if the phase does not restrict it.
func (r Request) Docs() string {
	if r.Phase != swarm.PlanningPhase {
		return ""
	}
	return filepath.Join(r.Folder(), permission.Docs)
}

// Workspace returns what a program of the turn sees in a sandbox, beside the machine. files are files
// of ours that it needs.
func (r Request) Workspace(dir string, files ...string) sandbox.Workspace {
	files = slices.Concat(files, r.Read)
	w := sandbox.Workspace{Dir: dir, Write: []string{dir, cmp.Or(r.Root, dir)}, Read: files}
	if docs := r.Docs(); docs != "" {
		w.Read, w.Write = append(w.Write, files...), []string{docs}
	}
	return w
}

// Mark returns the variables by which the turn's programs know their turn, and by which they are
// found.
func (r Request) Mark() process.Mark {
	return process.Mark{
		Run:       r.Run,
		Task:      r.Task,
		Agent:     r.Agent,
		Turn:      string(r.Turn),
		Iteration: r.Iteration,
		Attempt:   r.Attempt,
		URL:       r.Door.URL,
		Token:     r.Door.Token,
		Trace:     r.Trace,
	}
}

// A Reply is how a turn ended.
type Reply struct {
	Output  []byte      // the last MaxOutput bytes of it, cut at a rune's beginning
	Bytes   int64       // how long it was before that
	Usage   swarm.Usage // zero tokens = not reported
	Free    bool        // no model was asked: the turn cost nothing
	Short   bool        // the limit of tokens ended it
	Session string      // to continue with, or ""
	// Messages are what the turn has added to its session after the prompt, if the provider keeps no
	// session itself. They end with the answer, or with the last results of tools if the turn failed.
	Messages []swarm.ChatMessage
	LeftOut  int // how many results of its tools were left out of its later requests
	// Trouble is what the server said last, if the turn was cut while it was asked again and again.
	Trouble string
	Exit    int    // a program's exit code
	Stderr  []byte // the tail of what a program wrote there, for the error's text
	// SessionTotal is what the session has cost in all, if the program reports that and nothing else.
	SessionTotal *swarm.Usage
	// Notice is what a person should know about a turn that succeeded; nil = nothing.
	Notice *swarm.Reason
	// Requests are those to a model over HTTP, at most swarm.MaxRequests.
	Requests []swarm.ModelRequest
}

// IsCut says whether the beginning of the output is missing.
func (r Reply) IsCut() bool { return r.Bytes > int64(min(len(r.Output), MaxOutput)) }

// Ends returns the kept ends of a program's outputs, with a … where the beginning is missing.
func (r Reply) Ends() (stdout, stderr string) {
	stdout = string(r.Output)
	if r.IsCut() {
		stdout = "…" + stdout
	}
	return stdout, process.StderrText(r.Stderr)
}

// MaxOutput is the number of bytes of an output that are kept.
const MaxOutput = swarm.MaxOutput
