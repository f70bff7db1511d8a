// Package temporal is the engine that runs loops as workflows of Temporal, and their calls as its
// activities, in any number of processes that share a store.
//
// The run's log stays the journal, and the only truth. The history of a workflow has no records: it
// has the numbers up to which the loop was given the log. A process that replays the workflow reads
// those records again. They are the same, because a log only grows. So a new execution needs nothing
// but the log, and a workflow continues as new without any state.
//
//   - A turn is an activity that has the turn's id. Its answer is the number of its end's record.
//   - What the loop tells, and its short calls, are local activities. One of them writes all facts
//     since the last one, makes the call, and answers with the newest number.
//   - The workflow learns of records of others by the signal [wake], which has the newest number. It
//     is sent by the process that has the workflow in memory, and watches the log for it.
//
// Every call has the fence of the run's owner. A workflow whose run has another owner fails, and
// writes nothing more.
package temporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
)

// Options say what a worker serves.
type Options struct {
	Client client.Client
	Queue  string // the task queue of the loops and of their calls
	Prefix string // of the ids of workflows; the rest is the run's id. Stores that share a namespace differ in it.
	// Open returns what the calls of a run need, under the fence of the run's owner. It is called
	// often. An owner that the run has no longer is refused with ErrFenced.
	Open func(run swarm.RunID, fence int64) (Access, error)
	// Fault is called when this process could not make a call, for a reason that is not the call's.
	// Temporal retries the call, here or elsewhere. nil = such errors are dropped.
	Fault func(run swarm.RunID, err error)
	// Heartbeat is how long a process may be silent before another one makes its calls again. Under
	// load heartbeats come late, and a turn that is made again is paid for again.
	Heartbeat time.Duration // 0 = a minute
	Pause     time.Duration // before the first new attempt of a call, doubled for each further one; 0 = a second
	Calls     int           // how many long calls this process makes at once; 0 = a thousand
	// Records is the number of new records after which a workflow continues as new, in tests; 0 =
	// when Temporal suggests it.
	Records int

	beat time.Duration // between heartbeats, in tests; 0 = a quarter of Heartbeat
}

// An Access is the use of a run's adapters, until it is released.
type Access struct {
	*engine.Adapters
	Context context.Context // its end ends the calls
	Release func()
}

// The names that stand in histories. Changing one breaks the workflows that run.
const (
	workflowName = "run"
	wake         = "wake"
)

// A Worker runs loops and makes their calls.
type Worker struct {
	o      Options
	worker worker.Worker
	ctx    context.Context // ends with the worker
	stop   context.CancelCauseFunc
	all    sync.WaitGroup // calls and watchers
}

// errStopped is why the calls of a worker end that was stopped.
var errStopped = &swarm.Error{Kind: swarm.Stopped, Msg: "the worker was stopped"}

// Connect connects to a server. It fails if the server does not answer.
func Connect(address, namespace string) (client.Client, error) {
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	return client.Dial(client.Options{HostPort: address, Namespace: namespace, Logger: log.NewStructuredLogger(slog.New(handler))})
}

// Start starts a worker.
func Start(o Options) (*Worker, error) {
	if o.Heartbeat == 0 {
		o.Heartbeat = time.Minute
	}
	if o.beat == 0 {
		o.beat = o.Heartbeat / 4
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	w := &Worker{o: o}
	w.ctx, w.stop = context.WithCancelCause(context.Background())
	w.worker = worker.New(o.Client, o.Queue, worker.Options{
		MaxConcurrentActivityExecutionSize: o.Calls,

		BackgroundActivityContext:    w.ctx,
		DeadlockDetectionTimeout:     time.Minute, // a loop that is replayed reads the log
		MaxHeartbeatThrottleInterval: o.Heartbeat / 3,
		WorkerStopTimeout:            10 * time.Second, // its calls end when ctx does
	})
	w.worker.RegisterWorkflowWithOptions(w.run, workflow.RegisterOptions{Name: workflowName})
	for _, kind := range []string{flow.KindTurn, flow.KindAction, flow.KindCheck} {
		w.worker.RegisterActivityWithOptions(w.call, activity.RegisterOptions{Name: kind})
	}
	return w, w.worker.Start()
}

// Stop stops the worker. When it returns, nothing of it runs. Others make its calls again.
func (w *Worker) Stop() {
	w.stop(errStopped)
	w.worker.Stop()
	w.all.Wait()
}

// An input is what a workflow begins with.
type input struct {
	Run  swarm.RunID `json:"run"`
	Call flow.Call   `json:"call"`
}

// Begin starts the workflow of a run whose owner has the fence of c. A workflow of an earlier owner
// is terminated: all that matters of it is in the log. One of the same owner goes on. One of a later
// owner refuses c with ErrFenced.
func (w *Worker) Begin(ctx context.Context, run swarm.RunID, c flow.Call) (client.WorkflowRun, error) {
	id := w.o.Prefix + string(run)
	for {
		began, err := w.o.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: w.o.Queue, StaticSummary: c.Kind, Memo: map[string]any{memoFence: c.Fence},
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, WorkflowExecutionErrorWhenAlreadyStarted: true,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}, workflowName, input{run, c})
		var there *serviceerror.WorkflowExecutionAlreadyStarted
		if !errors.As(err, &there) {
			return began, err
		}
		d, err := w.o.Client.DescribeWorkflow(ctx, id, there.RunId)
		if err != nil {
			return nil, err
		}
		var fence int64
		if err := converter.GetDefaultDataConverter().FromPayload(d.Memo.GetFields()[memoFence], &fence); err != nil {
			return nil, err
		}
		switch {
		case fence == c.Fence:
			return w.o.Client.GetWorkflow(ctx, id, there.RunId), nil
		case fence > c.Fence:
			return nil, swarm.ErrFenced
		}
		// This very execution, because another owner may just begin the next one.
		err = w.o.Client.TerminateWorkflow(ctx, id, there.RunId, "the run has another owner now")
		var gone *serviceerror.NotFound // it has ended by itself
		if err != nil && !errors.As(err, &gone) {
			return nil, err
		}
	}
}

// Run begins the workflow of a run, or finds the one that its owner has begun, and waits for its end.
// It tries again while the server does not answer. When ctx ends, the workflow goes on.
func (w *Worker) Run(ctx context.Context, run swarm.RunID, c flow.Call) (r flow.Result, err error) {
	for {
		var began client.WorkflowRun
		if began, err = w.Begin(ctx, run, c); err == nil {
			err = began.Get(ctx, &r.CallEnd)
		}
		if cause := context.Cause(ctx); cause != nil {
			return r, cause
		}
		var ended *temporal.WorkflowExecutionError
		if err == nil || errors.As(err, &ended) || errors.Is(err, swarm.ErrFenced) {
			return r, failure(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.o.Pause):
		}
	}
}

// Engine returns the engine that has a worker in this process for each call, and waits for the end of
// the workflow.
func Engine(o Options) engine.Engine {
	return func(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
		o := o // several calls may be made at once
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		o.Open = func(swarm.RunID, int64) (Access, error) { return Access{h, ctx, func() {}}, nil }
		o.Fault = func(_ swarm.RunID, err error) { stop(err) }
		w, err := Start(o)
		if err != nil {
			return flow.Result{}, err
		}
		defer w.Stop()
		return w.Run(ctx, h.Turn.Run, c)
	}
}

// call is the activity of a long call. It returns the number of the record of its end.
func (w *Worker) call(ctx context.Context, loop string, c flow.Call) (int64, error) {
	w.all.Add(1)
	defer w.all.Done()
	info := activity.GetInfo(ctx)
	run := swarm.RunID(info.WorkflowExecution.ID[len(w.o.Prefix):])
	c.Again = c.Again || info.Attempt > 1
	a, err := w.o.Open(run, c.Fence)
	if err != nil {
		return 0, w.fault(ctx, run, err)
	}
	defer a.Release()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(a.Context, func() { stop(context.Cause(a.Context)) })()
	w.all.Go(func() { w.beat(ctx) })
	r, err := a.Call(ctx, loop, c)
	if err == nil {
		err = secure(a.Log, r.Seq)
	}
	return r.Seq, w.fault(ctx, run, err)
}

// beat sends heartbeats until ctx ends. They also bring the news that the workflow has ended, which
// ends ctx.
func (w *Worker) beat(ctx context.Context) {
	t := time.NewTicker(w.o.beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			activity.RecordHeartbeat(ctx)
		}
	}
}

// A step is what a local activity does.
type step struct {
	run    swarm.RunID
	loop   flow.Call
	after  int64         // the newest record that the workflow knows
	events []swarm.Event // facts to write
	call   *flow.Call    // a short call to make after that; nil = none
}

// A stretch is the answer to a step. Names are short: histories have it.
type stretch struct {
	Upto int64          `json:"n"`           // the newest record for the loop
	End  *swarm.CallEnd `json:"r,omitempty"` // of the call
}

// step is the local activity. It may be made again after it has succeeded: all it writes has keys.
func (w *Worker) step(ctx context.Context, s step) (stretch, error) {
	w.all.Add(1)
	defer w.all.Done()
	r, err := w.take(ctx, s)
	return r, w.fault(ctx, s.run, err)
}

func (w *Worker) take(ctx context.Context, s step) (r stretch, err error) {
	if err := context.Cause(w.ctx); err != nil {
		return r, err
	}
	h, err := w.o.Open(s.run, s.loop.Fence)
	if err != nil {
		return r, err
	}
	defer h.Release()
	r.Upto = s.after
	if len(s.events) > 0 {
		seqs, err := h.Log.Append(context.WithoutCancel(ctx), swarm.Batch{Fence: s.loop.Fence, Events: s.events})
		if err != nil {
			return r, err
		}
		r.Upto = max(r.Upto, seqs[len(seqs)-1])
	}
	if s.call != nil {
		result, err := h.Call(ctx, s.loop.ID, *s.call)
		if err != nil {
			return r, err
		}
		r.Upto, r.End = max(r.Upto, result.Seq), &result.CallEnd
	}
	for e, err := range swarm.Events(h.Log, r.Upto, engine.Inbox(s.loop)...) {
		if err != nil {
			return r, err
		}
		r.Upto = e.Seq
	}
	return r, secure(h.Log, r.Upto)
}

// secure returns when a record is on disk, and known to this process's readers. What a history names
// must never be lost: its number would be given to another record.
func secure(log swarm.Log, seq int64) error {
	if seq == 0 {
		return nil
	}
	events, err := log.Read(seq-1, 1)
	if err == nil && (len(events) == 0 || events[0].Seq != seq) {
		err = swarm.Errorf(swarm.Storage, "the log ends before event %d, which its workflow was given: %w", seq, swarm.ErrDamaged)
	}
	return err
}

// fault makes the error of an activity from one of an adapter. Errors lose their identity on the way
// to a workflow, so it has a type.
func (w *Worker) fault(ctx context.Context, run swarm.RunID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, swarm.ErrFenced):
		return temporal.NewNonRetryableApplicationError(err.Error(), typeFenced, nil)
	case errors.Is(err, swarm.ErrDamaged):
		return temporal.NewNonRetryableApplicationError(err.Error(), typeStorage, nil)
	case errors.Is(err, swarm.ErrStale), errors.Is(err, swarm.ErrConflict), ctx.Err() != nil:
		// Another process has started the call, or has just ended it, or nobody waits for this one.
		return temporal.NewApplicationError(err.Error(), typeAgain)
	}
	if w.o.Fault != nil {
		w.o.Fault(run, err)
	}
	return temporal.NewApplicationError(err.Error(), typeAgain)
}

// The types of errors in histories.
const (
	typeFenced  = "fenced"  // the run has another owner
	typeStorage = "storage" // the log is damaged, or another version of the program has written it
	typeAgain   = "again"   // the call is made again
)

const memoFence = "fence"

// failure returns the error of an adapter or a loop that the error of a workflow or an activity stands
// for.
func failure(err error) error {
	var e *temporal.ApplicationError
	var ended *temporal.TerminatedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return fmt.Errorf("the workflow was terminated: %w", swarm.ErrFenced)
	case !errors.As(err, &e):
		return err
	case e.Type() == typeFenced:
		return fmt.Errorf("%s: %w", e.Message(), swarm.ErrFenced)
	case e.Type() == typeStorage:
		return swarm.Errorf(swarm.Storage, "%s", e.Message())
	}
	return err
}
