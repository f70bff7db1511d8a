package view

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// Details is what grows with the log: it is collected when somebody asks.
type Details struct {
	Turns     []Turn            `json:"turns"`
	Envelopes []Envelope        `json:"envelopes"`
	Topics    []Topic           `json:"topics"` // in the order in which they were first published on
	Artifacts []json.RawMessage `json:"artifacts"`
}

// A Report is everything there is to show of a run: the shape of `swarm show --json`.
type Report struct {
	Picture
	Details
}

// A Topic is what was published under one name, oldest first.
type Topic struct {
	Topic   string       `json:"topic"`
	Entries []TopicEntry `json:"entries"`
}

// A TopicEntry is one finding: who published it, and in which turn.
type TopicEntry struct {
	Seq   int64           `json:"seq"`
	Time  time.Time       `json:"time"`
	Agent string          `json:"agent"`          // or user
	Turn  swarm.TurnID    `json:"turn,omitempty"` // none = a person published it
	Data  json.RawMessage `json:"data"`
}

// Text is the entry for reading.
func (e TopicEntry) Text() string { return swarm.TopicEntry{Data: e.Data}.Text() }

// An Artifact is bytes that somebody keeps for others: who, and in which turn.
type Artifact struct {
	swarm.Artifact
	Agent string       `json:"agent,omitempty"`
	Turn  swarm.TurnID `json:"turn,omitempty"`
	Seq   int64        `json:"seq"`
	Time  time.Time    `json:"time"`
}

// A Turn is one call of an agent's provider.
type Turn struct {
	ID        swarm.TurnID    `json:"id"`
	Task      string          `json:"task"`
	Agent     string          `json:"agent"`
	Iteration int             `json:"iteration"`
	Attempt   int             `json:"attempt"`
	Starts    int             `json:"starts"`            // more than 1: it was cut by a crash and run again
	Retried   bool            `json:"retried,omitempty"` // the same, said as the contract says it
	Status    swarm.Status    `json:"status"`            // running, completed, failed or cancelled; interrupted when nobody drives the run
	Kind      swarm.ErrorKind `json:"kind,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Hint      string          `json:"hint,omitempty"`
	Exit      int             `json:"exit,omitempty"`
	Provider  string          `json:"provider"`
	Model     string          `json:"model,omitempty"`
	Session   string          `json:"session,omitempty"`
	Prompt    swarm.Hash      `json:"prompt"`
	First     swarm.Hash      `json:"-"` // the prompt of its first start, which tells nothing of what was already sent
	Bytes     int             `json:"prompt_bytes"`
	Spans     []swarm.Span    `json:"spans,omitempty"`
	Output    Output          `json:"output,omitzero"`
	Usage     swarm.Usage     `json:"usage,omitzero"`
	Started   time.Time       `json:"started,omitzero"` // the last start
	Ended     time.Time       `json:"ended,omitzero"`
	Verdicts  []swarm.Verdict `json:"verdicts,omitempty"`
	Tools     []swarm.ToolUse `json:"tools,omitempty"`
	Files     []string        `json:"files,omitempty"` // that it changed, as its program tells it
	Inputs    swarm.Inputs    `json:"inputs,omitzero"` // the mail in its prompt
	Sent      swarm.Hash      `json:"sent,omitempty"`  // what of the prompt was new to its session, and all that was sent
	// Findings are what is strange about it.
	Findings []swarm.Finding `json:"findings,omitempty"`
	// Injected is mail that it was given between two tools.
	Injected    []Aside `json:"injected,omitempty"`
	Done        bool    `json:"done,omitempty"`   // its agent has reported that its work is done
	Report      string  `json:"report,omitempty"` // and what came of it
	Topics      int64   `json:"-"`                // the newest topic entry that its prompt was made with
	Answered    int     `json:"-"`                // how many growth requests had been dealt with when it began
	CarriedOver bool    `json:"kept,omitempty"`   // it was not done now, but in the run that this one tries again
}

// An Aside is mail that a turn was given between two tools, and when.
type Aside struct {
	swarm.Injection
	Time time.Time `json:"time"`
}

// Took is how long the turn took, or has taken until now.
func (t *Turn) Took(now time.Time) time.Duration {
	if t.Started.IsZero() {
		return 0
	}
	if !t.Ended.IsZero() {
		now = t.Ended
	}
	return max(0, now.Sub(t.Started))
}

// Collect reads a log once for its details. Turns are in the order of their first start.
func Collect(events iter.Seq2[*swarm.Event, error]) (Details, error) {
	c := NewCollector()
	for e, err := range events {
		if err == nil {
			err = c.Take(e)
		}
		if err != nil {
			return Details{}, err
		}
	}
	return c.Details, nil
}

// A Collector collects a run's details event by event. Each costs the same, however many there are.
type Collector struct {
	Details
	at      map[swarm.TurnID]int // turns by id
	boxes   map[string][]int     // envelopes by receiver
	ids     map[string]int       // envelopes by id
	mail    []plan.Mail          // what is to be known of each envelope
	owed    []int                // envelopes that want a reply, and have none
	topics  map[string]int       // by name
	over    bool                 // the run has ended
	changed []int                // envelopes that are new, or that something became of
}

// NewCollector has seen nothing yet.
func NewCollector() *Collector {
	return &Collector{Details: Details{Turns: []Turn{}, Envelopes: []Envelope{}, Topics: []Topic{}, Artifacts: []json.RawMessage{}},
		at: map[swarm.TurnID]int{}, boxes: map[string][]int{}, ids: map[string]int{}, topics: map[string]int{}}
}

// Take takes the next event.
func (c *Collector) Take(e *swarm.Event) error {
	switch e.Kind {
	case swarm.TurnStarted:
		return swarm.UseBody(e, func(s swarm.TurnStart) { c.turn(e).start(e, &s) })
	case swarm.TurnTool:
		return swarm.UseBody(e, func(u swarm.ToolUse) {
			t := c.turn(e)
			t.Tools = append(t.Tools, u)
		})
	case swarm.TurnFile:
		return swarm.UseBody(e, func(f swarm.FileChange) {
			t := c.turn(e)
			t.Files = append(t.Files, f.Path)
		})
	case swarm.TurnEnded:
		return swarm.UseBody(e, func(end swarm.CallEnd) { c.turn(e).end(e, &end) })
	case swarm.ArtifactStored:
		return swarm.UseBody(e, func(a swarm.Artifact) {
			c.Artifacts = append(c.Artifacts, swarm.Encode(Artifact{Artifact: a, Agent: e.Agent, Turn: e.Turn, Seq: e.Seq, Time: e.Time}))
		})
	case swarm.TopicPublished:
		return swarm.UseBody(e, func(entry swarm.TopicEntry) {
			c.publish(entry.Topic, TopicEntry{Seq: e.Seq, Time: e.Time, Agent: e.Agent, Turn: e.Turn, Data: entry.Data})
		})
	}
	return c.takeMail(e)
}

// publish adds an entry to its topic; the first one makes it.
func (c *Collector) publish(topic string, entry TopicEntry) {
	i, ok := c.topics[topic]
	if !ok {
		i = len(c.Topics)
		c.topics[topic] = i
		c.Topics = append(c.Topics, Topic{Topic: topic})
	}
	c.Topics[i].Entries = append(c.Topics[i].Entries, entry)
}

// turn is the turn that an event is about; the first event makes it.
func (c *Collector) turn(e *swarm.Event) *Turn {
	i, ok := c.at[e.Turn]
	if !ok {
		i = len(c.Turns)
		c.at[e.Turn] = i
		t := Turn{ID: e.Turn, Task: e.Task, Agent: e.Agent, Status: swarm.Running}
		_, t.Iteration = plan.OfTurn(e.Turn) // a turn that was kept from another run has no start that tells them
		t.Attempt, _ = strconv.Atoi(string(e.Turn[strings.LastIndexByte(string(e.Turn), '/')+1:]))
		c.Turns = append(c.Turns, t)
	}
	return &c.Turns[i]
}

func (t *Turn) start(e *swarm.Event, s *swarm.TurnStart) {
	t.Iteration, t.Attempt, t.Starts, t.Retried = s.Iteration, s.Attempt, max(s.Start, t.Starts+1), s.Start > 1
	t.Provider, t.Model, t.Session, t.Prompt, t.Bytes, t.Spans = s.Provider, s.Model, s.Session, s.Prompt, s.Bytes, s.Spans
	t.Started, t.Inputs, t.Sent = e.Time, s.Inputs, s.Sent
	t.Tools, t.Files, t.Injected = nil, nil, nil
	if t.First == "" {
		t.First, t.Answered, t.Topics = s.Prompt, s.Answered, s.Topics
	}
}

func (t *Turn) end(e *swarm.Event, end *swarm.CallEnd) {
	t.Ended, t.Kind, t.Reason, t.Hint, t.Exit = e.Time, end.Kind, end.Reason, end.Hint, end.Exit
	t.Usage, t.Verdicts, t.CarriedOver, t.Findings = end.Usage, end.Verdicts, end.CarriedOver, end.Findings
	t.Done, t.Report = end.Done, end.Report
	if end.Session != "" {
		t.Session = end.Session
	}
	if end.Output != "" {
		t.Output = Output{Hash: end.Output, Turn: e.Turn, Bytes: end.Bytes}
	}
	switch end.Status {
	case swarm.CallOK:
		t.Status = swarm.Completed
	case swarm.CallCut:
		t.Status = swarm.Cancelled
	default:
		t.Status = swarm.Failed
	}
}
