package temporal

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
)

// run is the workflow of a loop.
func (w *Worker) run(ctx workflow.Context, in input) (swarm.CallEnd, error) {
	x := &fx{w: w, ctx: ctx, run: in.Run, loop: in.Call}
	workflow.Go(ctx, x.hear)
	if err := x.load(); err != nil {
		return swarm.CallEnd{}, x.fail(err)
	}
	x.watch = w.attend(in, x.upto)
	defer func() { x.watch.leave() }()
	loop := flow.Loops[in.Call.Kind]
	if loop == nil {
		return swarm.CallEnd{}, x.fail(swarm.Errorf(swarm.Storage, "there is no loop %q", in.Call.Kind))
	}
	r, err := loop(x, in.Call)
	if errors.Is(err, errFull) {
		return swarm.CallEnd{}, workflow.NewContinueAsNewError(ctx, workflowName, in)
	}
	if err == nil {
		x.facts = append(x.facts, x.journal.End("", r))
		err = x.write()
	}
	if err != nil {
		return swarm.CallEnd{}, x.fail(err)
	}
	// The log is ahead of the history: the loop has read ends of activities whose answers are on their
	// way.
	if err := workflow.Await(ctx, func() bool { return x.open == 0 }); err != nil {
		return swarm.CallEnd{}, err
	}
	return r.CallEnd, nil
}

// errFull ends a loop whose workflow continues as new.
var errFull = errors.New("the workflow continues as new")

// An fx implements the effects of one loop. All of it is made again from the history when the
// workflow is replayed, so nothing here may depend on anything but the history and the records that
// it names.
type fx struct {
	w       *Worker
	ctx     workflow.Context
	run     swarm.RunID
	loop    flow.Call
	watch   *watch
	journal *engine.Journal
	read    int64                 // the last record that was read
	upto    int64                 // the last record that the history names
	facts   []swarm.Event         // told, and not yet written
	starts  []flow.Call           // long calls to start when the facts before them are written
	open    int                   // activities whose answer has not come
	given   int                   // records that the log did not have when this execution began
	full    bool                  // the workflow continues as new when no activity is open
	drains  bool                  // so no activity is started any more, if none of the open ones needs another
	waits   map[swarm.TurnID]bool // turns whose agent waits for another, or for a person
	err     error                 // why the loop must stop
}

// page is how many records are read at once.
const page = 10_000

// load gives the journal all records that the log had at the beginning.
func (x *fx) load() error {
	if err := x.step(nil); err != nil {
		return err
	}
	var first []swarm.Event
	err := x.use(func(h *engine.Adapters) (err error) {
		first, err = h.Log.Read(0, 1)
		return err
	})
	if err != nil {
		return err
	}
	var began time.Time
	if len(first) > 0 {
		began = first[0].Time
	}
	x.journal = engine.NewJournal(x.loop, began)
	events, err := x.fetch()
	if err != nil {
		return err
	}
	return x.journal.Load(events)
}

// use has f read by what this process has opened for the run. If the store cannot be read now, the
// workflow's task stops, and not the workflow: Temporal gives the task to a worker again. A log that
// is damaged, or a new owner of the run, ends the workflow.
func (x *fx) use(f func(h *engine.Adapters) error) error {
	a, err := x.w.o.Open(x.run, x.loop.Fence)
	if err == nil {
		defer a.Release()
		err = f(a.Adapters)
	}
	if err != nil && !errors.Is(err, swarm.ErrDamaged) && !errors.Is(err, swarm.ErrFenced) {
		panic(x.w.fault(x.w.ctx, x.run, err))
	}
	return err
}

// fetch reads the records for the loop that the history names.
func (x *fx) fetch() (events []swarm.Event, err error) {
	err = x.use(func(h *engine.Adapters) error {
		if err := secure(h.Log, x.upto); err != nil {
			return err
		}
		for x.read < x.upto {
			more, err := h.Log.Read(x.read, page, engine.Inbox(x.loop)...)
			if err != nil {
				return err
			}
			if len(more) == 0 || more[0].Seq > x.upto {
				x.read = x.upto
			}
			for _, e := range more {
				if e.Seq <= x.upto {
					x.read, events = e.Seq, append(events, e)
				}
			}
		}
		return nil
	})
	return events, err
}

// learn notes that the log has records up to a number.
func (x *fx) learn(upto int64) {
	if x.upto = max(x.upto, upto); x.watch == nil {
		return
	}
	if x.watch.know(x.upto); x.watch.over(x.w) { // this process has the workflow again
		x.watch = x.w.attend(input{x.run, x.loop}, x.upto)
	}
}

// hear receives the hints that there are records of others.
func (x *fx) hear(ctx workflow.Context) {
	hints := workflow.GetSignalChannel(ctx, wake)
	for {
		var upto int64
		if !hints.Receive(ctx, &upto) {
			return
		}
		x.learn(upto)
	}
}

// step has a local activity write the facts, make a short call, and look for records.
func (x *fx) step(c *flow.Call) error {
	_, err := x.take(c)
	return err
}

func (x *fx) take(c *flow.Call) (*swarm.CallEnd, error) {
	s := step{run: x.run, loop: x.loop, after: x.upto, events: x.facts, call: c}
	ctx := workflow.WithLocalActivityOptions(x.ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Hour, RetryPolicy: x.w.retries()})
	var r stretch
	if err := workflow.ExecuteLocalActivity(ctx, x.w.step, s).Get(ctx, &r); err != nil {
		return nil, failure(err)
	}
	x.facts = nil
	x.learn(r.Upto)
	return r.End, nil
}

func (w *Worker) retries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: w.o.Pause, BackoffCoefficient: 2, MaximumInterval: max(w.o.Pause, 30*time.Second)}
}

// write writes the facts that were told, and then starts the calls that were made after them.
func (x *fx) write() error {
	if len(x.facts) > 0 {
		if err := x.step(nil); err != nil {
			return err
		}
	}
	if x.drains && len(x.waits) == 0 {
		return nil // the next execution starts them
	}
	for _, c := range x.starts {
		x.start(c)
	}
	x.starts = nil
	return nil
}

// start starts the activity of a long call.
func (x *fx) start(c flow.Call) {
	who := ""
	if c.Agent != "" {
		who = "@" + c.Agent
	}
	ctx := workflow.WithActivityOptions(x.ctx, workflow.ActivityOptions{ActivityID: c.ID, Summary: who, StartToCloseTimeout: longest,
		HeartbeatTimeout: x.w.o.Heartbeat, RetryPolicy: x.w.retries()})
	answer := workflow.ExecuteActivity(ctx, c.Kind, x.loop.ID, c)
	x.open++
	workflow.Go(x.ctx, func(ctx workflow.Context) {
		var upto int64
		err := answer.Get(ctx, &upto)
		x.open--
		if err != nil && x.err == nil {
			x.err = failure(err)
		}
		x.learn(upto)
	})
}

// longest is how long a call may take. The time of a turn is limited by its task, and not here.
const longest = 30 * 24 * time.Hour

// Do makes a short call and waits for its result.
func (x *fx) Do(c flow.Call) (flow.Result, error) {
	if r, ok, err := x.journal.Before(c); ok || err != nil {
		return r, err
	}
	c = x.journal.Issue(c)
	if c.Kind == flow.KindPlan { // A stored plan never changes, so no history needs it.
		var r flow.Result
		err := x.use(func(h *engine.Adapters) (err error) {
			r, err = h.Call(context.Background(), x.loop.ID, c)
			return err
		})
		return r, err
	}
	end, err := x.take(&c)
	if err != nil || end == nil {
		return flow.Result{}, err
	}
	return flow.Result{CallEnd: *end}, x.write()
}

// Go starts a long call. The loop gets its end from Next.
func (x *fx) Go(c flow.Call) error {
	c, start, err := x.journal.Start(c)
	switch {
	case err != nil || !start:
		return err
	case flow.Loops[c.Kind] != nil:
		return swarm.Errorf(swarm.Storage, "the loop %s cannot start the loop %s: this engine has one loop for each run", x.loop.ID, c.ID)
	}
	x.starts = append(x.starts, c)
	return nil
}

// Tell notes a fact. It is written before the loop waits, before its next call and at its end.
func (x *fx) Tell(f flow.Fact) error {
	if !x.journal.Told(f) {
		x.facts = append(x.facts, engine.Event(x.loop.ID, f))
	}
	return nil
}

// Next waits for the next record that is addressed to the loop.
func (x *fx) Next(most time.Duration) (flow.Signal, error) {
	due := workflow.Now(x.ctx).Add(most)
	for {
		s, ok, err := x.journal.Next()
		if ok || err != nil {
			x.count(s)
			return s, err
		}
		switch {
		case x.err != nil:
			return s, x.err
		case x.upto > x.read:
			events, err := x.fetch()
			if err != nil {
				return s, err
			}
			x.journal.Add(events)
			continue
		}
		if err := x.write(); err != nil {
			return s, err
		}
		if x.upto > x.read {
			continue
		}
		if x.full && x.open == 0 {
			return s, errFull
		}
		ready := func() bool { return x.upto > x.read || x.err != nil || x.full && x.open == 0 }
		if most <= 0 {
			if err := workflow.Await(x.ctx, ready); err != nil {
				return s, err
			}
			continue
		}
		left := due.Sub(workflow.Now(x.ctx))
		if left > 0 {
			if ok, err = workflow.AwaitWithOptions(x.ctx, workflow.AwaitOptions{Timeout: left}, ready); err != nil {
				return s, err
			}
		}
		if !ok { // A tick goes through the log, so that a resumed loop gets it in the same place.
			given, _ := x.journal.Given()
			x.facts = append(x.facts, swarm.Event{Kind: swarm.Tick, Key: "tick:" + x.loop.ID + ":" + strconv.FormatInt(given, 10), To: swarm.ToLoop(x.loop.ID)})
			most = 0
		}
	}
}

// maxHistory is the length of a history at which no more activities are started. Temporal suggests to
// continue as new at 4,096 events, and refuses more than 51,200.
const maxHistory = 20_000

// count notes that a record was given, and whether the workflow has to continue as new. It does not
// while activities are open: their work would be done again. Usually there is a moment without any.
// If there is none for long, no more are started. An agent that waits needs the others to go on, so
// they do.
func (x *fx) count(s flow.Signal) {
	switch s.Kind {
	case swarm.WaitBegan, swarm.ApprovalAsked:
		if x.waits == nil {
			x.waits = map[swarm.TurnID]bool{}
		}
		x.waits[s.Turn] = true
	case swarm.WaitEnded, swarm.ApprovalAnswered:
		delete(x.waits, s.Turn)
	case swarm.TurnEnded:
		delete(x.waits, swarm.TurnID(s.Result.ID))
	}
	if _, later := x.journal.Given(); !later {
		return
	}
	x.given++
	info, tested := workflow.GetInfo(x.ctx), x.w.o.Records > 0 && x.given >= x.w.o.Records
	x.full = x.full || tested || info.GetContinueAsNewSuggested()
	x.drains = x.drains || tested || info.GetCurrentHistoryLength() > maxHistory
}

// Now returns the time of the last record given.
func (x *fx) Now() time.Time { return x.journal.Now() }

// fail returns the error by which the workflow fails, or is cancelled.
func (x *fx) fail(err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	kind := typeStorage
	if errors.Is(err, swarm.ErrFenced) {
		kind = typeFenced
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}
