package view

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// Details grow with the log, so they are collected only on request.
type Details struct {
	Turns     []Turn            `json:"turns"`
	Envelopes []Envelope        `json:"envelopes"`
	Topics    []Topic           `json:"topics"` // in the order of their first entries
	Artifacts []json.RawMessage `json:"artifacts"`
	Actions   []Action          `json:"-"` // [NewReport] has them in the run
}

// A Report is everything that can be shown of a run: the shape of `swarm show --json`.
type Report struct {
	Picture
	Details
}

// Older counts the entries that lists do not have, because only the newest were asked for.
type Older struct {
	Turns     int `json:"turns,omitempty"`
	Envelopes int `json:"envelopes,omitempty"`
	Entries   int `json:"entries,omitempty"` // of topics
	Artifacts int `json:"artifacts,omitempty"`
}

// Trim keeps the newest entries of each list, and of topics those of all together. Turns that have
// not ended and questions to a person that have no answer stay, however old they are. It returns
// what it has left out; nil = nothing.
func (d *Details) Trim(last int) *Older {
	var o Older
	d.Turns, o.Turns = newest(d.Turns, last, func(t Turn) bool { return !t.Status.Ended() })
	d.Envelopes, o.Envelopes = newest(d.Envelopes, last, func(e Envelope) bool { return e.Receipt.State != MailAnswered && AsksPerson(&e.Envelope) })
	d.Artifacts, o.Artifacts = newest(d.Artifacts, last, func(json.RawMessage) bool { return false })
	var entries []int64
	for _, t := range d.Topics {
		for _, e := range t.Entries {
			entries = append(entries, e.Seq)
		}
	}
	if o.Entries = max(0, len(entries)-last); o.Entries > 0 {
		slices.Sort(entries)
		for i := range d.Topics {
			t := &d.Topics[i]
			t.Entries = slices.DeleteFunc(t.Entries, func(e TopicEntry) bool { return e.Seq < entries[o.Entries] })
		}
		d.Topics = slices.DeleteFunc(d.Topics, func(t Topic) bool { return len(t.Entries) == 0 })
	}
	if o == (Older{}) {
		return nil
	}
	return &o
}

// newest returns the last entries of a list and those before them that must stay, and how many it
// has left out.
func newest[E any](list []E, last int, stays func(E) bool) ([]E, int) {
	cut := max(0, len(list)-last)
	kept := slices.DeleteFunc(list[:cut:cut], func(e E) bool { return !stays(e) })
	return append(kept, list[cut:]...), cut - len(kept)
}

// A Topic is its entries, oldest first.
type Topic struct {
	Topic   string       `json:"topic"`
	Entries []TopicEntry `json:"entries"`
}

// A TopicEntry is one finding, with the agent and the turn that published it.
type TopicEntry struct {
	Seq   int64           `json:"seq"`
	Time  time.Time       `json:"time"`
	Agent string          `json:"agent"`          // or user
	Turn  swarm.TurnID    `json:"turn,omitempty"` // "" = a person published it
	Data  json.RawMessage `json:"data"`
}

// Text returns the entry for reading.
func (e TopicEntry) Text() string { return swarm.TopicEntry{Data: e.Data}.Text() }

// An Artifact is stored bytes, with the agent and the turn that stored them.
type Artifact struct {
	swarm.Artifact
	Agent string       `json:"agent,omitempty"`
	Turn  swarm.TurnID `json:"turn,omitempty"`
	Seq   int64        `json:"seq"`
	Time  time.Time    `json:"time"`
}

// A Turn is one call of an agent's provider.
type Turn struct {
	ID        swarm.TurnID `json:"id"`
	Task      string       `json:"task"`
	Agent     string       `json:"agent"`
	Iteration int          `json:"iteration"`
	Attempt   int          `json:"attempt"`
	Starts    int          `json:"starts"`            // more than 1: a crash cut it, and it was started again
	Retried   bool         `json:"retried,omitempty"` // the same as a flag, as the contract has it, of the turn or of its action
	// Status is running, completed, failed or cancelled. It is interrupted if the run has no
	// driver.
	Status   swarm.Status    `json:"status"`
	Kind     swarm.ErrorKind `json:"kind,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Hint     string          `json:"hint,omitempty"`
	Exit     int             `json:"exit,omitempty"`
	Provider string          `json:"provider"`
	Model    string          `json:"model,omitempty"`
	Session  string          `json:"session,omitempty"`
	Prompt   swarm.Hash      `json:"prompt"`
	First    swarm.Hash      `json:"-"` // the prompt of its first start, without the list of what was already sent
	Bytes    int             `json:"prompt_bytes"`
	Spans    []swarm.Span    `json:"spans,omitempty"`
	Output   Output          `json:"output,omitzero"`
	Usage    swarm.Usage     `json:"usage,omitzero"`
	Started  time.Time       `json:"started,omitzero"` // the last start
	Ended    time.Time       `json:"ended,omitzero"`
	Verdicts []swarm.Verdict `json:"verdicts,omitempty"`
	Tools    []swarm.ToolUse `json:"tools,omitempty"`
	Files    []string        `json:"files,omitempty"` // the files that it changed, as its program reports
	Inputs   swarm.Inputs    `json:"inputs,omitzero"` // the mail in its prompt
	Sent     swarm.Hash      `json:"sent,omitempty"`  // what was sent if it is not the prompt as it is: the part that is new to its session, or the prompt in another order
	// History is what was sent before it, if the log keeps the session.
	History  *swarm.History  `json:"history,omitempty"`
	Exchange *swarm.Exchange `json:"-"` // what the turn has added to that session
	// Findings are suspicious behaviour in the turn.
	Findings []swarm.Finding `json:"findings,omitempty"`
	// Injected is the mail that it got between two tool calls.
	Injected []Aside `json:"injected,omitempty"`
	Done     bool    `json:"done,omitempty"`   // its agent reports that its work is done
	Report   string  `json:"report,omitempty"` // the agent's report with it
	// Action is what the agent of a swarm did in this iteration, and Result what came of it.
	Action *swarm.Action `json:"action,omitempty"`
	// ActionStarts is how often the action was started. More than 1 means that a crash cut it.
	ActionStarts int           `json:"action_starts,omitempty"`
	Result       *ActionResult `json:"result,omitempty"`
	Desk         *Desk         `json:"desk,omitempty"` // where it was done by files; nil = it was not
	Topics       int64         `json:"-"`              // the newest topic entry in its prompt
	Answered     int           `json:"-"`              // how many growth requests were answered before it began
	CarriedOver  bool          `json:"kept,omitempty"` // it was not done in this run, but in the run that this one retries
}

// A Desk is the folder through which a turn was done, and what the worker delivered there.
type Desk struct {
	Dir       string                `json:"dir"`
	Worker    swarm.Worker          `json:"worker"`
	Status    *swarm.DeskStatus     `json:"status,omitempty"`    // as the worker has written it last; nil = not yet
	Delivered *swarm.DeskCollection `json:"delivered,omitempty"` // nil = nothing was collected
}

// desk returns the turn's desk.
func (t *Turn) desk() *Desk {
	if t.Desk == nil {
		t.Desk = &Desk{}
	}
	return t.Desk
}

// Did says what the agent of a swarm did in this iteration, and whether it failed.
func (t *Turn) Did() string {
	if t.Result != nil && t.Result.Status != swarm.CallOK {
		return DescribeAction(t.Action) + ", which failed" + excerpt.Reason(excerpt.OneLine(t.Result.Reason))
	}
	return DescribeAction(t.Action)
}

// An ActionResult is what the action of a swarm's iteration gave.
type ActionResult struct {
	Status swarm.CallState `json:"status"`
	Reason string          `json:"reason,omitempty"` // why it failed
	Output Output          `json:"output,omitzero"`
}

// An Aside is mail that a turn got between two tool calls, and when.
type Aside struct {
	swarm.Injection
	Time time.Time `json:"time"`
}

// Took returns how long the turn took, or has taken until now.
func (t *Turn) Took(now time.Time) time.Duration {
	if t.Started.IsZero() {
		return 0
	}
	if !t.Ended.IsZero() {
		now = t.Ended
	}
	return max(0, now.Sub(t.Started))
}

// Collect reads a log once and returns its details. Turns are in the order of their first start.
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

// A Collector collects a run's details event by event. The cost of an event does not depend on how
// many came before.
type Collector struct {
	Details
	at      map[swarm.TurnID]int // turns by id
	boxes   map[string][]int     // envelopes by receiver
	ids     map[string]int       // envelopes by id
	mail    []plan.Mail          // the facts of each envelope, by its index
	owed    []int                // envelopes that require a reply and have none
	topics  map[string]int       // by name
	over    bool                 // the run has ended
	changed []int                // envelopes that are new or changed since Changed was called
}

// NewCollector returns a collector that has seen no event.
func NewCollector() *Collector {
	return &Collector{Details: Details{Turns: []Turn{}, Envelopes: []Envelope{}, Topics: []Topic{}, Artifacts: []json.RawMessage{}},
		at: map[swarm.TurnID]int{}, boxes: map[string][]int{}, ids: map[string]int{}, topics: map[string]int{}}
}

// Take adds the next event.
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
	case swarm.ActionStarted:
		return swarm.UseBody(e, func(s swarm.ActionStart) {
			t := c.turn(e)
			t.ActionStarts, t.Retried = max(t.ActionStarts, s.Start), t.Retried || s.Start > 1
		})
	case swarm.ActionEnded:
		return swarm.UseBody(e, func(end swarm.CallEnd) {
			c.turn(e).Result = &ActionResult{end.Status, end.Reason, Output{Hash: end.Output, Turn: e.Turn, Bytes: end.Bytes}}
		})
	case swarm.ArtifactStored:
		return swarm.UseBody(e, func(a swarm.Artifact) {
			c.Artifacts = append(c.Artifacts, swarm.Encode(Artifact{Artifact: a, Agent: e.Agent, Turn: e.Turn, Seq: e.Seq, Time: e.Time}))
		})
	case swarm.DeskOpened:
		return swarm.UseBody(e, func(o swarm.DeskOpening) {
			c.archive(e, o)
			d := c.turn(e).desk()
			d.Dir, d.Worker = o.Dir, o.Worker
		})
	case swarm.DeskChanged:
		return swarm.UseBody(e, func(s swarm.DeskStatus) { c.turn(e).desk().Status = &s })
	case swarm.DeskCollected:
		return swarm.UseBody(e, func(d swarm.DeskCollection) { c.turn(e).desk().Delivered = &d })
	case swarm.TopicPublished:
		return swarm.UseBody(e, func(entry swarm.TopicEntry) {
			c.publish(entry.Topic, TopicEntry{Seq: e.Seq, Time: e.Time, Agent: e.Agent, Turn: e.Turn, Data: entry.Data})
		})
	case swarm.ApprovalAnswered, swarm.Control:
		did, err := actionOf(e)
		if err == nil {
			c.Actions = append(c.Actions, did)
		}
		return err
	}
	return c.takeMail(e)
}

// publish adds an entry to its topic, and makes the topic if it is the first.
func (c *Collector) publish(topic string, entry TopicEntry) {
	i, ok := c.topics[topic]
	if !ok {
		i = len(c.Topics)
		c.topics[topic] = i
		c.Topics = append(c.Topics, Topic{Topic: topic})
	}
	c.Topics[i].Entries = append(c.Topics[i].Entries, entry)
}

// turn returns the turn that an event is about, and makes it if the event is its first.
func (c *Collector) turn(e *swarm.Event) *Turn {
	i, ok := c.at[e.Turn]
	if !ok {
		i = len(c.Turns)
		c.at[e.Turn] = i
		t := Turn{ID: e.Turn, Task: e.Task, Agent: e.Agent, Status: swarm.Running}
		_, t.Iteration = plan.OfTurn(e.Turn) // a carried over turn has no start with these numbers
		t.Attempt, _ = strconv.Atoi(string(e.Turn[strings.LastIndexByte(string(e.Turn), '/')+1:]))
		c.Turns = append(c.Turns, t)
	}
	return &c.Turns[i]
}

// archive records the new path of the desk of the task's earlier turns, if this turn has a new desk
// in its place.
func (c *Collector) archive(e *swarm.Event, o swarm.DeskOpening) {
	for i := len(c.Turns) - 1; i >= 0 && o.Archived != ""; i-- {
		t := &c.Turns[i]
		if t.Task != e.Task || t.ID == e.Turn || t.Desk == nil {
			continue
		}
		if t.Desk.Dir != o.Dir {
			return // an earlier one, which was archived before
		}
		t.Desk.Dir = o.Archived
	}
}

func (t *Turn) start(e *swarm.Event, s *swarm.TurnStart) {
	t.Iteration, t.Attempt, t.Starts, t.Retried = s.Iteration, s.Attempt, max(s.Start, t.Starts+1), s.Start > 1
	t.Provider, t.Model, t.Session, t.Prompt, t.Bytes, t.Spans = s.Provider, s.Model, s.Session, s.Prompt, s.Bytes, s.Spans
	t.Started, t.Inputs, t.Sent, t.History = e.Time, s.Inputs, s.Sent, s.History
	t.Tools, t.Files, t.Injected = nil, nil, nil
	if t.First == "" {
		t.First, t.Answered, t.Topics = s.Prompt, s.Answered, s.Topics
	}
}

func (t *Turn) end(e *swarm.Event, end *swarm.CallEnd) {
	t.Ended, t.Kind, t.Reason, t.Hint, t.Exit = e.Time, end.Kind, end.Reason, end.Hint, end.Exit
	t.Usage, t.Verdicts, t.CarriedOver, t.Findings = end.Usage, end.Verdicts, end.CarriedOver, end.Findings
	t.Done, t.Report, t.Action, t.Exchange = end.Done, end.Report, end.Action, end.Exchange
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
