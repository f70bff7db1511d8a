// Package agentapi is where agents act on their run: they send each other mail and read their own,
// publish findings, store and read artifacts, wait for each other, and ask for others to join. A person
// writes to them and reads their answers here too. Calls come in by MCP, as a tool of a model or from a
// script. Each is done here, in the name of an agent that has a turn, or of the person.
//
// An agent's turn has a [TurnHandle]. A call is checked, written to the log, and only then answered; it stands even if the turn is cut
// afterwards, and the same call made by the same turn again is the same fact. Only reading mail is different: what a turn has
// seen is consumed when the turn commits, with the numbers that [TurnHandle.End] returns.
//
// The log is the only state. What is kept in memory is a fold of it, so that any number of services, in any number of
// processes, may serve one run.
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

// An Service serves the agents of one run. All its methods may be used by many goroutines at once.
type Service struct {
	Run    swarm.RunID
	Log    swarm.Log
	Redact func([]byte) []byte // takes secrets out of what is stored; nil = there are none
	Now    func() time.Time    // nil = time.Now
	Folds  swarm.Folds         //  keeps what is known of a long log; nil = the log is always read
	Loop   string              // the loop that drives the run: it is told who waits in its turn; "" = none is
	Fence  int64               // of the process that drives the run: what only that may tell is not taken from a late one; 0 = any

	mu         sync.Mutex
	read       int64                  // up to which event the log is folded into what follows
	rules      *mail.Rules            //
	growth     *growth.Team           // what agents may ask of the run, and have asked
	plans      []*swarm.Plan          // the one that it began with, and what it grew by
	grown      []int                  // how many plans there were when each growth request had been dealt with
	team       *plan.Team             // where the agents stand
	agents     map[string]*agentState // and what else is to be known of them, and of a person
	over       bool                   // the run has ended
	turns      map[string]*TurnHandle // by agent
	ruleEvents *ruleEvents            // what the stored fold names
	topics     topics                 // what was published
}

// How much mail is shown at once.
const (
	shownMail  = 20       // envelopes, when nobody says how many
	mostMail   = 100      // envelopes
	shownBytes = 64 << 10 // of JSON; one envelope is always shown, however large it is

	urgentMail  = 1000    // envelopes, when one of them is urgent
	urgentBytes = 1 << 20 // of JSON, then
)

const page = 1000 // events that are read at once

// Cursor is up to where the agent's mail is consumed by committed turns.
func (s *Service) Cursor(agent string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return 0, err
	}
	return s.cursor(agent), nil
}

// Unread is the agent's mail after a number, oldest first, as much as a prompt should hold: at most max envelopes and 64 KB, but
// always one if there is any. What is urgent does not wait behind a full inbox: then there are more, up to it.
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
		return items, err // it is too far behind
	}
	return slices.DeleteFunc(longer, func(i mail.Item) bool { return i.Seq > urgent }), nil
}

// Mail is what came into the agent's inbox, oldest first, between two numbers.
func (s *Service) Mail(agent string, in swarm.Inputs) ([]mail.Item, error) {
	items, _, err := s.unread(agent, in.From, math.MaxInt, math.MaxInt)
	return slices.DeleteFunc(items, func(i mail.Item) bool { return i.Seq > in.Upto }), err
}

// unread is at most max envelopes, and no more of them than have room; it also says whether there are more.
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
			// How many digits its time has must not decide what a prompt holds: handed in at another time, it is the same message.
			bytes += len(e.Data) - len(item.CreatedAt.Format(time.RFC3339Nano))
			if len(items) >= max || len(items) > 0 && bytes > room {
				return items, true, nil
			}
			items = append(items, item)
		}
	}
}

// Sent tells in a line each what turns have already done that stands, for the prompt of a turn that is run again after them.
func (s *Service) Sent(turns ...swarm.TurnID) ([]string, error) {
	var lines []string
	for _, turn := range turns {
		start, ok, err := s.Log.Find(swarm.StartKey(turn, 1))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // what never started has sent nothing
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

// describeEvent says what an event did, or "" when it is none that an agent brings about by a tool of ours.
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
