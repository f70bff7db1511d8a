package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/engine"
	"swarm/internal/engine/local"
	"swarm/internal/flow"
	"swarm/internal/provider"
	"swarm/internal/turn"
	"swarm/internal/view"
)

const (
	runID   = "run"
	planKey = "plan:1"
	lease   = 15 * time.Second
)

// The faults that a world makes up.
var (
	errCrash  = errors.New("simulated: the process died here")
	errBroken = swarm.Errorf(swarm.Storage, "simulated: the disk reports an error")
	errFull   = swarm.Errorf(swarm.Storage, "simulated: the disk is full")
)

// simulated says whether an error comes from a fault that the world made up.
func simulated(err error) bool {
	return errors.Is(err, errCrash) || errors.Is(err, errBroken) || errors.Is(err, errFull)
}

// A world is one simulated run and all around it.
type world struct {
	seed   uint64
	disk   *disk
	plan   swarm.Plan
	bodies [][]byte
	began  time.Time
	fickle bool // an agent that is called again for the same turn acts differently
	faults faults
	agent  provider.Provider                                      // nil = the random agents of the seed
	tools  func(*swarm.Agent, swarm.TurnID) (turn.Toolbox, error) // nil = none

	mu      sync.Mutex
	calls   []*call  // the ledger of the agents
	acks    []ack    // what agents and people were told is stored
	granted []string // approvals that agents were given
	refused int      // tool calls that were refused
	done    []string // what happened outside of the log, for people who read a failing seed
	wrong   []string // broken promises

	processes map[*handle]context.CancelCauseFunc
	ended     chan struct{} // closed when the run has ended
}

// faults are when and how the seed breaks things. Times are since the beginning.
type faults struct {
	appends map[int]fate // by the number of the append of a driver
	full    [2]time.Duration
	power   []time.Duration // the power is lost
	kills   []time.Duration // the driver is killed
	hangs   []time.Duration // the driver does not renew its lease any more
	count   int             // appends of drivers so far
}

func newWorld(seed uint64) *world {
	r := dice(seed, "world")
	w := &world{seed: seed, disk: newDisk(seed), began: time.Now(), fickle: chance(r, 30), processes: map[*handle]context.CancelCauseFunc{}, ended: make(chan struct{})}
	w.plan, w.bodies = randomPlan(seed)
	w.disk.slow = true
	w.faults.appends = map[int]fate{}
	for range r.IntN(5) {
		w.faults.appends[1+r.IntN(one(r, 20, 60, 120))] = one(r, fate{before: errBroken}, fate{after: errBroken}, fate{before: errCrash, dies: true}, fate{after: errCrash, dies: true}, fate{power: true}, fate{power: true})
	}
	when := func() time.Duration { return time.Duration(r.Int64N(int64(5 * time.Minute))) }
	if chance(r, 20) {
		w.faults.full[0] = when()
		w.faults.full[1] = w.faults.full[0] + time.Duration(r.Int64N(int64(time.Minute)))
	}
	for range r.IntN(3) {
		switch r.IntN(3) {
		case 0:
			w.faults.power = append(w.faults.power, when())
		case 1:
			w.faults.kills = append(w.faults.kills, when())
		case 2:
			w.faults.hangs = append(w.faults.hangs, when())
		}
	}
	return w
}

// note notes what happened outside of the log.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, fmt.Sprintf("%v "+format, append([]any{time.Since(w.began)}, args...)...))
}

// fail notes a broken promise.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// fateOf decides about an append of a driver. The caller holds the disk's mutex.
func (w *world) fateOf(h *handle, b *swarm.Batch) fate {
	w.faults.count++
	f := w.faults.appends[w.faults.count]
	if f == (fate{}) {
		f = w.fateOfAnyone(h, b)
	}
	if f != (fate{}) {
		w.note("append %d of process %d: %+v", w.faults.count, h.number, f)
	}
	if f.dies {
		w.processes[h](errCrash)
	}
	if f.power {
		time.AfterFunc(w.disk.length(0, 2*flushAfter, "power after append", w.faults.count), func() {
			w.disk.mu.Lock()
			defer w.disk.mu.Unlock()
			w.losePower()
		})
	}
	return f
}

func (w *world) fateOfAnyone(*handle, *swarm.Batch) fate {
	if now := time.Since(w.began); now >= w.faults.full[0] && now < w.faults.full[1] {
		return fate{before: errFull}
	}
	return fate{}
}

// simulate runs the world until its run has ended.
func (w *world) simulate() {
	if err := w.begin(w.disk.open()); err != nil {
		w.fail("the run cannot begin: %v", err)
		return
	}
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() { w.driver(n) })
	}
	all.Go(w.person)
	all.Go(w.follower)
	var breaks sync.WaitGroup
	for i, at := range w.faults.power {
		breaks.Go(func() { w.at(at, fmt.Sprint("power ", i), w.losePower) })
	}
	for i, at := range w.faults.kills {
		breaks.Go(func() { w.at(at, fmt.Sprint("kill ", i), w.kill) })
	}
	all.Wait()
	breaks.Wait()
}

// begin makes a run of the plan.
func (w *world) begin(h *handle) error {
	events := []swarm.Event{
		{Kind: swarm.RunStarted, Key: string(swarm.RunStarted), Data: swarm.Encode(swarm.RunStart{ID: runID, Kind: w.plan.Kind, Loops: flow.Version, Dir: "/", Time: w.began.UTC()})},
		{Kind: swarm.PlanAdded, Key: planKey, Data: swarm.Encode(w.plan)}}
	if w.plan.Team != nil && w.plan.Swarm == nil {
		goal := swarm.Envelope{Kind: swarm.Handoff, ID: "goal", FromNodeID: swarm.User, ToNodeID: "lead", Payload: swarm.Payload{Message: "do it (user/0/0.0)"}}
		events = append(events, swarm.Event{Kind: swarm.HandoffStored, Key: swarm.MailKey("goal"), To: swarm.ToAgent("lead"), Data: swarm.Encode(goal)})
	}
	_, err := h.Append(context.Background(), swarm.Batch{Events: events, Bodies: w.bodies})
	return errors.Join(err, h.Close())
}

// at does something at a time, unless the run has ended by then.
func (w *world) at(after time.Duration, what string, do func()) {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.ended:
		return
	}
	w.note("%s", what)
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	do()
}

func (w *world) kill() {
	if h := w.disk.owner; h != nil && h.alive() == nil {
		h.die(errCrash)
		w.processes[h](errCrash)
	}
}

func (w *world) losePower() {
	for h, cancel := range w.processes {
		if h.alive() == nil {
			h.die(errCrash)
			cancel(errCrash)
		}
	}
	w.disk.losePower()
}

// process opens the log for a new process. ctx ends with the process.
func (w *world) process(fate func(*handle, *swarm.Batch) fate) (context.Context, *handle, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	h := w.disk.open()
	h.fate = fate
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	w.processes[h] = cancel
	return ctx, h, func() {
		h.Close()
		cancel(nil)
		w.disk.mu.Lock()
		defer w.disk.mu.Unlock()
		delete(w.processes, h)
	}
}

// driver is a computer on which one process after the other drives the run, or waits for its turn to
// do so.
func (w *world) driver(n int) {
	w.disk.delay(0, time.Second, "driver", n) // processes begin one after the other, so that their numbers do not depend on chance
	for try := 0; ; try++ {
		if w.drive() {
			return
		}
		if time.Since(w.began) > 30*24*time.Hour {
			w.fail("the run has not ended after a month")
			w.end()
			return
		}
		w.disk.delay(100*time.Millisecond, 10*time.Second, "driver", n, try)
	}
}

// end says that the run has ended.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.ended:
	default:
		close(w.ended)
	}
}

// drive tries to own the run and to drive it, and says whether the run has ended.
func (w *world) drive() (over bool) {
	ctx, h, leave := w.process(w.fateOf)
	defer leave()
	h.lag, h.delays = true, true
	owner, err := h.Own(ctx, flow.Version, lease)
	if _, owned := errors.AsType[*swarm.OwnedError](err); owned || simulated(err) {
		select {
		case <-w.ended:
			return true
		default:
			return false
		}
	}
	if err != nil {
		w.fail("process %d cannot own the run: %v", h.number, err)
		return true
	}
	if _, over, err := h.Find(swarm.EndKey(swarm.RootLoop)); err == nil && over {
		w.end()
		return true
	}
	w.note("process %d owns the run with fence %d", h.number, owner.Fence)
	result, err := w.runEngine(ctx, local.Run, h, owner)
	w.note("process %d: %s %v", h.number, result.Status, err)
	switch {
	case err == nil:
		w.end()
		return true
	case simulated(err), errors.Is(err, swarm.ErrFenced):
	default:
		w.fail("process %d stops driving: %v", h.number, err)
	}
	return false
}

// runEngine drives the run as package run does, without its copies for people.
func (w *world) runEngine(ctx context.Context, run engine.Engine, h *handle, owner swarm.Ownership) (flow.Result, error) {
	fence := owner.Fence
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer stop(nil)
	renewing.Go(func() { w.keepLease(ctx, stop, h, fence) })
	agent := w.agent
	if agent == nil {
		agent = &agents{w, h}
	}
	runner := &turn.Runner{Run: runID, Log: h, Dir: "/", CarriesOver: true, Toolbox: w.tools, Provider: func(swarm.ProviderSpec) (provider.Provider, error) { return agent, nil }}
	defer runner.Close()
	service := &agentapi.Service{Run: runID, Log: h, Loop: swarm.RootLoop, Fence: fence}
	runner.AgentAPI = service
	kind := "pipeline"
	if w.plan.Team != nil {
		kind = "team"
	}
	owned := swarm.Event{Kind: swarm.RunOwned, To: swarm.ToLoop(swarm.RootLoop), Data: swarm.Encode(owner)}
	if _, err := h.Append(ctx, swarm.Batch{Fence: fence, Events: []swarm.Event{owned}}); err != nil {
		return flow.Result{}, err
	}
	return run(ctx, &engine.Adapters{Log: h, Turn: runner, Mailer: service}, flow.Call{ID: swarm.RootLoop, Kind: kind, Ref: planKey, Fence: fence})
}

// keepLease renews the lease, unless the process hangs.
func (w *world) keepLease(ctx context.Context, stop context.CancelCauseFunc, h *handle, fence int64) {
	began := time.Since(w.began)
	for n := 0; ; n++ {
		w.disk.mu.Lock()
		long := w.disk.length(lease/3, lease/3+time.Second, "renew", h.number, n)
		w.disk.mu.Unlock()
		t := time.NewTimer(long)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		now := time.Since(w.began)
		hangs := false
		for _, at := range w.faults.hangs {
			hangs = hangs || at >= began && now >= at
		}
		if hangs {
			continue
		}
		err := h.Renew(ctx, fence, lease)
		if err == nil {
			err = h.Err()
		}
		if err != nil {
			stop(err)
			return
		}
	}
}

// Err returns the error of a lazy batch that was lost.
func (h *handle) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

// follower shows the run all the time, as `swarm attach` does. What it shows must be what a reader
// of the whole log sees. It stores its fold now and then, and goes on from there after a loss of power.
func (w *world) follower() {
	w.disk.delay(0, time.Second, "follower")
	stored := view.New(runID).Marshal()
	for n := 0; ; n++ {
		ctx, h, leave := w.process(nil)
		over, err := w.follow(ctx, h, &stored)
		leave()
		if over {
			return
		}
		if err != nil && !errors.Is(err, errCrash) {
			w.fail("the follower: %v", err)
			return
		}
		w.disk.delay(0, time.Second, "follower", n)
	}
}

func (w *world) follow(ctx context.Context, h *handle, stored *[]byte) (over bool, err error) {
	v, err := view.Unmarshal(*stored)
	if err != nil {
		return false, err
	}
	wake, off := h.Watch()
	defer off()
	for {
		events, err := h.Read(v.Seq, 100)
		if err != nil {
			return false, err
		}
		for i := range events {
			if err := v.Apply(&events[i]); err != nil {
				return false, err
			}
		}
		if len(events) > 0 {
			if p := v.Picture(); p.Status == swarm.Running && p.Seq%7 == 0 {
				*stored = v.Marshal()
			}
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-w.ended:
			if events, err := h.Read(v.Seq, 1); err != nil || len(events) > 0 {
				continue
			}
			w.checkView(v)
			return true, nil
		}
	}
}

// log returns the events as text.
func (w *world) log() string {
	var b strings.Builder
	for _, e := range w.disk.events {
		fmt.Fprintln(&b, e.Seq, e.Time.Format("15:04:05.000000"), e.Kind, e.Agent, e.Task, e.Turn, e.To, e.Key, string(e.Data))
	}
	return b.String()
}
