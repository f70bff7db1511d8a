package feed

import (
	"encoding/json"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// The streams of swarm mode have their own names and fields for events. A stream of a swarm's run
// uses them where the seed has one. Each is made of one event of the log and of nothing else, so a
// listener that continues in the middle gets the same names and the same ids.

// The seed's names of events.
const (
	workflowStarted   = "workflow_started"
	progress          = "progress"
	agentStarted      = "agent_started"
	agentCompleted    = "agent_completed"
	messageSent       = "message_sent"
	messageReceived   = "message_received"
	workspaceUpdated  = "workspace_updated"
	workflowCompleted = "workflow_completed"
)

// SeedNames lists the seed's names of events, so that streams can be filtered by them.
var SeedNames = []string{workflowStarted, progress, agentStarted, agentCompleted, messageSent, messageReceived, workspaceUpdated, workflowCompleted}

// The seed's ids of what is no agent of a subtask.
const (
	seedSupervisor = "swarm-supervisor"
	seedWorkspace  = "workspace"
)

// The phases of a swarm, which the event progress names.
const (
	planning     = "planning"     // the supervisor divides the query
	spawning     = "spawning"     // agents are added
	monitoring   = "monitoring"   // the agents work
	synthesizing = "synthesizing" // the supervisor makes one answer of all results
)

// A SeedEvent is an event of a swarm's run in the seed's fields.
type SeedEvent struct {
	Type       string          `json:"type"`
	WorkflowID swarm.RunID     `json:"workflow_id"`
	AgentID    string          `json:"agent_id"`
	Message    string          `json:"message,omitempty"` // in a few words
	Reason     string          `json:"reason,omitempty"`  // of agent_completed: how the agent ended
	Timestamp  time.Time       `json:"timestamp"`
	Seq        int64           `json:"seq"`
	Kind       swarm.EventKind `json:"kind"` // our name of it
	Turn       swarm.TurnID    `json:"turn,omitempty"`
	Payload    json.RawMessage `json:"payload,omitempty"`
}

// seedEvent returns an event of a swarm's run in the seed's fields. It is false if the seed has no
// name for it.
func seedEvent(run swarm.RunID, e *swarm.Event) (SeedEvent, bool) {
	s := SeedEvent{WorkflowID: run, AgentID: SeedAgent(e.Agent), Timestamp: e.Time, Seq: e.Seq, Kind: e.Kind, Turn: e.Turn, Payload: e.Data}
	switch e.Kind {
	case swarm.RunStarted:
		s.Type = workflowStarted
		_ = swarm.UseBody(e, func(b swarm.RunStart) { s.Message = b.Name })
	case swarm.RunEnded:
		s.Type = workflowCompleted
		_ = swarm.UseBody(e, func(b swarm.RunEnd) { s.Message = strings.TrimSuffix(string(b.Status)+": "+b.Reason, ": ") })
	case swarm.TurnStarted:
		_ = swarm.UseBody(e, func(b swarm.TurnStart) { s.turnStarted(&b) })
	case swarm.AgentEnded:
		s.Type = agentCompleted
		_ = swarm.UseBody(e, func(b swarm.AgentEnd) { s.Reason, s.Message = endReason(b), b.Reason })
	case swarm.HandoffStored:
		s.Type = messageSent
		_ = swarm.UseBody(e, func(b swarm.Envelope) { s.Message = beginning(b.Payload.Message) })
	case swarm.HandoffConsumed:
		s.Type = messageReceived
	case swarm.TopicPublished:
		s.Type, s.AgentID = workspaceUpdated, seedWorkspace
		_ = swarm.UseBody(e, func(b swarm.TopicEntry) {
			s.Message, s.Payload = beginning(b.Text()), swarm.Encode(seedEntry{b.Topic, SeedAgent(e.Agent), b.Data})
		})
	case swarm.PlanAdded:
		_ = swarm.UseBody(e, func(b swarm.Plan) { s.planAdded(&b) })
	case swarm.CallEnded:
		_ = swarm.UseBody(e, func(b swarm.CallEnd) {
			if strings.HasPrefix(b.ID, "divide/") {
				s.phase(monitoring, nil)
			}
		})
	}
	return s, s.Type != ""
}

// beginning returns the first words of a text, on one line. The payload has all of it.
func beginning(text string) string {
	const most = 200
	return excerpt.Head(excerpt.OneLine(text), most)
}

// SeedAgent returns the seed's id of an agent. The seed knows no runtime beside the supervisor.
func SeedAgent(name string) string {
	if name == swarm.Supervisor || name == swarm.Orchestrator || name == "" {
		return seedSupervisor
	}
	return name
}

// turnStarted names the start of a turn: an agent's first one, and those that begin a phase. A turn
// that starts again after a crash or is tried again begins nothing.
func (s *SeedEvent) turnStarted(b *swarm.TurnStart) {
	if b.Start > 1 || b.Attempt > 1 {
		return
	}
	switch plan.Want(b.Want) {
	case plan.WantAction:
		if b.Iteration == 1 {
			s.Type = agentStarted
		}
	case plan.WantSubtasks: // a supervisor that plans anew goes on to monitor its agents
		s.phase(planning, nil)
	case plan.WantAnswer:
		s.phase(synthesizing, nil)
	}
}

// planAdded names a plan that brings agents. The payload lists them.
func (s *SeedEvent) planAdded(p *swarm.Plan) {
	if p.Swarm == nil || len(p.Swarm.Subtasks) == 0 {
		return
	}
	agents := make([]seedSubtask, len(p.Swarm.Subtasks))
	for i, t := range p.Swarm.Subtasks {
		agents[i] = seedSubtask{t.Agent, t.ID, t.Description, t.Role, t.DependsOn, t.For}
	}
	s.phase(spawning, agents)
}

func (s *SeedEvent) phase(name string, agents []seedSubtask) {
	s.Type, s.AgentID, s.Message = progress, seedSupervisor, name
	s.Payload = swarm.Encode(seedPhase{name, agents})
}

// A seedPhase is the payload of progress.
type seedPhase struct {
	Phase  string        `json:"phase"`
	Agents []seedSubtask `json:"agents,omitempty"`
}

// A seedSubtask is an agent that joins, and what it works on.
type seedSubtask struct {
	AgentID     string   `json:"agent_id"`
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Role        string   `json:"role,omitempty"`
	DependsOn   []string `json:"depends_on,omitempty"`
	RequestedBy string   `json:"requested_by,omitempty"` // the agent that asked for help
}

// A seedEntry is the payload of workspace_updated.
type seedEntry struct {
	Topic  string          `json:"topic"`
	Author string          `json:"author"`
	Data   json.RawMessage `json:"data"`
}

// endReason returns how an agent ended, in one word.
func endReason(end swarm.AgentEnd) string {
	switch {
	case end.Outcome != "":
		return string(end.Outcome)
	case end.Kind == swarm.CutByCancel:
		return string(swarm.Cancelled)
	}
	return string(swarm.OutcomeAborted)
}
