package view

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
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
	Artifacts []json.RawMessage `json:"artifacts"`
}

// A Report is everything there is to show of a run: the shape of `swarm show --json`.
type Report struct {
	Picture
	Details
}

// JSON is the report as `swarm show --json` prints it.
func (p Picture) JSON(d Details) ([]byte, error) {
	return json.MarshalIndent(Report{p, d}, "", "  ")
}

// A Turn is one call of an agent's provider.
type Turn struct {
	ID        string          `json:"id"`
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
	Kept      bool            `json:"kept,omitempty"`  // it was not done now, but in the run that this one tries again
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

// An Envelope is a stored envelope and what became of it.
type Envelope struct {
	swarm.Envelope
	Receipt Receipt `json:"receipt"`
}

// A Receipt says how far an envelope has come.
type Receipt struct {
	Seq    int64      `json:"seq"`
	State  string     `json:"state"`            // stored, injected, answered or undeliverable
	Turn   string     `json:"turn,omitempty"`   // the one it was injected into
	Prompt swarm.Hash `json:"prompt,omitempty"` // and its prompt, when it stood there; else the agent read it by a tool
	Answer string     `json:"answer,omitempty"` // the envelope that answers it
	Reason string     `json:"reason,omitempty"` // why it is undeliverable
}

// How far an envelope can have come. That it was accepted is the same as that it is stored.
const (
	MailStored        = "stored"
	MailInjected      = "injected"
	MailAnswered      = "answered"
	MailUndeliverable = "undeliverable"
)

// Collect reads a log once for its details. Turns are in the order of their first start.
func Collect(events iter.Seq2[swarm.Event, error]) (Details, error) {
	c := collector{Details: Details{Turns: []Turn{}, Envelopes: []Envelope{}, Artifacts: []json.RawMessage{}}, at: map[string]int{}, boxes: map[string][]int{}}
	for e, err := range events {
		if err == nil {
			err = c.take(&e)
		}
		if err != nil {
			return Details{}, err
		}
	}
	return c.Details, nil
}

type collector struct {
	Details
	at    map[string]int   // turns by id
	boxes map[string][]int // envelopes by receiver
}

func (c *collector) take(e *swarm.Event) error {
	var err error
	switch e.Kind {
	case swarm.TurnStarted:
		var s swarm.TurnStart
		if err = json.Unmarshal(e.Data, &s); err == nil {
			t := c.turn(e)
			t.Iteration, t.Attempt, t.Starts, t.Retried = s.Iteration, s.Attempt, max(s.Start, t.Starts+1), s.Start > 1
			t.Provider, t.Model, t.Session, t.Prompt, t.Bytes, t.Spans = s.Provider, s.Model, s.Session, s.Prompt, s.Bytes, s.Spans
			t.Started, t.Inputs, t.Sent = e.Time, s.Inputs, s.Sent
			t.Tools, t.Files = nil, nil
			if t.First == "" {
				t.First = s.Prompt
			}
		}
	case swarm.TurnTool:
		var u swarm.ToolUse
		if err = json.Unmarshal(e.Data, &u); err == nil {
			t := c.turn(e)
			t.Tools = append(t.Tools, u)
		}
	case swarm.TurnFile:
		var f swarm.FileChange
		if err = json.Unmarshal(e.Data, &f); err == nil {
			t := c.turn(e)
			t.Files = append(t.Files, f.Path)
		}
	case swarm.TurnEnded:
		var end swarm.CallEnd
		if err = json.Unmarshal(e.Data, &end); err == nil {
			c.turn(e).end(e, &end)
		}
	case swarm.HandoffStored:
		var env swarm.Envelope
		if err = json.Unmarshal(e.Data, &env); err == nil {
			c.answers(e, &env)
			c.Envelopes = append(c.Envelopes, Envelope{env, Receipt{Seq: e.Seq, State: MailStored}})
			c.boxes[env.ToNodeID] = append(c.boxes[env.ToNodeID], len(c.Envelopes)-1)
		}
	case swarm.HandoffConsumed:
		var in swarm.Inputs
		if err = json.Unmarshal(e.Data, &in); err == nil {
			c.injected(e, in)
		}
	case swarm.HandoffReturned:
		var r swarm.Return
		if err = json.Unmarshal(e.Data, &r); err == nil {
			c.returned(func(env *Envelope) bool { return env.ID == r.ID }, r.Reason)
		}
	case swarm.RunEnded:
		c.returned(func(env *Envelope) bool { return env.Receipt.State == MailStored }, "run ended")
	case swarm.ArtifactStored:
		c.Artifacts = append(c.Artifacts, append(json.RawMessage(nil), e.Data...))
	}
	if err != nil {
		return &swarm.Error{Kind: swarm.Storage, Msg: swarm.Errorf("", "event %d (%s) cannot be read", e.Seq, e.Kind).Msg, Err: err}
	}
	return nil
}

// turn is the turn that an event is about; the first event makes it.
func (c *collector) turn(e *swarm.Event) *Turn {
	i, ok := c.at[e.Turn]
	if !ok {
		i = len(c.Turns)
		c.at[e.Turn] = i
		t := Turn{ID: e.Turn, Task: e.Task, Agent: e.Agent, Status: swarm.Running}
		_, t.Iteration = plan.OfTurn(e.Turn) // a turn that was kept from another run has no start that tells them
		t.Attempt, _ = strconv.Atoi(e.Turn[strings.LastIndexByte(e.Turn, '/')+1:])
		c.Turns = append(c.Turns, t)
	}
	return &c.Turns[i]
}

func (t *Turn) end(e *swarm.Event, end *swarm.CallEnd) {
	t.Ended, t.Kind, t.Reason, t.Hint, t.Exit = e.Time, end.Kind, end.Reason, end.Hint, end.Exit
	t.Usage, t.Verdicts, t.Kept = end.Usage, end.Verdicts, end.Kept
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

// between are the envelopes in a receiver's inbox after a number and up to another.
func (c *collector) between(agent string, in swarm.Inputs) []int {
	box := c.boxes[agent]
	at := func(seq int64) int {
		n, _ := slices.BinarySearchFunc(box, seq+1, func(i int, seq int64) int { return cmp.Compare(c.Envelopes[i].Receipt.Seq, seq) })
		return n
	}
	return box[at(in.From):max(at(in.From), at(in.Upto))]
}

// injected marks the envelopes that a turn has consumed.
func (c *collector) injected(e *swarm.Event, in swarm.Inputs) {
	t := c.turn(e)
	for _, i := range c.between(e.Agent, in) {
		r := &c.Envelopes[i].Receipt
		if r.Turn = e.Turn; r.State == MailStored {
			r.State = MailInjected
		}
		if r.Seq <= t.Inputs.Upto {
			r.Prompt = t.Prompt
		}
	}
}

// answers marks what an envelope answers: those from its receiver that stood in the prompt of the turn which sent it.
func (c *collector) answers(e *swarm.Event, env *swarm.Envelope) {
	n, ok := c.at[e.Turn]
	if !ok {
		return
	}
	for _, i := range c.between(env.FromNodeID, c.Turns[n].Inputs) {
		if asked := &c.Envelopes[i]; asked.FromNodeID == env.ToNodeID && asked.Receipt.Answer == "" {
			asked.Receipt.State, asked.Receipt.Answer = MailAnswered, env.ID
		}
	}
}

// returned marks the envelopes that nobody will read.
func (c *collector) returned(which func(*Envelope) bool, reason string) {
	for i := range c.Envelopes {
		if env := &c.Envelopes[i]; which(env) {
			env.Receipt.State, env.Receipt.Reason = MailUndeliverable, reason
		}
	}
}
