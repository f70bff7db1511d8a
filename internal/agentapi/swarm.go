package agentapi

import (
	"context"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/subtask"
)

// A SwarmState is what the prompts of a swarm tell about it.
type SwarmState struct {
	Query      swarm.Hash
	Workers    int // that work at once
	Iterations int // of one agent
	MaxAgents  int
	Roles      []string
	Agents     []SwarmAgent // without the supervisor
	More       int          // agents that Agents leaves out
	Room       int          // how many agents may still join
	Tasks      []SwarmTask  // the entries of the task list that agents have added
	Chars      int          // of a finding in a prompt, and of a task of somebody else
	Council    *Council     // nil = it is no council
}

// A Council is what the prompts of a council tell about its vote.
type Council struct {
	Judged  []string // the agents whose answers the agent judges, in the order in which it sees them
	Tally   plan.Tally
	Reviews []swarm.TurnID // turns in which members have judged the others
}

// council says whether the run is a council. The caller holds the mutex.
func (s *Service) council() bool {
	return len(s.plans) > 0 && s.plans[0].Swarm != nil && s.plans[0].Swarm.IsCouncil()
}

// councilState returns the state of a council for the prompt of an agent, or nil.
func (s *Service) councilState(agent string) *Council {
	if !s.council() {
		return nil
	}
	c := &Council{Judged: s.team.Judged(agent), Tally: s.team.Tally()}
	for i := range s.team.Members {
		if e := s.team.Members[i].Effort; e != nil && e.Ballot != nil && e.Ballot.Silent == "" {
			c.Reviews = append(c.Reviews, e.Ballot.Turn)
		}
	}
	return c
}

// maxTeammates is how many agents the prompt of a worker lists, so that the prompts of a large swarm
// do not grow with it.
const maxTeammates = 32

// A SwarmAgent is an agent of a swarm, its subtask, and how it ended.
type SwarmAgent struct {
	Name    string
	ID      string // of its subtask
	Task    string
	Turn    swarm.TurnID // its last turn
	Outcome swarm.Outcome
	Reason  string
	Waits   []string // agents that must end before it begins
	Needs   []string // agents whose results it needs, ended or not
}

// Needs returns the agents whose results the subtask of an agent needs.
func (s *SwarmState) Needs(agent string) []string {
	for _, a := range s.Agents {
		if a.Name == agent {
			return a.Needs
		}
	}
	return nil
}

// State says how far the agent's subtask is.
func (a *SwarmAgent) State() string {
	switch {
	case a.Outcome == swarm.OutcomeDone:
		return "done by " + a.Name
	case a.Outcome != "" && !a.Outcome.Good():
		return "failed, by " + a.Name + ": " + a.Reason
	case a.Outcome != "" || a.Reason != "":
		return "not finished, by " + a.Name + ": " + a.Reason
	case len(a.Waits) > 0:
		return a.Name + " waits for " + strings.Join(a.Waits, ", ")
	}
	return a.Name + " works on it"
}

// Task returns the subtask of an agent.
func (s *SwarmState) Task(agent string) string {
	for _, a := range s.Agents {
		if a.Name == agent {
			return a.Task
		}
	}
	return ""
}

// SwarmState returns the state of a swarm for the prompt of an agent, and the newest event that it
// comes from. The supervisor sees all agents. In a large swarm a worker sees those beside it in the
// division, whose subtasks are related to its own.
func (s *Service) SwarmState(agent string) (*SwarmState, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, 0, err
	}
	first := s.plans[0]
	if first.Swarm == nil {
		return nil, 0, swarm.Errorf(swarm.Storage, "run %s is no swarm", s.Run)
	}
	state := &SwarmState{Query: first.Swarm.Query, Workers: first.Swarm.Workers, Iterations: first.Swarm.Iterations, MaxAgents: first.Team.MaxAgents, Room: s.growth.Room(), Chars: swarm.DefaultTopics.Chars}
	if first.Topics != nil {
		state.Chars = first.Topics.Chars
	}
	for _, r := range first.Swarm.Roles {
		state.Roles = append(state.Roles, r.Name)
	}
	all := s.subtasks()
	if s.team.Swarm.Dropped { // nobody works on them, and the answer does without
		all = slices.DeleteFunc(slices.Clone(all), func(t swarm.Subtask) bool { return s.team.IsDropped(t.Agent) })
	}
	if n := len(all); n > maxTeammates && agent != swarm.Supervisor && !s.council() {
		at := slices.IndexFunc(all, func(t swarm.Subtask) bool { return t.Agent == agent })
		from := min(max(0, at-maxTeammates/2), n-maxTeammates)
		all, state.More = all[from:from+maxTeammates], n-maxTeammates
	}
	state.Agents = make([]SwarmAgent, len(all))
	for i, t := range all {
		state.Agents[i] = s.swarmAgent(t)
	}
	state.Tasks, state.Council = s.taskStates(), s.councilState(agent)
	return state, s.read, nil
}

func (s *Service) swarmAgent(t swarm.Subtask) SwarmAgent {
	a := SwarmAgent{Name: t.Agent, ID: t.ID, Task: t.Description}
	m := s.team.Member(t.Agent)
	if m == nil {
		return a
	}
	if a.Turn = m.Turn; m.Effort != nil && m.Effort.Last != "" {
		a.Turn = m.Effort.Last
	}
	if m.End != nil {
		a.Outcome, a.Reason = m.End.Outcome, m.End.Reason
	}
	if m.Effort != nil {
		a.Needs = m.Effort.Needs
		for _, need := range m.Effort.Needs {
			if other := s.team.Member(need); other != nil && other.End == nil {
				a.Waits = append(a.Waits, need)
			}
		}
	}
	return a
}

// Weighed returns the ids of all subtasks, and the agents that had ended other than done up to a
// sequence number: the supervisor's prompt that was made there tells of them.
func (s *Service) Weighed(known int64) (ids, agents []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, nil, err
	}
	for i := range s.team.Members {
		m := &s.team.Members[i]
		if m.Effort == nil || m.End == nil || m.End.Outcome == swarm.OutcomeDone {
			continue
		}
		e, ok, err := s.Log.Find(swarm.AgentEndedKey(m.Name, m.Starts))
		if err != nil {
			return nil, nil, err
		}
		if ok && e.Seq <= known {
			agents = append(agents, m.Name)
		}
	}
	return s.taskIDs(), agents, nil
}

// Divide adds an agent for each subtask that a turn of the supervisor names, and sends the messages
// that it names. Without a turn, one agent gets the whole query. It returns the sequence number of
// the last event. Repeating it finds the plan in the log and does nothing.
func (s *Service) Divide(ctx context.Context, fence int64, turn string) (int64, error) {
	if e, done, err := s.Log.Find(swarm.DivisionKey(turn)); err != nil || done {
		return e.Seq, err
	}
	answer, err := s.answerOf(turn)
	if err != nil {
		return 0, err
	}
	events, err := s.divides(turn, answer)
	if err != nil {
		return 0, err
	}
	seqs, err := s.Log.Append(ctx, swarm.Batch{Fence: fence, Events: events})
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

// divides makes the events that add what an answer of the supervisor names.
func (s *Service) divides(turn, answer string) ([]swarm.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	var subtasks []swarm.Subtask
	var messages []subtask.Message
	var err error
	switch {
	case turn == "":
		subtasks = []swarm.Subtask{{ID: "t1", Description: answer}}
	case s.team.Swarm.Divided:
		subtasks, messages, err = subtask.ReadReplan(answer, s.taskIDs())
	default:
		subtasks, err = subtask.ReadAnswer(answer)
	}
	if err != nil {
		return nil, err
	}
	unknown := s.dropUnknownRoles(subtasks)
	kept, dropped := subtask.Cap(subtasks, s.growth.Room())
	p := s.growth.Workers(s.Run, kept)
	p.Swarm.By = swarm.TurnID(turn)
	p.Swarm.Entries = slices.Clone(subtasks[len(kept):])
	events := []swarm.Event{{Kind: swarm.PlanAdded, Key: swarm.DivisionKey(turn), To: swarm.ToLoop(swarm.RootLoop), Agent: swarm.Supervisor, Data: swarm.Encode(p)}}
	events = append(events, unknown...)
	if len(dropped) > 0 { // they stay open in the task list, so the answer is told that nobody has done them
		why := swarm.Reason{Reason: "the query has more subtasks than there may be agents; left out: " + strings.Join(dropped, ", "),
			Hint: "raise swarm.max_agents in the compose file"}
		events = append(events, swarm.NewEvent(swarm.Notice, why))
	}
	for _, m := range messages {
		d := mail.Draft{To: m.To, Message: m.Text, Type: swarm.MessageTypes[len(swarm.MessageTypes)-1]}
		e, err := s.rules.Envelope(swarm.Supervisor, d, turn, s.now())
		if err != nil { // its receiver has ended, or does not exist
			events = append(events, swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "a message of the supervisor was not sent: " + s.clean(err).Error()}))
			continue
		}
		sent := during(inbound(e), swarm.Supervisor, swarm.TurnID(turn))
		_, there, err := s.Log.Find(sent.Key)
		if err != nil {
			return nil, err
		}
		if !there { // otherwise this run is a fork that has carried it over with its turn
			events = append(events, sent)
		}
	}
	return events, nil
}

// dropUnknownRoles takes roles out of the supervisor's subtasks that the compose file does not have, and
// returns the notices about it. Such a subtask gets the agent of one that names no role.
func (s *Service) dropUnknownRoles(subtasks []swarm.Subtask) (notices []swarm.Event) {
	for i := range subtasks {
		if err := subtask.CheckRole(s.plans[0].Swarm.Roles, subtasks[i]); err != nil {
			subtasks[i].Role = ""
			why := swarm.Reason{Reason: string(s.redact([]byte("the supervisor made a mistake: " + err.Msg + ". The agent is the one of a subtask without a role"))), Hint: err.Hint}
			notices = append(notices, swarm.NewEvent(swarm.Notice, why))
		}
	}
	return notices
}

// answerOf returns what the supervisor says in a turn; without one it is the whole query.
func (s *Service) answerOf(turn string) (string, error) {
	if turn == "" {
		state, _, err := s.SwarmState(swarm.Supervisor)
		if err != nil {
			return "", err
		}
		query, err := s.Log.Body(state.Query)
		return string(query), err
	}
	end, ok, err := swarm.FindBody[swarm.CallEnd](s.Log, swarm.EndKey(turn))
	if err != nil || !ok {
		return "", swarm.Errorf(swarm.Storage, "the log has no end of the turn %s: %w", turn, err)
	}
	text, err := s.Log.Body(end.Output)
	return string(text), err
}

// rulesOfSwarm returns the rules of a swarm, or nil.
func (s *Service) rulesOfSwarm() *swarm.Swarm {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow() != nil || len(s.plans) == 0 {
		return nil // the next step reports a log that cannot be read
	}
	return s.plans[0].Swarm
}

// limitsMail says whether an agent may send so many messages only. In a swarm everybody may write to
// everybody, so only a swarm has such a limit.
func (s *Service) limitsMail() bool {
	r := s.rulesOfSwarm()
	return r != nil && r.Messages > 0
}

// checkType returns an error if a message of a swarm has a type that a swarm does not have.
func (s *Service) checkType(d *mail.Draft) error {
	types := append(slices.Clone(swarm.MessageTypes), string(swarm.Signal))
	switch {
	case s.rulesOfSwarm() == nil:
	case d.Type == "" || d.Type == string(swarm.Handoff):
		d.Type = swarm.MessageTypes[len(swarm.MessageTypes)-1]
	case !slices.Contains(types, d.Type):
		return swarm.Errorf(swarm.BadInput, "there is no type of message %s", swarm.Quote(d.Type)).WithHint("choose one of %s", strings.Join(types, ", "))
	}
	return nil
}

// checkLimit returns an error if the sender of an envelope has sent as many as it may. A message that
// was sent before does not count again.
func (s *Service) checkLimit(e swarm.Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return err
	}
	most := s.plans[0].Swarm.Messages
	if s.agent(e.FromNodeID).Sent < most || s.isStored(e) {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s has reached its limit of messages: %d", e.FromNodeID, most).
		WithHint("share findings with publish_data; a person can allow more in swarm.yaml, with swarm: {max_messages_per_agent: %d}", most+1)
}
