package a2a

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strings"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"swarm"
)

// A2A 0.3 has other names for the same calls and other shapes for the same objects. The library's
// own package for it brings gRPC along, so the part that a turn needs is here.

// legacyVersion begins the versions of A2A that a legacy speaks.
const legacyVersion = "0.3"

// A legacy reaches an agent that speaks A2A 0.3 over JSON-RPC.
type legacy struct {
	url    string
	client *http.Client
}

// SendMessage sends a message. The agent answers at once with its task, or with a message.
func (l *legacy) SendMessage(
	ctx context.Context, _ a2aclient.ServiceParams, r *wire.SendMessageRequest,
) (wire.SendMessageResult, error) {
	event, err := l.call(ctx, "message/send", legacySend{legacyMessageOf(r.Message), legacyConfig{Blocking: false}})
	if err != nil {
		return nil, err
	}
	if result, ok := event.(wire.SendMessageResult); ok {
		return result, nil
	}
	return nil, notLegacy()
}

// SendStreamingMessage sends a message and streams what comes of it.
func (l *legacy) SendStreamingMessage(
	ctx context.Context, _ a2aclient.ServiceParams, r *wire.SendMessageRequest,
) iter.Seq2[wire.Event, error] {
	return l.stream(ctx, "message/stream", legacySend{legacyMessageOf(r.Message), legacyConfig{Blocking: true}})
}

// GetTask returns the state of a task.
func (l *legacy) GetTask(ctx context.Context, _ a2aclient.ServiceParams, r *wire.GetTaskRequest) (*wire.Task, error) {
	return l.task(ctx, "tasks/get", r.ID)
}

// CancelTask cancels a task.
func (l *legacy) CancelTask(
	ctx context.Context, _ a2aclient.ServiceParams, r *wire.CancelTaskRequest,
) (*wire.Task, error) {
	return l.task(ctx, "tasks/cancel", r.ID)
}

// SubscribeToTask streams a task that runs.
func (l *legacy) SubscribeToTask(
	ctx context.Context, _ a2aclient.ServiceParams, r *wire.SubscribeToTaskRequest,
) iter.Seq2[wire.Event, error] {
	return l.stream(ctx, "tasks/resubscribe", legacyTask{r.ID})
}

func (l *legacy) task(ctx context.Context, method string, id wire.TaskID) (*wire.Task, error) {
	event, err := l.call(ctx, method, legacyTask{id})
	if err != nil {
		return nil, err
	}
	if task, ok := event.(*wire.Task); ok {
		return task, nil
	}
	return nil, notLegacy()
}

func notLegacy() error {
	return swarm.Errorf(swarm.Protocol, "the answer of the server is nothing that A2A %s has", legacyVersion)
}

// call does one call.
func (l *legacy) call(ctx context.Context, method string, params any) (wire.Event, error) {
	body, err := l.post(ctx, method, params, "application/json")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body) // the client limits it
	if err != nil {
		return nil, err
	}
	return readLegacy(text)
}

// stream does one call whose answer is a stream. An error that comes before the stream begins is
// its only event.
func (l *legacy) stream(ctx context.Context, method string, params any) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		body, err := l.post(ctx, method, params, "text/event-stream")
		if err != nil {
			yield(nil, err)
			return
		}
		defer body.Close()
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxPlain)
		var data []byte
		for lines.Scan() {
			if value, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
				data = append(append(data, value...), '\n')
				continue
			}
			if len(lines.Bytes()) > 0 || len(data) == 0 {
				continue
			}
			event, err := readLegacy(data)
			if data = data[:0]; !yield(event, err) || err != nil {
				return
			}
		}
		if lines.Err() != nil {
			yield(nil, lines.Err())
		}
	}
}

// post sends a call of JSON-RPC and returns the body of the answer.
func (l *legacy) post(ctx context.Context, method string, params any, accept string) (io.ReadCloser, error) {
	call := swarm.Encode(map[string]any{"jsonrpc": "2.0", "id": "1", "method": method, "params": params})
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(call))
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the server cannot be asked: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", accept)
	q.Header.Set(wire.SvcParamVersion, legacyVersion)
	answer, err := l.client.Do(q)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// The parameters of calls.
type (
	legacySend struct {
		Message legacyMessage `json:"message"`
		Config  legacyConfig  `json:"configuration"`
	}
	legacyConfig struct {
		Blocking bool `json:"blocking"`
	}
	legacyTask struct {
		ID wire.TaskID `json:"id"`
	}
)

// The objects of A2A 0.3, as far as a turn uses them.
type (
	legacyMessage struct {
		Kind      string       `json:"kind"`
		ID        string       `json:"messageId"`
		ContextID string       `json:"contextId,omitempty"`
		TaskID    string       `json:"taskId,omitempty"`
		Role      string       `json:"role"`
		Parts     []legacyPart `json:"parts"`
	}
	legacyPart struct {
		Kind string `json:"kind"`
		Text string `json:"text,omitempty"`
		Data any    `json:"data,omitempty"`
		File *struct {
			Bytes []byte `json:"bytes"`
			URI   string `json:"uri"`
			Type  string `json:"mimeType"`
			Name  string `json:"name"`
		} `json:"file,omitempty"`
	}
	legacyStatus struct {
		State   string         `json:"state"`
		Message *legacyMessage `json:"message"`
	}
	legacyArtifact struct {
		ID    wire.ArtifactID `json:"artifactId"`
		Name  string          `json:"name"`
		Parts []legacyPart    `json:"parts"`
	}
	// A legacyEvent is any result: its kind says which of the fields count.
	legacyEvent struct {
		legacyMessage
		Task      string           `json:"id"`
		Status    legacyStatus     `json:"status"`
		Artifacts []legacyArtifact `json:"artifacts"`
		Artifact  *legacyArtifact  `json:"artifact"`
		Append    bool             `json:"append"`
	}
)

// legacyMessageOf makes the message of 0.3. A turn sends text only.
func legacyMessageOf(m *wire.Message) legacyMessage {
	old := legacyMessage{Kind: "message", ID: m.ID, ContextID: m.ContextID, TaskID: string(m.TaskID), Role: "user"}
	for _, p := range m.Parts {
		old.Parts = append(old.Parts, legacyPart{Kind: "text", Text: p.Text()})
	}
	return old
}

// legacyErrors are the errors of the protocol, by their codes.
var legacyErrors = map[int]error{
	-32700: wire.ErrParseError, -32600: wire.ErrInvalidRequest, -32601: wire.ErrMethodNotFound,
	-32602: wire.ErrInvalidParams, -32001: wire.ErrTaskNotFound, -32002: wire.ErrTaskNotCancelable,
	-32004: wire.ErrUnsupportedOperation, -32005: wire.ErrUnsupportedContentType,
	-32006: wire.ErrInvalidAgentResponse,
}

// readLegacy reads an answer of JSON-RPC, and makes an event of 1.0 of its result.
func readLegacy(text []byte) (wire.Event, error) {
	var answer struct {
		Result *legacyEvent
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, swarm.Errorf(swarm.Protocol, "the answer of the server cannot be read: %w", err)
	}
	if e := answer.Error; e != nil {
		kind := legacyErrors[e.Code]
		if kind == nil {
			kind = wire.ErrInternalError
		}
		return nil, wire.NewError(kind, e.Message)
	}
	if answer.Result == nil {
		return nil, notLegacy()
	}
	return answer.Result.event()
}

func (e *legacyEvent) event() (wire.Event, error) {
	switch e.Kind {
	case "message":
		return e.message(), nil
	case "task":
		task := &wire.Task{ID: wire.TaskID(e.Task), ContextID: e.ContextID, Status: e.Status.status()}
		for i := range e.Artifacts {
			task.Artifacts = append(task.Artifacts, e.Artifacts[i].artifact())
		}
		return task, nil
	case "status-update":
		return &wire.TaskStatusUpdateEvent{TaskID: wire.TaskID(e.TaskID), ContextID: e.ContextID, Status: e.Status.status()}, nil
	case "artifact-update":
		if e.Artifact == nil {
			return nil, notLegacy()
		}
		return &wire.TaskArtifactUpdateEvent{
			TaskID: wire.TaskID(e.TaskID), ContextID: e.ContextID, Append: e.Append, Artifact: e.Artifact.artifact(),
		}, nil
	}
	return nil, notLegacy()
}

func (m *legacyMessage) message() *wire.Message {
	return &wire.Message{
		ID: m.ID, ContextID: m.ContextID, TaskID: wire.TaskID(m.TaskID), Role: wire.MessageRoleAgent, Parts: partsOf(m.Parts),
	}
}

// status translates a state: input-required is TASK_STATE_INPUT_REQUIRED.
func (s *legacyStatus) status() wire.TaskStatus {
	now := wire.TaskStatus{State: wire.TaskState("TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(s.State, "-", "_")))}
	if s.Message != nil {
		now.Message = s.Message.message()
	}
	return now
}

func (a *legacyArtifact) artifact() *wire.Artifact {
	return &wire.Artifact{ID: a.ID, Name: a.Name, Parts: partsOf(a.Parts)}
}

func partsOf(old []legacyPart) (all wire.ContentParts) {
	for _, p := range old {
		switch {
		case p.Kind == "text":
			all = append(all, wire.NewTextPart(p.Text))
		case p.Kind == "data":
			all = append(all, wire.NewDataPart(p.Data))
		case p.File != nil && p.File.URI != "":
			all = append(all, &wire.Part{Content: wire.URL(p.File.URI), MediaType: p.File.Type, Filename: p.File.Name})
		case p.File != nil:
			all = append(all, &wire.Part{Content: wire.Raw(p.File.Bytes), MediaType: p.File.Type, Filename: p.File.Name})
		}
	}
	return all
}
