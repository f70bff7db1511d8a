// Package mcpdrive is the tools by which an MCP client, such as Claude Code, drives runs: it starts
// them, waits for them, reads them, writes to their agents, and cancels them. It is a door like HTTP
// and commands: it reads arguments, calls package control, and encodes the result.
//
// The client acts with a [control.ClientKey]. It starts only what the compose file of this folder
// has, reads the runs of this folder, and steers its own runs.
package mcpdrive

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/strictjson"
)

// About describes the tools as a whole to a client.
const About = "swarm runs teams of AI agents from this folder's swarm/swarm.yaml. " +
	"Call project first to see what can be started, then run_pipeline, run_team, run_line or solve. " +
	"These return at once: call wait_run until the run has ended, then read_run for its outputs."

// A Server is the tools of one client.
type Server struct {
	Control *control.Control
	Start   func(ctx context.Context, r control.Request) (run string, err error) // returns when the run is on disk
	// StartLine starts a line of the REPL's language.
	StartLine func(ctx context.Context, r control.Request, line string) (run string, err error)
}

// A tool is a tool of a client.
type tool struct {
	swarm.ToolSpec
	call func(s *Server, ctx context.Context, args json.RawMessage) (any, error)
}

// take makes the call of a tool from a function that takes its decoded arguments.
func take[A any](do func(s *Server, ctx context.Context, args A) (any, error)) func(*Server, context.Context, json.RawMessage) (any, error) {
	return func(s *Server, ctx context.Context, raw json.RawMessage) (any, error) {
		var args A
		if err := strictjson.Decode(raw, &args); err != nil {
			return nil, swarm.Errorf(swarm.BadInput, "the arguments cannot be read: %w", err)
		}
		return do(s, ctx, args)
	}
}

// object makes the JSON Schema of a tool's arguments.
func object(properties string, required ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":` + string(swarm.Encode(append([]string{}, required...))) +
		`,"additionalProperties":false}`)
}

// Parts of schemas.
const (
	runArg    = `"run":{"type":"string","description":"The id of a run, or @last for the newest."}`
	budgetArg = `"budget":{"type":"object","description":"The most that this run may use. Without it: all that is left of your budget.",` +
		`"properties":{"usd":{"type":"number","exclusiveMinimum":0},"tokens":{"type":"integer","minimum":1},"calls":{"type":"integer","minimum":1}},"additionalProperties":false}`
)

// tools are all tools, in the order in which a client needs them.
var tools = []tool{
	{swarm.ToolSpec{Name: "project", Description: "What this folder's compose file has: pipelines, tasks, agents and edges. Next: run_pipeline, run_team, run_line or solve.",
		Schema: object("")}, take((*Server).project)},
	{swarm.ToolSpec{Name: "run_pipeline", Description: "Starts a pipeline, or some tasks with what they depend on. Returns the run at once. Next: wait_run.",
		Schema: object(`"pipeline":{"type":"string","description":"Without it: the pipeline main, or the only one."},` +
			`"tasks":{"type":"array","items":{"type":"string"},"description":"Tasks, in the place of a pipeline."},` +
			`"stdin":{"type":"string","description":"The text of {{STDIN}} in prompts."},` + budgetArg)}, take((*Server).runPipeline)},
	{swarm.ToolSpec{Name: "run_team", Description: "Gives the team of agents a goal. They message each other until the lead reports that it is done. Returns the run at once. Next: wait_run.",
		Schema: object(`"goal":{"type":"string"},"to":{"type":"string","description":"The agent that gets the goal. Without it: the lead."},`+
			`"done":{"type":"array","items":{"type":"string"},"description":"How it is seen that the goal is reached: sentences, which nothing checks."},`+
			`"done_command":{"type":"string","description":"A shell command that checks whether the goal is reached: exit code 0. The run is completed only after it has passed. Only for a client that may approve."},`+budgetArg, "goal")}, take((*Server).runTeam)},
	{swarm.ToolSpec{Name: "run_line", Description: "Runs one line: agents in a chain, as in `@pm Plan a tool -> @builder Build $pm`. Returns the run at once. Next: wait_run.",
		Schema: object(`"line":{"type":"string"},`+budgetArg, "line")}, take((*Server).runLine)},
	{swarm.ToolSpec{Name: "solve", Description: "Has a swarm answer a query: a supervisor divides it, agents work on the parts, one answer comes back. Returns the run at once. Next: wait_run.",
		Schema: object(`"query":{"type":"string"},"agents":{"type":"integer","minimum":1,"description":"How many work at once."},`+
			`"strategy":{"type":"string","enum":["team","council"]},`+budgetArg, "query")}, take((*Server).solve)},
	{swarm.ToolSpec{Name: "list_runs", Description: "The runs of this folder, newest first. Yours have mine: true; only those can be steered. Next: wait_run or read_run.",
		Schema: object(`"limit":{"type":"integer","minimum":1,"maximum":100},"mine":{"type":"boolean","description":"Only your own."}`)}, take((*Server).listRuns)},
	{swarm.ToolSpec{Name: "wait_run", Description: "Waits until a run ends, an agent asks a person for something, a provider's limit is reached, or the timeout. Returns what happened since `after`. " +
		"While the status is running: do what next says. When it has ended: read_run.",
		Schema: object(runArg+`,"after":{"type":"integer","minimum":0,"description":"The seq of the last call."},`+
			`"timeout":{"type":"number","minimum":0,"maximum":600,"description":"Seconds; 45 without it."}`, "run")}, take((*Server).waitRun)},
	{swarm.ToolSpec{Name: "read_run", Description: "The state of a run, and with a task its output. A swarm's answer comes without a task. Next: why, if something failed or waits.",
		Schema: object(runArg+`,"task":{"type":"string"},"offset":{"type":"integer","minimum":0},"max":{"type":"integer","minimum":1,"maximum":100000,"description":"Bytes of the output; 20000 without it."}`, "run")},
		take((*Server).readRun)},
	{swarm.ToolSpec{Name: "read_messages", Description: "The messages between the agents of a run, oldest first, with how far each got.",
		Schema: object(runArg+`,"agent":{"type":"string","description":"Only from or to this agent."},"after":{"type":"integer","minimum":0},"limit":{"type":"integer","minimum":1,"maximum":200}`, "run")},
		take((*Server).readMessages)},
	{swarm.ToolSpec{Name: "why", Description: "Why a task or an agent does not run, or why it failed: the chain of waits to its end.",
		Schema: object(runArg+`,"name":{"type":"string","description":"A task, or @agent."}`, "run", "name")}, take((*Server).why)},
	{swarm.ToolSpec{Name: "send", Description: "Writes to an agent of a run of yours, as the person would. The agent reads it in its next turn. Next: wait_run.",
		Schema: object(runArg+`,"to":{"type":"string"},"text":{"type":"string"},"interrupt":{"type":"boolean","description":"Cut its turn, so that it reads this first."}`, "run", "to", "text")},
		take((*Server).send)},
	{swarm.ToolSpec{Name: "cancel_run", Description: "Ends a run of yours for good, or one of its tasks.",
		Schema: object(runArg+`,"target":{"type":"string","description":"A task, or @agent. Without it: the whole run."}`, "run")}, take((*Server).cancelRun)},
	{swarm.ToolSpec{Name: "resume_run", Description: "Goes on with a run of yours that is interrupted or paused. Next: wait_run.",
		Schema: object(runArg, "run")}, take((*Server).resumeRun)},
}

// answerApproval is the tool of a client whose key may approve.
var answerApproval = tool{swarm.ToolSpec{Name: "answer_approval", Description: "Approves or denies what an agent of a run of yours asks a person for. wait_run lists what is asked. Next: wait_run.",
	Schema: object(runArg+`,"id":{"type":"string"},"ok":{"type":"boolean"},"reason":{"type":"string"}`, "run", "id", "ok")}, take((*Server).answerApproval)}

// offered returns the tools of this client.
func (s *Server) offered() []tool {
	if k := s.Control.Caller.Key; k != nil && k.MayApprove {
		return append(tools[:len(tools):len(tools)], answerApproval)
	}
	return tools
}

// Tools returns what the client is offered.
func (s *Server) Tools() (specs []swarm.ToolSpec) {
	for _, t := range s.offered() {
		specs = append(specs, t.ToolSpec)
	}
	return specs
}

// Call runs a tool. The answer is one JSON object.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	for _, t := range s.offered() {
		if t.Name == name {
			answer, err := t.call(s, ctx, args)
			if err != nil {
				return nil, forClient(err)
			}
			return swarm.Encode(answer), nil
		}
	}
	return nil, swarm.Errorf(swarm.NotFound, "there is no tool %s", swarm.Quote(name))
}

// atTerminal matches hints that only a person at a terminal can follow: commands, flags, variables.
var atTerminal = regexp.MustCompile("(^|[ `(])(swarm [a-z]|--?[a-z]|export |GET /)")

// forClient returns an error with a hint that an MCP client can follow. The client has tools, and
// neither a terminal nor our flags.
func forClient(err error) error {
	hint := swarm.HintOf(err)
	variable, missing := strings.CutPrefix(hint, "export ")
	switch {
	case missing && swarm.KindOf(err) == swarm.NotSignedIn:
		variable, _, _ = strings.Cut(variable, "=")
		return withHint(err, missingVariable(variable))
	case atTerminal.MatchString(hint) && !strings.HasPrefix(hint, "a person "):
		return withHint(err, "ask the person: "+hint)
	}
	return err
}

func withHint(err error, hint string) error {
	return &swarm.Error{Kind: swarm.KindOf(err), Msg: err.Error(), Hint: hint}
}

// missingVariable explains a variable that is not set. The MCP client chooses which variables this
// server gets. So the variable may be missing here although the person exported it.
func missingVariable(name string) string {
	return "the MCP client did not pass " + name + " on to swarm. Ask the person to export it before the client starts, " +
		"and to list it in the client's entry for this server. For Codex, `swarm mcp install codex` lists it"
}

// find finds the run that a client names. A client has no other folders, and lists runs by a tool.
func (s *Server) find(ref string) (swarm.RunSummary, error) {
	r, err := s.Control.Find(ref)
	if kind := swarm.KindOf(err); kind == swarm.NotFound || kind == swarm.BadInput {
		err = withHint(err, "list_runs lists the runs of this folder, the only ones that you can name; @last is the newest")
	}
	return r, err
}

// Refuse says why a client lacks the tool that answers approvals.
func (s *Server) Refuse(name string) error {
	if name != answerApproval.Name {
		return nil
	}
	return s.Control.MayAnswer("")
}
