// Package run is one run from its beginning to its end. [Start] makes the run's log and owns it.
// [Run.Drive] keeps the lease and lets the engine drive the run's loop. Beside the log it writes
// copies for people: outputs as files, streams of running turns, the entry in the list of runs.
// A process that [Assist]s makes calls of a run that another one drives.
//
// [Reader], [Control], [Decide] and [UserMailbox] reach a run from another process, by records in
// its log.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/agenttoken"
	"swarm/internal/engine"
	"swarm/internal/excerpt"
	"swarm/internal/flow"
	"swarm/internal/permission"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/registry"
	"swarm/internal/snapshot"
	"swarm/internal/statedir"
	"swarm/internal/tool"
	"swarm/internal/turn"
	"swarm/internal/view"
)

// planKey is the key of the plan that a run begins with.
const planKey = "plan:1"

// root is the run's own loop, which calls every other.
const root = swarm.RootLoop

// Lease is how long a run stays with an owner that hangs. After it another process may take the
// run. A living owner renews it well before. It is a variable so that tests need not wait.
var Lease = 15 * time.Second

// A Run is a run that this process drives, or is about to. Its fields are set before Drive and are
// not changed afterwards, so they need no mutex.
type Run struct {
	ID    swarm.RunID
	home  *statedir.Home
	log   swarm.RunLog
	start swarm.RunStart
	owned swarm.Ownership // what Own returned, for the log
	fence int64           // its fence; 0 = this process does not own the run yet
	first *swarm.Plan     // held, so that all readers of this process share it; nil = not read yet
	// redact removes secrets from what is added to the plan. It is set by Start and Take.
	redact func([]byte) []byte
}

// Start makes a new run and owns it, unless a worker is to drive it. When it returns, the run is on
// disk and could be resumed after a crash. The carried over events of a retried run follow the plan.
func Start(ctx context.Context, h *statedir.Home, start swarm.RunStart, p *swarm.Plan, bodies [][]byte, carriedOver ...swarm.Event) (*Run, error) {
	if err := process.MayNest(); err != nil {
		return nil, err
	}
	redact := Redactor(p)
	p, bodies, err := redactPlan(p, bodies, redact)
	if err != nil {
		return nil, err
	}
	start.Args = slices.Clone(start.Args)
	for i, arg := range start.Args {
		start.Args[i] = string(redact([]byte(arg)))
	}
	start.Loops = flow.VersionOf(p)
	if start.ID == "" {
		start.ID = swarm.NewRunID(start.Time)
	}
	if p.Swarm != nil && !start.Replay {
		start.Workspace = cmp.Or(p.Swarm.Workspace, h.WorkPath(start.ID))
	}
	if err := h.MakeRuns(); err != nil {
		return nil, err
	}
	log, err := h.Store.Create(ctx, start.ID)
	if err != nil {
		return nil, err
	}
	events := []swarm.Event{
		{Kind: swarm.RunStarted, Key: string(swarm.RunStarted), Data: swarm.Encode(start)},
		{Kind: swarm.PlanAdded, Key: planKey, Data: swarm.Encode(p)},
	}
	if p.Swarm != nil && len(p.Swarm.Taken) > 0 && !start.Replay && start.From == "" { // a replay copies the recorded notice, and in a fork it is old
		events = append(events, takenNotice(p.Swarm))
	}
	r := &Run{ID: start.ID, home: h, log: log, start: start, redact: redact}
	if start.From != "" && start.Workspace == h.WorkPath(start.ID) { // the agents of a fork go on with the files that they had
		err = h.CopyWork(ctx, start.From, start.ID)
	}
	// Own waits for the disk. Batches that were appended before it are on disk then, too.
	byWorker := start.Engine != ""
	if err == nil {
		_, err = log.Append(ctx, swarm.Batch{Events: append(events, carriedOver...), Bodies: bodies, Lazy: !byWorker})
	}
	if err == nil && !byWorker {
		err = r.own(ctx, p)
	}
	if err == nil {
		err = log.Err()
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		r.Undo(ctx)
		var e *swarm.Error
		if errors.Is(err, syscall.ENOSPC) && errors.As(err, &e) {
			e.Hint = "make room, then start the run again"
		}
		return nil, err
	}
	if byWorker { // lists show it until a worker has it
		r.saveSummary(ctx, p, swarm.Interrupted)
	}
	return r, nil
}

// Undo removes a run that was just made, as if it had never existed. No process has driven it.
func (r *Run) Undo(ctx context.Context) {
	_ = r.log.Close()
	_, _ = r.home.Store.Remove(context.WithoutCancel(ctx), r.ID, swarm.RemoveOptions{Fence: swarm.AnyFence})
	_ = r.home.RemoveWork(r.ID)
}

// Open opens an existing run, to drive it on.
func Open(h *statedir.Home, id swarm.RunID) (*Run, error) {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadWrite)
	if err != nil {
		return nil, err
	}
	r := &Run{ID: id, home: h, log: log}
	if r.start, err = firstEvent(log); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return r, nil
}

func firstEvent(log swarm.Log) (start swarm.RunStart, err error) {
	first, err := log.Read(0, 1)
	if err == nil && (len(first) == 0 || first[0].Kind != swarm.RunStarted || json.Unmarshal(first[0].Data, &start) != nil) {
		err = swarm.Errorf(swarm.Storage, "the log does not say how the run began")
	}
	return start, err
}

// ReadStart returns how a run began, from its log.
func ReadStart(h *statedir.Home, id swarm.RunID) (swarm.RunStart, error) {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadOnly)
	if err != nil {
		return swarm.RunStart{}, err
	}
	start, err := firstEvent(log)
	return start, errors.Join(err, log.Close())
}

func (r *Run) own(ctx context.Context, p *swarm.Plan) (err error) {
	r.owned, err = r.log.Own(ctx, flow.VersionOf(p), Lease)
	r.fence = r.owned.Fence
	return err
}

// Take makes this process the owner before the run is driven, so that its plan can grow.
func (r *Run) Take(ctx context.Context) error {
	p, err := r.Plan()
	if err != nil {
		return err
	}
	r.redact = Redactor(p)
	return r.own(ctx, p)
}

// Fence returns the fence of this process; 0 = it does not own the run.
func (r *Run) Fence() int64 { return r.fence }

// Close closes the run's log. If this process owned the run, the run has no owner afterwards.
func (r *Run) Close() error { return r.log.Close() }

// Log returns the run's log.
func (r *Run) Log() swarm.RunLog { return r.log }

// Began returns how the run began.
func (r *Run) Began() swarm.RunStart { return r.start }

// An Observer sees a run that this process drives, a moment late. Its methods are called one at a
// time.
type Observer interface {
	// Event is called for every event, in order.
	Event(e *swarm.Event)
	// Delta is called for each delta of a task's turn, between the turn's start and its end.
	Delta(task string, d swarm.Delta)
}

// Options say how a run is driven.
type Options struct {
	Engine    engine.Engine     // runs the loops
	Children  engine.Engine     // runs those of the swarms that do tasks of the run; nil = Engine does
	Begun     func()            // called when all is prepared and the loop begins; nil = not at all
	Unpause   bool              // resume a paused run: without an owner, nothing would end the pause
	Actor     swarm.Actor       // who has this process resume it
	Observer  Observer          // nil = none
	View      *view.Run         // the observer's own fold, if it has one: events are folded once then
	AtOnce    bool              // show the observer each event at once, because a person waits for it
	Provider  provider.Provider // reaches every agent, in tests; nil = as the plan says
	Server    swarm.ToolHost    // the server of our tools; nil = the run starts its own
	Serve     ServeTools        // starts the run's own server
	Telemetry Telemetry         // follows the run; nil = none

	// Reserve tells the parent run what this run has used and reserved so far. This run does a task
	// of its parent, and counts for the parent's budget. nil = there is no parent, or it has no budget.
	Reserve func(swarm.Usage) error
	// AwaitRoom does the same when the parent's budget has room for it.
	AwaitRoom func(context.Context, swarm.Usage) error
}

// deleted returns the error of a run that was pruned after it was opened, or nil.
func (r *Run) deleted() error {
	if r.home.HasLog(r.ID) {
		return nil
	}
	return swarm.Errorf(swarm.NotFound, "the run %s was deleted just now", r.ID)
}

// Drive drives the run to its end, or until ctx ends. Then the run is interrupted, and any process
// can drive it on later. Drive returns the last picture of the run.
//
// Drive starts three goroutines beside the engine: one renews the lease, one folds the log for the
// observer, and one notifies people. None of them delays the loop.
func (r *Run) Drive(ctx context.Context, o Options) (view.Picture, error) {
	if r.fence == 0 {
		p, err := r.Plan()
		if err != nil {
			return view.Picture{}, cmp.Or(r.deleted(), err)
		}
		if err := r.own(ctx, p); err != nil {
			return view.Picture{}, err
		}
	}
	if r.fence > 1 { // taken from a process that hangs: that one may still hold the lock that marks an owner as alive
		defer func() { _ = r.log.Disown(context.WithoutCancel(ctx), r.fence) }()
	}
	folder, release := process.Contain(r.ID)
	unmark, err := r.home.MarkLive(r.ID, r.fence, process.Self().Started, folder)
	if err != nil {
		release()
		return view.Picture{}, err
	}
	defer func() {
		release() // before the mark, by which the next command finds what a killed process leaves
		unmark()
	}()
	if err := r.deleted(); err != nil { // before this process owned it
		return view.Picture{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go r.keepLease(ctx, stop)

	d := &driver{Run: r, options: o, follower: newFollower(r.ID, r.log, o)}
	if err := d.prepare(ctx); err != nil {
		return view.Picture{}, err
	}
	stopNotifying, err := d.notify(ctx)
	if err != nil {
		return view.Picture{}, err
	}
	d.follower.start()
	stopTelemetry := d.startTelemetry(ctx)
	adapters := &engine.Adapters{Log: r.log, Turn: d.runner, Mailer: d.runner.AgentAPI}
	if cancelled, err2 := r.Cancelled(); err2 != nil || cancelled {
		err = cmp.Or(err2, engine.ErrCancelled)
	} else {
		if o.Begun != nil {
			o.Begun()
		}
		_, err = o.Engine(ctx, adapters, flow.Call{ID: root, Kind: loopOf(r.start.Kind), Ref: planKey, Fence: r.fence})
	}
	if errors.Is(err, engine.ErrCancelled) {
		err = d.endCancelled(ctx)
	}
	stopNotifying() // leave ends all programs of the run, a notifying one too
	err = d.leave(ctx, err)
	stopTelemetry()
	r.log.Flush() // the last notices: the observer gets what can be read now
	picture, err2 := d.follower.stop()
	if err == nil && err2 == nil {
		_ = r.home.Store.Save(context.WithoutCancel(ctx), summarize(picture))
	}
	if err2 != nil && err != nil && err.Error() == err2.Error() {
		err2 = nil // both met the same
	}
	return picture, r.lost(errors.Join(err, err2))
}

// Cancelled reports whether a person has cancelled a replay. Such a run ends without its recording.
func (r *Run) Cancelled() (bool, error) {
	_, cancelled, err := r.log.Find(swarm.CancelReplayKey)
	return cancelled, err
}

// endCancelled ends a replay that a person has cancelled. No loop does it: the loop of a replay gets
// the recorded commands only.
func (d *driver) endCancelled(ctx context.Context) error {
	v, err := View(d.log, d.ID)
	if err != nil {
		return err
	}
	var events []swarm.Event
	for i := range v.Len() {
		if t := v.At(i); !t.Status.Ended() {
			e := swarm.NewEvent(swarm.TaskCancelled, swarm.TaskEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"})
			e.Task, e.Agent, e.To = t.Name, t.Agent, swarm.ToLoop(root)
			events = append(events, e)
		}
	}
	e := swarm.NewEvent(swarm.RunEnded, swarm.RunEnd{Status: swarm.Cancelled, Exit: swarm.ExitFailed, Reason: "the run was cancelled"})
	e.Key, e.To = string(swarm.RunEnded), swarm.ToLoop(root)
	_, err = d.log.Append(ctx, swarm.Batch{Fence: d.fence, Events: append(events, e)})
	return err
}

// loopOf returns the loop that drives a kind of run.
func loopOf(kind swarm.RunKind) string {
	if kind.Team() {
		return "team"
	}
	return "pipeline"
}

// lost names the new owner, if this process had to stop because it lost the run. If it lost a shared
// store, the error says how the run goes on.
func (r *Run) lost(err error) error {
	if store, ok := r.home.Store.(swarm.SharedStore); ok && swarm.KindOf(err) == swarm.Storage && isOf(err, store) && !errors.Is(err, swarm.ErrDamaged) {
		return (&swarm.Error{Kind: swarm.Storage, Msg: "this process has stopped driving the run " + string(r.ID), Err: err}).
			WithHint("when %s can be used again: swarm resume %s", store.Name(), r.ID)
	}
	if !errors.Is(err, swarm.ErrFenced) {
		return err
	}
	who := "another process"
	if o, ok, _ := r.log.Owner(context.Background()); ok {
		who = o.Process()
	}
	return (&swarm.Error{Kind: swarm.Other, Msg: who + " has taken over the run " + string(r.ID) + ", since this one did not move for " + Lease.String(), Err: err}).
		WithHint("to watch it: swarm attach %s", r.ID)
}

// isOf reports whether an error is of a shared store. One of this machine's disk is not.
func isOf(err error, store swarm.SharedStore) bool {
	for e := (*swarm.Error)(nil); errors.As(err, &e); err = errors.Unwrap(e) {
		if strings.HasPrefix(e.File, store.Name()) {
			return true
		}
	}
	return false
}

// keepLease renews the lease until ctx ends. If that fails, this process may no longer own the run,
// so it stops the driving.
func (r *Run) keepLease(ctx context.Context, stop context.CancelCauseFunc) {
	t := time.NewTicker(Lease / 3)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			err := r.log.Renew(ctx, r.fence, Lease)
			if err == nil {
				err = r.log.Err() // a lazy batch was not written, and the loop may be waiting for it
			}
			if err != nil && ctx.Err() == nil {
				stop(err)
				return
			}
		}
	}
}

// A driver is the state of a run while this process drives it.
type driver struct {
	*Run
	options    Options
	follower   *follower
	runner     *turn.Runner
	toolServer *toolServer   // nil in a replay
	servers    *tool.Servers // MCP servers; nil in a replay
	streams    *streams
	guard      permission.Guard     // files that this run executes or obeys
	obeyed     *snapshot.Contents   // their contents
	phase      swarm.Phase          // of a team; "" = none
	notifier   *swarm.ProviderSpec  // how people are notified; nil = not at all
	endMatters bool                 // people are notified of the run's end
	limits     map[string]time.Time // the reset time of the limit that people were last notified of, by provider; only the notifying goroutine uses it
}

// prepare makes the adapters, ends the orphaned processes of an earlier owner, and records the git
// tree.
//
// The order matters: orphaned processes end before RunOwned is appended, because the loop starts
// turns after it.
func (d *driver) prepare(ctx context.Context) error {
	p, err := d.Plan()
	if err != nil {
		return err
	}
	if err := d.makeAdapters(ctx, p); err != nil {
		return err
	}
	d.notifier = p.Notify
	d.endMatters = d.start.Parent == nil && p.Kind != swarm.LineRun // lines have @notify
	return d.takeOver(ctx, p)
}

// makeAdapters makes what turns need in this process, whichever process drives the run.
func (d *driver) makeAdapters(ctx context.Context, p *swarm.Plan) error {
	if p.Team != nil {
		d.phase = p.Team.Phase
	}
	d.guard = tool.NewGuard(p, d.start.Dir, d.start.File, append(slices.Clone(d.start.Sources), d.home.PromptPath()))
	tokens := agenttoken.New(string(d.ID))
	secrets := newRedactor(d.home, p, tokens)
	d.streams = newStreams(d.home, d.ID, secrets, d.follower.queueDelta)
	d.runner = &turn.Runner{Run: d.ID, Log: d.log, Dir: d.start.Dir, Options: d.providerOptions(), Provider: d.provider, Redact: secrets.Bytes, Cut: secrets.Cut, Watch: d.streams,
		CarriesOver: d.start.From != "", Trace: d.trace, Parent: d.options.Reserve, ParentRoom: d.options.AwaitRoom, AgentAPI: &agentapi.Service{Run: d.ID, Log: d.log, Redact: secrets.Bytes, Loop: root, Fence: d.fence}}
	if e := p.Edited; e != nil {
		text, err := d.log.Body(e.Text)
		if err != nil {
			return err
		}
		d.runner.Edited = &turn.Edit{Turn: e.Turn, Text: string(text), Want: e.Want, Upto: e.Upto}
	}
	if !d.start.Replay { // a replay starts no agent
		d.toolServer = &toolServer{shared: d.options.Server, serve: d.options.Serve, service: d.runner.AgentAPI, tokens: tokens, version: d.start.Version,
			fault: func(err error) { _ = d.notice(ctx, secrets.String(err.Error()), "") }}
		d.runner.Endpoint = d.toolServer.endpoint
		d.servers = tool.NewServers(p.Servers, tool.ServerOptions{Run: d.ID, Dir: d.start.Dir, Logins: d.home})
		d.runner.Toolbox = d.toolbox
		d.runner.Swarm = d.swarmOf
		d.runner.Desks = d.home.DesksPath(d.ID)
		if p.Desks != "" {
			if err := d.runner.ClaimDesks(p.Desks); err != nil {
				return err
			}
		}
		if err := d.makeWork(p); err != nil {
			return err
		}
		d.obeyed = snapshot.NewContents(d.start.Dir, d.guard.Paths)
		d.runner.Obeyed = d.watchObeyed
		d.runner.Snapshots = snapshotter{d.home.TreePath(d.ID), d.hidden(), &snapshot.Seen{}, d.phase == swarm.PlanningPhase}
	}
	return nil
}

// takeOver ends the orphaned processes of an earlier owner, and records that this process owns the
// run.
func (d *driver) takeOver(ctx context.Context, p *swarm.Plan) error {
	if d.fence > 1 {
		for _, m := range d.home.Earlier(d.ID, d.fence) {
			process.Reap(d.ID, m.PID, m.Folder)
		}
		if err := copyOutputs(d.home, d.ID, d.log); err != nil {
			return err
		}
	}
	owned := swarm.NewEvent(swarm.RunOwned, d.owned)
	owned.To = swarm.ToLoop(root)
	if err := d.append(ctx, true, owned); err != nil {
		return err
	}
	if d.options.Unpause {
		if err := appendCommand(ctx, d.log, swarm.ControlCommand{Command: swarm.CommandResume, Actor: d.options.Actor}); err != nil {
			return err
		}
	}
	if d.fence == 1 && !d.start.Replay {
		if err := d.recordSnapshot(ctx, "start"); err != nil {
			return err
		}
	}
	d.saveSummary(ctx, p, swarm.Running)
	return nil
}

// saveSummary saves the summary of a run that has just begun, or has a new owner. The summary is only a
// cache of the log, so an error does not matter.
func (r *Run) saveSummary(ctx context.Context, p *swarm.Plan, status swarm.Status) {
	parts := len(p.Tasks)
	if p.Team != nil {
		parts = len(p.Agents)
	}
	_ = r.home.Store.Save(ctx, swarm.RunSummary{ID: r.ID, Kind: r.start.Kind, Name: r.start.Name, Dir: r.start.Dir, Status: status, Started: r.start.Time,
		Tasks: parts, PID: r.owned.PID, Host: r.owned.Host, Origin: r.start.Origin, Key: r.start.Key, Args: shortArgs(r.start.Args)})
}

// maxArgs bounds the command line in a summary, in bytes. Lists of runs read all summaries.
const maxArgs = 2000

// shortArgs returns the beginning of a command line.
func shortArgs(args []string) (some []string) {
	room := maxArgs
	for _, arg := range args {
		if room <= 0 {
			break
		}
		arg = excerpt.Head(arg, room)
		some, room = append(some, arg), room-len(arg)
	}
	return some
}

// Plan returns the plan that the run began with.
func (r *Run) Plan() (p *swarm.Plan, err error) {
	if r.first == nil {
		r.first, err = swarm.FindPlan(r.log, planKey)
	}
	return r.first, err
}

// providerOptions returns what all providers of the run need.
func (d *driver) providerOptions() provider.Options {
	return provider.Options{Dir: d.start.Dir, Hidden: []string{d.home.Dir()}, Guard: d.guard}
}

// provider opens the provider that the plan describes.
func (d *driver) provider(spec swarm.ProviderSpec) (provider.Provider, error) {
	if d.options.Provider != nil {
		return d.options.Provider, nil
	}
	opt := d.providerOptions()
	if spec.Script != "" {
		text, err := d.log.Body(spec.Script)
		if err != nil {
			return nil, err
		}
		opt.Script = text
	}
	return registry.Open(spec, opt)
}

// leave ends everything that the turns used. If the run has not ended, it records the interruption.
func (d *driver) leave(ctx context.Context, err error) error {
	_ = d.runner.SaveReports() // copies of what the log has
	closing := d.runner.Close()
	if d.toolServer != nil {
		closing = errors.Join(closing, d.toolServer.close(), d.servers.Close())
		process.Clear(d.ID)
	}
	if closing != nil {
		if noticeErr := d.notice(ctx, "something that the agents used could not be ended: "+closing.Error(), ""); err == nil {
			err = noticeErr
		}
	}
	if lost := d.streams.close(); lost != nil {
		if noticeErr := d.notice(ctx, "copies of outputs could not be written: "+lost.Error(), "`swarm out` reads them from the log"); err == nil {
			err = noticeErr
		}
	}
	switch {
	case err == nil:
		if !d.start.Replay {
			return d.recordSnapshot(context.WithoutCancel(ctx), "end")
		}
		return nil
	case swarm.KindOf(err) != swarm.Stopped:
		return err
	}
	why := swarm.Reason{Reason: err.Error()}
	if why.Reason == string(swarm.Interrupted) { // the kind of the event says it already
		why.Reason = ""
	}
	return d.append(context.WithoutCancel(ctx), false, swarm.NewEvent(swarm.RunInterrupted, why))
}

func (d *driver) append(ctx context.Context, lazy bool, e swarm.Event) error {
	_, err := d.log.Append(ctx, swarm.Batch{Fence: d.fence, Lazy: lazy, Events: []swarm.Event{e}})
	return err
}

// notice appends a notice for people, whether they watch now or look later.
func (d *driver) notice(ctx context.Context, reason, hint string) error {
	return d.append(context.WithoutCancel(ctx), true, noticeOf(reason, hint))
}

func noticeOf(reason, hint string) swarm.Event {
	return swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: reason, Hint: hint})
}

// recordSnapshot records the git tree, so that `swarm diff` can show the changes. Without git there
// is nothing to record. A failure becomes a notice and does not stop the run.
func (d *driver) recordSnapshot(ctx context.Context, when string) error {
	t, ok, err := snapshot.Snapshot(ctx, d.start.Dir, d.home.TreePath(d.ID), d.hidden()...)
	if err != nil {
		return d.notice(ctx, "the git tree could not be recorded: "+err.Error(), "`swarm diff` will have nothing to compare with")
	}
	if !ok {
		return nil
	}
	t.When = when
	return d.append(ctx, when == "start", swarm.Event{Kind: swarm.TreeRecorded, Key: "tree:" + when, Data: swarm.Encode(t)})
}

func summarize(p view.Picture) swarm.RunSummary {
	done := 0
	for _, t := range p.Tasks {
		if t.Status == swarm.Completed {
			done++
		}
	}
	waits := ""
	if p.Status == swarm.Running {
		waits = p.Reason
	}
	return swarm.RunSummary{Waits: waits, Needs: p.Needs(), Args: shortArgs(p.Args), ID: p.ID, Kind: p.Kind, Name: p.Name, Dir: p.Dir, Status: p.Status,
		Started: p.Started, Ended: p.Ended, Pauses: p.Paused, Since: p.Since, Exit: p.Exit,
		Tasks: len(p.Tasks), Done: done, Usage: p.Usage, PID: p.Owner.PID, Host: p.Owner.Host, Origin: p.Origin, Key: p.Key}
}
