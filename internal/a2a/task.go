package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// A task is a run as A2A sees it: a fold of its log, which can be carried on event by event.
type task struct {
	*view.Collector // its turns, envelopes and artifacts

	id     swarm.RunID
	reader *run.Reader // for texts
	run    *view.Run
	team   swarm.Team
	agent  string // whom the goal was given to
	driven bool   // somebody drove it when it was looked at
	server string // where we are, as the client calls us

	plan    swarm.Plan
	answers map[string]bool // what clients have said to what agents may do only if a person allows it, by letter
	tells   func(*task)     // is told when the client is told where the task stands
}

// goalID is the id of the envelope that holds the goal of a team.
const goalID = "goal"

func newTask(reader *run.Reader) *task {
	return &task{Collector: view.NewCollector(), id: reader.ID, reader: reader, run: view.New(reader.ID), answers: map[string]bool{}}
}

// load folds a run as it is now, or as it was when somebody has had enough. The task can look at the run's texts until the look is closed.
func load(reader *run.Reader, enough func(*task) bool) (*task, error) {
	driven := reader.Driven() // asked first: what its driver wrote before it left is in the fold
	t := newTask(reader)
	for e, err := range swarm.Events(reader, 0) {
		if err == nil {
			err = t.take(e)
		}
		if err != nil {
			return nil, err
		}
		if enough(t) {
			return t, nil
		}
	}
	t.driven = driven
	return t, nil
}

// asItIs and asItBegan are how much of a run is folded: all of it, and what it began with.
func asItIs(*task) bool { return false }
func asItBegan(t *task) bool {
	t.driven = t.agent != "" // by who has begun it
	return t.driven
}

// take carries the fold on.
func (t *task) take(e *swarm.Event) error {
	switch e.Kind {
	case swarm.PlanAdded:
		if p, err := swarm.Body[swarm.Plan](e); err == nil && p.Team != nil {
			t.plan, t.team = p, *p.Team
		}
	case swarm.RunOwned:
		t.driven = true
	case swarm.ApprovalAnswered:
		if a, err := swarm.Body[swarm.ApprovalAnswer](e); err == nil && a.Message != "" {
			t.answers[a.Message] = a.OK
		}
	}
	if err := t.run.Apply(e); err != nil {
		return err
	}
	if err := t.Take(e); err != nil {
		return err
	}
	if last := len(t.Envelopes) - 1; t.agent == "" && last >= 0 && t.Envelopes[last].ID == goalID && t.Envelopes[last].FromNodeID == swarm.User {
		t.agent = t.Envelopes[last].ToNodeID
	}
	return nil
}

// context is the conversation that the task belongs to. The first run of one is its name, unless the client has given it another.
func (t *task) context() string {
	if a := t.run.Origin; a != nil && a.Context != "" {
		return a.Context
	}
	return string(t.id)
}

// info is what every answer says of the task.
func (t *task) info() wire.TaskInfo {
	return wire.TaskInfo{TaskID: wire.TaskID(t.id), ContextID: t.context()}
}

// state is where the task stands.
func (t *task) state() wire.TaskState {
	switch t.run.Status {
	case swarm.Completed:
		return wire.TaskStateCompleted
	case swarm.Cancelled:
		return wire.TaskStateCanceled
	case swarm.Failed:
		if len(t.Turns) == 0 {
			return wire.TaskStateRejected // it was never begun
		}
		return wire.TaskStateFailed
	}
	switch {
	case t.approval().ID != "", len(t.questions()) > 0, t.idles():
		return wire.TaskStateInputRequired
	case len(t.Turns) == 0:
		return wire.TaskStateSubmitted
	}
	return wire.TaskStateWorking
}

// settled says of a state that nothing will change it but the client.
func settled(s wire.TaskState) bool { return s.Terminal() || s == wire.TaskStateInputRequired }

// questions are what agents ask a person and nobody has answered, the oldest first.
func (t *task) questions() (open []view.Envelope) {
	for _, e := range t.Envelopes {
		r := e.Payload.Response
		if e.ToNodeID == swarm.User && r != nil && r.Expectation == "required" && e.Receipt.Answer == "" && e.Receipt.Overdue != view.ReplyOver && e.Receipt.State != view.MailUndeliverable {
			open = append(open, e)
		}
	}
	return open
}

// idles says that everybody has done what there was to do, in a team that waits for more.
func (t *task) idles() bool {
	if t.team.Mode != swarm.InteractiveMode || len(t.Turns) == 0 || t.run.Status != swarm.Running {
		return false
	}
	for _, turn := range t.Turns {
		if turn.Status == swarm.Running {
			return false
		}
	}
	return !slices.ContainsFunc(t.Envelopes, func(e view.Envelope) bool {
		return e.Kind == swarm.Handoff && e.ToNodeID != swarm.User && e.Receipt.State == view.MailStored
	})
}

// approval is what a yes or a no of the client would answer; "" is nothing. One is asked after the other, and before them what is asked in
// words: whoever says yes has to know to what.
func (t *task) approval() (asked view.Approval) {
	if len(t.questions()) > 0 {
		return asked
	}
	if len(t.run.Approvals) > 0 {
		return t.run.Approvals[0]
	}
	return asked
}

// took says whether the task has a message already. With the same id and other words it is refused.
func (t *task) took(l letter) (bool, error) {
	there, same := false, false
	if ok, answered := t.answers[l.id]; answered {
		yes, clear := verdict(l.text)
		there, same = true, clear && yes == ok
	}
	began := t.run.Origin != nil && t.run.Origin.Message == l.message
	for _, e := range t.Envelopes {
		if e.FromNodeID == swarm.User && (e.ID == l.id || began && e.ID == goalID) {
			there, same = true, l.is(e.Envelope, run.Redactor(&t.plan))
		}
	}
	if there && !same {
		return true, invalid("a message with this messageId was sent before, and said something else", "give each message an id of its own")
	}
	return there, nil
}

// tell has it noted that the client is told where the task stands now.
func (t *task) tell() {
	if t.tells != nil {
		t.tells(t)
	}
}

// status is where the task stands, and why.
func (t *task) status() wire.TaskStatus {
	at := t.run.Time.UTC().Truncate(time.Millisecond)
	s := wire.TaskStatus{State: t.state(), Timestamp: &at}
	if text := t.why(s.State); text != "" {
		s.Message = t.says(fmt.Sprintf("%s-status-%d", t.id, t.run.Seq), wire.MessageRoleAgent, text)
	}
	return s
}

// why is what a client should know beside the state.
func (t *task) why(state wire.TaskState) string {
	switch state {
	case wire.TaskStateFailed, wire.TaskStateRejected, wire.TaskStateCanceled:
		return t.reasons()
	case wire.TaskStateInputRequired:
		if a := t.approval(); a.ID != "" {
			return fmt.Sprintf("@%s asks: may it %s? Answer yes or no.", a.Agent, view.DescribeApproval(a.Approval))
		}
		var all []string
		for _, q := range t.questions() {
			all = append(all, q.Payload.Message)
		}
		return strings.Join(all, "\n\n")
	case wire.TaskStateWorking, wire.TaskStateSubmitted:
		switch {
		case t.run.Status == swarm.Paused, t.run.Status == swarm.Pausing:
			return "A person has paused it."
		case t.run.Status == swarm.Interrupted, !t.driven:
			return "Nobody works on it at the moment; it goes on when its server does."
		}
	}
	return ""
}

// reasons are why the run did not end well.
func (t *task) reasons() string {
	all := []string{t.run.Reason}
	for i := range t.run.Len() {
		if one := t.run.At(i); one.Status == swarm.Failed && one.Reason != "" {
			all = append(all, "@"+one.Agent+": "+one.Reason)
		}
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

// says is a message of the task. Its id is made of what it is about, so that it is the same whoever asks.
func (t *task) says(id string, role wire.MessageRole, text string) *wire.Message {
	return &wire.Message{ID: id, Role: role, TaskID: wire.TaskID(t.id), ContextID: t.context(), Parts: wire.ContentParts{wire.NewTextPart(text)}}
}

// whole is the task with everything that came of it. most is how much of the history is wanted; nil = all.
func (t *task) whole(most *int) (*wire.Task, error) {
	artifacts, err := t.artifacts()
	if err != nil {
		return nil, err
	}
	t.tell()
	return &wire.Task{ID: wire.TaskID(t.id), ContextID: t.context(), Status: t.status(), Artifacts: artifacts, History: newest(t.history(), most)}, nil
}

func newest(all []*wire.Message, most *int) []*wire.Message {
	if most == nil || *most >= len(all) {
		return all
	}
	return all[len(all)-max(0, *most):]
}

// history is what was said between the client and the agents.
func (t *task) history() (all []*wire.Message) {
	for _, e := range t.Envelopes {
		id := string(t.id) + "/" + e.Ref()
		switch {
		case e.FromNodeID == swarm.User:
			if e.ID == goalID && t.run.Origin != nil && t.run.Origin.Message != "" {
				id = t.run.Origin.Message
			}
			all = append(all, t.says(id, wire.MessageRoleUser, textOf(e.Envelope)))
		case e.ToNodeID == swarm.User && e.FromNodeID != swarm.Orchestrator:
			all = append(all, t.says(id, wire.MessageRoleAgent, e.Payload.Message))
		}
	}
	return all
}

// outputID is the artifact that holds what the agent said last.
const outputID = wire.ArtifactID("output")

// artifacts are what came of the task: what the agent said last, and what was kept in the run.
func (t *task) artifacts() (all []*wire.Artifact, err error) {
	if text, err := t.output(); err != nil {
		return nil, err
	} else if text != "" {
		all = append(all, t.said(text))
	}
	for _, raw := range t.Artifacts {
		var kept swarm.Artifact
		if json.Unmarshal(raw, &kept) != nil {
			continue
		}
		one, err := t.kept(kept)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// output is what the agent said last and well; while there is nothing of the kind, what it said last.
func (t *task) output() (string, error) {
	one, ok := t.run.Task(t.agent)
	if !ok {
		return "", nil
	}
	hash := one.Good.Hash
	if hash == "" && t.run.Status.Ended() {
		hash = one.Output.Hash
	}
	text, err := t.reader.Text(hash)
	return string(text), err
}

func (t *task) said(text string) *wire.Artifact {
	return &wire.Artifact{ID: outputID, Name: t.agent, Description: "what @" + t.agent + " says", Parts: wire.ContentParts{wire.NewTextPart(text)}}
}

// maxInline is how large an artifact may be that is given whole. A larger one is given as an address.
const maxInline = 1 << 20

// kept is something that an agent has kept in the run.
func (t *task) kept(a swarm.Artifact) (*wire.Artifact, error) {
	one := &wire.Artifact{ID: wire.ArtifactID(a.Ref), Name: a.Name, Description: a.Kind}
	if a.Bytes > maxInline {
		one.Parts = wire.ContentParts{wire.NewFileURLPart(wire.URL(t.server+"/api/v1/runs/"+string(t.id)+"/artifacts/"+strings.TrimPrefix(a.Ref, "artifact://")), "application/octet-stream")}
		return one, nil
	}
	text, err := t.reader.Text(a.Hash)
	if err != nil {
		return nil, err
	}
	part := wire.NewRawPart(text)
	if utf8.Valid(text) {
		part = wire.NewTextPart(string(text))
	}
	part.Filename = a.Name
	one.Parts = wire.ContentParts{part}
	return one, nil
}

// textOf is what a client's message said.
func textOf(e swarm.Envelope) string {
	var more structuredPayload
	if json.Unmarshal(e.Payload.Structured, &more) == nil && more.Text != "" {
		return more.Text
	}
	return e.Payload.Message
}
