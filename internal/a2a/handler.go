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

// open looks at a task of this agent.
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
	t.tells = func(t *task) { h.memory.note(t.id, t.approval().ID) }
	return reader, t, nil
}

// get is a task as it is now.
func (h *handler) get(ctx context.Context, id wire.TaskID, most *int) (*wire.Task, error) {
	reader, t, err := h.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return t.whole(most)
}

// GetTask tells where a task stands.
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

// CancelTask ends a task for good, and answers when it has ended.
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
	err = h.Feed.Follow(short, t.id, t.run.Seq, func(told update) error { // what was told before is not asked for again
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

// cancelTime is how long a task is waited for that was told to end.
const cancelTime = 10 * time.Second

// SubscribeToTask tells what happens to a task from now on.
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
		h.tell(ctx, t, yield)
	}
}

// SendMessage gives an agent a message, and answers when nothing more happens without the client; at once, if the client wants that.
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

// SendStreamingMessage gives an agent a message, and tells what happens: all of it, if that begins with the message, however quick it was.
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
		h.tell(ctx, t, yield)
	}
}

// ListTasks lists the tasks that were begun over A2A, the newest first.
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

// begun are the runs of this agent that were begun over A2A, the newest first, and of one conversation only if it is named.
func (h *handler) begun(conversation string) ([]swarm.RunSummary, error) {
	all, err := h.Control.Home.List(h.Control.Dir, h.Control.Anywhere)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s swarm.RunSummary) bool {
		return s.Origin == nil || s.Origin.Agent != h.agent || s.Problem != "" || conversation != "" && s.Origin.Context != conversation && string(s.ID) != conversation
	}), nil
}

// Nobody is called back: who wants to know listens, or asks.

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

// speaks says whether a client speaks the version that is spoken here. One that does not say is believed to.
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
