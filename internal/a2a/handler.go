package a2a

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"swarm"
	"swarm/internal/run"
)

// A handler answers the protocol's calls to one agent.
type handler struct {
	*Server
	agent string
}

var _ a2asrv.RequestHandler = (*handler)(nil)

// open folds a task of this agent as it is now. The caller closes the reader.
func (h *handler) open(ctx context.Context, id wire.TaskID) (*run.Reader, *task, error) {
	return h.fold(ctx, id, asItIs)
}

func (h *handler) fold(ctx context.Context, id wire.TaskID, enough func(*task) bool) (*run.Reader, *task, error) {
	entry, err := h.Control.Lookup(string(id))
	if swarm.KindOf(err) == swarm.NotFound {
		return nil, nil, notFound(id)
	}
	if err != nil {
		return nil, nil, err
	}
	if string(entry.ID) != string(id) || !entry.Kind.Team() {
		return nil, nil, notFound(id)
	}
	reader, err := h.Control.OpenReader(entry.ID)
	if err != nil {
		return nil, nil, err
	}
	t, err := load(reader, enough)
	if err == nil && t.agent != h.agent {
		err = notFound(id)
	}
	if err != nil {
		reader.Close()
		return nil, nil, err
	}
	t.server, _ = ctx.Value(serverKey{}).(string)
	t.onShown = func(t *task) { h.memory.note(t.id, t.approval().ID) }
	return reader, t, nil
}

// get returns a task as it is now, with at most so many messages of its history.
func (h *handler) get(ctx context.Context, id wire.TaskID, most *int) (*wire.Task, error) {
	reader, t, err := h.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return t.whole(most)
}

// GetTask returns the state of a task.
func (h *handler) GetTask(ctx context.Context, r *wire.GetTaskRequest) (*wire.Task, error) {
	if err := speaks(ctx); err != nil {
		return nil, err
	}
	if err := countable(r.HistoryLength); err != nil {
		return nil, err
	}
	t, err := h.get(ctx, r.ID, r.HistoryLength)
	return t, protocolError(ctx, err)
}

// CancelTask cancels a task, and answers when it has ended or after cancelTime.
func (h *handler) CancelTask(ctx context.Context, r *wire.CancelTaskRequest) (*wire.Task, error) {
	if err := speaks(ctx); err != nil {
		return nil, err
	}
	reader, t, err := h.open(ctx, r.ID)
	if err != nil {
		return nil, protocolError(ctx, err)
	}
	reader.Close()
	if state := t.state(); state.Terminal() {
		return nil, wire.NewError(wire.ErrTaskNotCancelable, "the task has ended: it is "+state.String())
	}
	if _, err := h.Control.Cancel(ctx, t.id, ""); err != nil {
		return nil, protocolError(ctx, err)
	}
	short, stop := context.WithTimeout(ctx, cancelTime)
	defer stop()
	err = h.Feed.Follow(short, t.id, t.run.Seq, func(told update) error { // earlier events are in the fold already
		if told.Event != nil && told.Event.Kind == swarm.RunEnded {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) && !errors.Is(err, context.DeadlineExceeded) {
		return nil, protocolError(ctx, err)
	}
	whole, err := h.get(ctx, r.ID, nil)
	return whole, protocolError(ctx, err)
}

// cancelTime is how long to wait for the end of a cancelled task.
const cancelTime = 10 * time.Second

// SubscribeToTask streams the task as it is now, and then its updates.
func (h *handler) SubscribeToTask(ctx context.Context, r *wire.SubscribeToTaskRequest) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		if err := speaks(ctx); err != nil {
			yield(nil, err)
			return
		}
		reader, t, err := h.open(ctx, r.ID)
		if err != nil {
			yield(nil, protocolError(ctx, err))
			return
		}
		defer reader.Close()
		if state := t.state(); state.Terminal() {
			yield(nil, wire.NewError(wire.ErrUnsupportedOperation, "the task has ended: it is "+state.String()))
			return
		}
		h.stream(ctx, t, yield)
	}
}

// SendMessage sends a message to an agent. It answers when the task has ended or needs the client,
// or at once if the client wants that.
func (h *handler) SendMessage(ctx context.Context, r *wire.SendMessageRequest) (wire.SendMessageResult, error) {
	id, _, err := h.send(ctx, r)
	if err != nil {
		return nil, protocolError(ctx, err)
	}
	var most *int
	if c := r.Config; c != nil {
		most = c.HistoryLength
	}
	if r.Config == nil || !r.Config.ReturnImmediately {
		if err := h.wait(ctx, id); err != nil {
			return nil, protocolError(ctx, err)
		}
	}
	t, err := h.get(ctx, id, most)
	if err != nil {
		return nil, protocolError(ctx, err)
	}
	return t, nil
}

// SendStreamingMessage sends a message to an agent, and streams the task. If the message starts a
// new task, the stream has all updates from the start, even if the task ended in the meantime.
func (h *handler) SendStreamingMessage(ctx context.Context, r *wire.SendMessageRequest) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		id, began, err := h.send(ctx, r)
		if err != nil {
			yield(nil, protocolError(ctx, err))
			return
		}
		enough := asItIs
		if began {
			enough = asItBegan
		}
		reader, t, err := h.fold(ctx, id, enough)
		if err != nil {
			yield(nil, protocolError(ctx, err))
			return
		}
		defer reader.Close()
		h.stream(ctx, t, yield)
	}
}

// ListTasks lists the tasks that were started over A2A, newest first.
func (h *handler) ListTasks(ctx context.Context, r *wire.ListTasksRequest) (*wire.ListTasksResponse, error) {
	if err := speaks(ctx); err != nil {
		return nil, err
	}
	if err := countable(r.HistoryLength); err != nil {
		return nil, err
	}
	size := r.PageSize
	switch {
	case size == 0:
		size = 50
	case size < 1 || size > 100:
		return nil, invalid("pageSize is out of range", "write a number from 1 to 100")
	}
	answer, err := h.page(ctx, r, size)
	return answer, protocolError(ctx, err)
}

func (h *handler) page(ctx context.Context, r *wire.ListTasksRequest, size int) (*wire.ListTasksResponse, error) {
	list := &wire.ListTasksResponse{Tasks: []*wire.Task{}, PageSize: size}
	begun, err := h.begun(r.ContextID)
	if err != nil {
		return nil, err
	}
	for _, s := range begun {
		reader, t, err := h.open(ctx, wire.TaskID(s.ID))
		if err != nil {
			return nil, err
		}
		fits := (r.Status == "" || t.state() == r.Status) && (r.StatusTimestampAfter == nil || t.run.Time.After(*r.StatusTimestampAfter))
		if fits {
			list.TotalSize++
		}
		switch {
		case !fits || r.PageToken != "" && string(s.ID) >= r.PageToken:
		case len(list.Tasks) == size:
			list.NextPageToken = string(list.Tasks[size-1].ID)
		default:
			var whole *wire.Task
			if whole, err = t.whole(r.HistoryLength); err == nil {
				if !r.IncludeArtifacts {
					whole.Artifacts = nil
				}
				list.Tasks = append(list.Tasks, whole)
			}
		}
		reader.Close()
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// begun lists the runs of this agent that were started over A2A, newest first. With a conversation,
// it lists only the runs of that one.
func (h *handler) begun(conversation string) ([]swarm.RunSummary, error) {
	all, err := h.Control.Home.List(h.Control.Dir, h.Control.Anywhere)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s swarm.RunSummary) bool {
		return s.Origin == nil || s.Origin.Agent != h.agent || conversation != "" && s.Origin.Context != conversation && string(s.ID) != conversation
	})
	for _, s := range all { // it may have the message
		if err := h.Control.Home.Uncertain(s); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(s swarm.RunSummary) bool { return s.Problem != "" }), nil
}

// Push notifications are not supported: clients subscribe to a task or poll it.

// GetTaskPushConfig refuses.
func (h *handler) GetTaskPushConfig(context.Context, *wire.GetTaskPushConfigRequest) (*wire.PushConfig, error) {
	return nil, wire.ErrPushNotificationNotSupported
}

// ListTaskPushConfigs refuses.
func (h *handler) ListTaskPushConfigs(context.Context, *wire.ListTaskPushConfigRequest) (*wire.ListTaskPushConfigResponse, error) {
	return nil, wire.ErrPushNotificationNotSupported
}

// CreateTaskPushConfig refuses.
func (h *handler) CreateTaskPushConfig(context.Context, *wire.PushConfig) (*wire.PushConfig, error) {
	return nil, wire.ErrPushNotificationNotSupported
}

// DeleteTaskPushConfig refuses.
func (h *handler) DeleteTaskPushConfig(context.Context, *wire.DeleteTaskPushConfigRequest) error {
	return wire.ErrPushNotificationNotSupported
}

// GetExtendedAgentCard refuses: the card says all there is.
func (h *handler) GetExtendedAgentCard(context.Context, *wire.GetExtendedAgentCardRequest) (*wire.AgentCard, error) {
	return nil, wire.ErrExtendedCardNotConfigured
}

// speaks refuses a client that speaks another version of A2A. A client that names none is accepted.
func speaks(ctx context.Context) error {
	call, ok := a2asrv.CallContextFrom(ctx)
	if !ok {
		return nil
	}
	said, _ := call.ServiceParams().Get(wire.SvcParamVersion)
	for _, v := range said {
		if v = strings.TrimSpace(v); v != "" && v != "1" && !strings.HasPrefix(v, "1.") {
			return wire.NewError(wire.ErrVersionNotSupported, "version "+swarm.Quote(v)+" of A2A is not spoken here; "+string(wire.Version)+" is")
		}
	}
	return nil
}

func countable(n *int) error {
	if n != nil && *n < 0 {
		return invalid("historyLength is below 0", "write how many messages you want")
	}
	return nil
}
