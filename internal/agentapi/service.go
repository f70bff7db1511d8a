// Package agentapi implements the tools by which agents act on their run. Agents send and read
// mail, publish findings, store and read artifacts, wait for each other, and ask for new agents and
// edges. A person writes to agents and reads their answers through the same [Service]. Calls arrive
// over MCP, as tool calls of a model, or from scripts.
//
// An agent that has a turn has a [TurnHandle]. A call is checked, appended to the log, and only
// then answered. It stands even if the turn is cut afterwards. The ids of events are derived from
// the turn and the arguments, so a repeated call is the same event. Reading mail is the exception:
// mail counts as consumed only when the turn commits the range that [TurnHandle.End] returns.
//
// The log is the only state. All else in memory is a fold of it. So any number of services, in any
// number of processes, may serve one run.
package agentapi

import (
	"math"
	"slices"
	"sync"
	"time"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/mail"
	"swarm/internal/plan"
)

// A Service serves the agents of one run. Its methods may be called from many goroutines.
type Service struct {
	Run    swarm.RunID
	Log    swarm.Log
	Redact func([]byte) []byte // removes secrets from text before it is stored; nil = there are no secrets
	Now    func() time.Time    // nil = time.Now
	Folds  swarm.Folds         // stores the fold of a long log; nil = the log is always read whole
	Loop   string              // the loop that is told when an agent waits; "" = none
	Client string              // the key of the MCP client that writes for the person; "" = none does
	Fence  int64               // fence of the process that drives the run, for records only a driver may append; 0 = any process

	// mu guards all fields below. Those before turns, and ruleEvents, are the fold of the log.
	mu         sync.Mutex
	read       int64                  // sequence number of the last event folded
	rules      *mail.Rules            // the edges, and the answers that are owed
	growth     *growth.Team           // what agents may request, and have requested
	plans      []*swarm.Plan          // the first plan, and what the run has grown by
	grown      []int                  // for each answered growth request: the number of plans then
	team       *plan.Team             // the state of each agent, folded as the team loop folds it
	agents     map[string]*agentState // what only the tools need to know of an agent or a person
	over       bool                   // the run has ended
	turns      map[string]*TurnHandle // by agent
	ruleEvents *ruleEvents            // the events that a stored fold lists
	topics     topics                 // published findings
}

// Limits of the mail shown at once.
const (
	shownMail  = 20       // envelopes, by default
	mostMail   = 100      // envelopes, at most
	shownBytes = 64 << 10 // bytes of JSON; one envelope is always shown, whatever its size

	urgentMail  = 1000    // envelopes, if one of them is urgent
	urgentBytes = 1 << 20 // bytes of JSON, if one of them is urgent
)

const page = 1000 // events per read

// Cursor is the sequence number up to which committed turns have consumed the agent's mail.
func (s *Service) Cursor(agent string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return 0, err
	}
	return s.cursor(agent), nil
}

// Unread returns the agent's mail after a sequence number, oldest first, as much as a prompt should
// hold: at most max envelopes and 64 KB, but at least one if there is any. An urgent message does
// not wait behind a full inbox: if there is one, Unread returns all mail up to it.
func (s *Service) Unread(agent string, after int64, max int) ([]mail.Item, error) {
	items, more, err := s.unread(agent, after, max, shownBytes)
	if err != nil || !more || max < mostMail {
		return items, err
	}
	s.mu.Lock()
	err = s.follow()
	var urgent int64
	if err == nil {
		urgent = s.agent(agent).Urgent
	}
	s.mu.Unlock()
	if err != nil || urgent <= items[len(items)-1].Seq {
		return items, err
	}
	longer, _, err := s.unread(agent, after, urgentMail, urgentBytes)
	if err != nil || longer[len(longer)-1].Seq < urgent {
		return items, err // the urgent message is too far behind
	}
	return slices.DeleteFunc(longer, func(i mail.Item) bool { return i.Seq > urgent }), nil
}

// Mail returns the mail that arrived in a range of sequence numbers, oldest first.
func (s *Service) Mail(agent string, in swarm.Inputs) ([]mail.Item, error) {
	items, _, err := s.unread(agent, in.From, math.MaxInt, math.MaxInt)
	return slices.DeleteFunc(items, func(i mail.Item) bool { return i.Seq > in.Upto }), err
}

// unread returns at most max envelopes with at most room bytes, and whether there are more.
func (s *Service) unread(agent string, after int64, max, room int) (items []mail.Item, more bool, err error) {
	bytes := 0
	for {
		events, err := s.Log.Read(after, min(max, mostMail)+1, swarm.ToAgent(agent))
		if err != nil || len(events) == 0 {
			return items, false, err
		}
		for _, e := range events {
			after = e.Seq
			if e.Kind != swarm.HandoffStored {
				continue
			}
			env, err := swarm.Body[swarm.Envelope](&e)
			if err != nil {
				return nil, false, err
			}
			item := mail.Item{Seq: e.Seq, Envelope: env}
			// The length of the timestamp does not count. A message that is handed in at another
			// time must give the same prompt.
			bytes += len(e.Data) - len(item.CreatedAt.Format(time.RFC3339Nano))
			if len(items) >= max || len(items) > 0 && bytes > room {
				return items, true, nil
			}
			items = append(items, item)
		}
	}
}

// Sent lists, one line each, what the turns have sent, published, stored and requested. It stands
// in the prompt of a turn that runs again after them.
func (s *Service) Sent(turns ...swarm.TurnID) ([]string, error) {
	var lines []string
	for _, turn := range turns {
		start, ok, err := s.Log.Find(swarm.StartKey(turn, 1))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // a turn that never started has sent nothing
		}
		for e, err := range swarm.Events(s.Log, start.Seq) {
			if err != nil {
				return nil, err
			}
			if line := describeEvent(e); e.Turn == turn && e.Agent != swarm.Orchestrator && line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// describeEvent describes an event in one line. It returns "" for an event that no tool of ours
// makes.
func describeEvent(e *swarm.Event) string {
	switch e.Kind {
	case swarm.HandoffStored:
		if env, err := swarm.Body[swarm.Envelope](e); err == nil {
			return string(env.Kind) + " " + env.ID + " to " + env.ToNodeID + ": " + head(env.Payload.Message)
		}
	case swarm.ApprovalAsked:
		if a, err := swarm.Body[swarm.Approval](e); err == nil && a.Growth != nil {
			return "request " + a.ID + " to " + a.What
		}
	case swarm.TopicPublished:
		if t, err := swarm.Body[swarm.TopicEntry](e); err == nil {
			return "published in " + t.Topic + ": " + head(string(t.Data))
		}
	case swarm.ArtifactStored:
		if a, err := swarm.Body[swarm.Artifact](e); err == nil {
			return "stored " + a.Ref + ": " + a.Name
		}
	}
	return ""
}

func (s *Service) redact(b []byte) []byte {
	if s.Redact == nil || len(b) == 0 {
		return b
	}
	return s.Redact(b)
}

func (s *Service) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
