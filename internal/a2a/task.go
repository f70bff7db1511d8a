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

// A task is a run as A2A sees it: a fold of its log. Each request folds its own, and one goroutine
// uses it, so there is no mutex.
type task struct {
	*view.Collector // its turns, envelopes and artifacts

	id     swarm.RunID
	reader *run.Reader // for texts
	run    *view.Run
	team   swarm.Team
	agent  string // the agent that got the goal
	driven bool   // a process drove the run when it was folded
	server string // the URL of this server, as the client knows it

	plan    swarm.Plan
	answers map[string]bool // the clients' answers to approvals, by the id of the letter
	onShown func(*task)     // called when the client is shown the state of the task
}

// goalID is the id of the envelope that holds the goal of a team.
const goalID = "goal"

func newTask(reader *run.Reader) *task {
	return &task{Collector: view.NewCollector(), id: reader.ID, reader: reader, run: view.New(reader.ID), answers: map[string]bool{}}
}

// load folds a run up to its last event, or until enough returns true. The task reads texts through
// the reader, so it can be used until the reader is closed.
func load(reader *run.Reader, enough func(*task) bool) (*task, error) {
	driven := reader.Driven() // before the fold: the events of a driver that leaves in between are in it
	t := newTask(reader)
	for e, err := range swarm.Events(reader, 0) {
		if err == nil {
			err = t.apply(e)
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

// asItIs folds the whole run. asItBegan folds it up to its goal.
func asItIs(*task) bool { return false }
func asItBegan(t *task) bool {
	t.driven = t.agent != "" // by the process that started it
	return t.driven
}

// apply adds an event to the fold.
func (t *task) apply(e *swarm.Event) error {
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

// context is the contextId of the task's conversation: the client's, or else the id of its first
// run.
func (t *task) context() string {
	if a := t.run.Origin; a != nil && a.Context != "" {
		return a.Context
	}
	return string(t.id)
}

// info is the part of every answer that identifies the task.
func (t *task) info() wire.TaskInfo {
	return wire.TaskInfo{TaskID: wire.TaskID(t.id), ContextID: t.context()}
}

// state translates the state of the run into a state of the protocol.
func (t *task) state() wire.TaskState {
	switch t.run.Status {
	case swarm.Completed:
		return wire.TaskStateCompleted
	case swarm.Cancelled:
		return wire.TaskStateCanceled
	case swarm.Failed:
		if len(t.Turns) == 0 {
			return wire.TaskStateRejected // it failed before its first turn
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

// settled reports whether only the client can change this state.
func settled(s wire.TaskState) bool { return s.Terminal() || s == wire.TaskStateInputRequired }

// questions lists the messages to the person that still need a reply, oldest first.
func (t *task) questions() (open []view.Envelope) {
	for _, e := range t.Envelopes {
		r := e.Payload.Response
		if e.ToNodeID == swarm.User && r != nil && r.Expectation == "required" && e.Receipt.Answer == "" && e.Receipt.Overdue != view.ReplyOver && e.Receipt.State != view.MailUndeliverable {
			open = append(open, e)
		}
	}
	return open
}

// idles reports whether a team in INTERACTIVE mode has no running turn and no unread mail.
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

// approval is the approval that a yes or no of the client would answer; its ID is "" if there is
// none. Clients see one approval at a time, and questions in words come first. Otherwise a yes
// would be ambiguous.
func (t *task) approval() (asked view.Approval) {
	if len(t.questions()) > 0 {
		return asked
	}
	if len(t.run.Approvals) > 0 {
		return t.run.Approvals[0]
	}
	return asked
}

// has reports whether the task has a message already. The same id with another text is an error.
func (t *task) has(l letter) (bool, error) {
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

// noteShown records that the client is shown the current state of the task.
func (t *task) noteShown() {
	if t.onShown != nil {
		t.onShown(t)
	}
}

// status is the state of the task, with a message that explains it.
func (t *task) status() wire.TaskStatus {
	at := t.run.Time.UTC().Truncate(time.Millisecond)
	s := wire.TaskStatus{State: t.state(), Timestamp: &at}
	if text := t.why(s.State); text != "" {
		s.Message = t.message(fmt.Sprintf("%s-status-%d", t.id, t.run.Seq), wire.MessageRoleAgent, text)
	}
	return s
}

// why explains a state: the reason of a failure, an open question, or why no agent works.
func (t *task) why(state wire.TaskState) string {
	switch state {
	case wire.TaskStateFailed, wire.TaskStateRejected, wire.TaskStateCanceled:
		return t.reasons()
	case wire.TaskStateInputRequired:
		if a := t.approval(); a.ID != "" {
			return fmt.Sprintf("@%s asks: %s Answer yes or no.", a.Agent, view.AskApproval("it", a.Approval))
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

// reasons lists why the run and its tasks failed.
func (t *task) reasons() string {
	all := []string{t.run.Reason}
	for i := range t.run.Len() {
		if one := t.run.At(i); one.Status == swarm.Failed && one.Reason != "" {
			all = append(all, "@"+one.Agent+": "+one.Reason)
		}
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

// message makes a message of the task. The caller derives its id from the log, so that every client
// and every server gets the same one.
func (t *task) message(id string, role wire.MessageRole, text string) *wire.Message {
	return &wire.Message{ID: id, Role: role, TaskID: wire.TaskID(t.id), ContextID: t.context(), Parts: wire.ContentParts{wire.NewTextPart(text)}}
}

// whole is the task with its artifacts and history. Most limits the history; nil = all of it.
func (t *task) whole(most *int) (*wire.Task, error) {
	artifacts, err := t.artifacts()
	if err != nil {
		return nil, err
	}
	t.noteShown()
	return &wire.Task{ID: wire.TaskID(t.id), ContextID: t.context(), Status: t.status(), Artifacts: artifacts, History: newest(t.history(), most)}, nil
}

func newest(all []*wire.Message, most *int) []*wire.Message {
	if most == nil || *most >= len(all) {
		return all
	}
	return all[len(all)-max(0, *most):]
}

// history lists the messages between the client and the agents.
func (t *task) history() (all []*wire.Message) {
	for _, e := range t.Envelopes {
		id := string(t.id) + "/" + e.Ref()
		switch {
		case e.FromNodeID == swarm.User:
			if e.ID == goalID && t.run.Origin != nil && t.run.Origin.Message != "" {
				id = t.run.Origin.Message
			}
			all = append(all, t.message(id, wire.MessageRoleUser, textOf(e.Envelope)))
		case e.ToNodeID == swarm.User && e.FromNodeID != swarm.Orchestrator:
			all = append(all, t.message(id, wire.MessageRoleAgent, e.Payload.Message))
		}
	}
	return all
}

// outputID is the id of the artifact with the agent's last output.
const outputID = wire.ArtifactID("output")

// artifacts lists the agent's last output and the artifacts of the run.
func (t *task) artifacts() (all []*wire.Artifact, err error) {
	if text, err := t.output(); err != nil {
		return nil, err
	} else if text != "" {
		all = append(all, t.outputArtifact(text))
	}
	for _, raw := range t.Artifacts {
		var kept swarm.Artifact
		if json.Unmarshal(raw, &kept) != nil {
			continue
		}
		one, err := t.storedArtifact(kept)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// output is the agent's last good output. If the run has ended without one, it is the last output.
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

func (t *task) outputArtifact(text string) *wire.Artifact {
	return &wire.Artifact{ID: outputID, Name: t.agent, Description: "what @" + t.agent + " says", Parts: wire.ContentParts{wire.NewTextPart(text)}}
}

// maxInline is the size limit, in bytes, of an artifact inside an answer. A larger one is sent as a
// URL.
const maxInline = 1 << 20

// storedArtifact makes the A2A artifact of a run's artifact.
func (t *task) storedArtifact(a swarm.Artifact) (*wire.Artifact, error) {
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

// textOf is the full text of a client's message.
func textOf(e swarm.Envelope) string {
	var more structuredPayload
	if json.Unmarshal(e.Payload.Structured, &more) == nil && more.Text != "" {
		return more.Text
	}
	return e.Payload.Message
}
