package run

import (
	"context"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A Reader is a run that this process only reads, whichever process drives it.
type Reader struct {
	ID   swarm.RunID
	home *statedir.Home
	log  swarm.RunLog
}

// OpenReader opens a run for reading. It blocks no driver.
func OpenReader(h *statedir.Home, id swarm.RunID) (*Reader, error) {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadOnly)
	if err != nil {
		return nil, err
	}
	return &Reader{ID: id, home: h, log: log}, nil
}

// Close closes the run's log.
func (r *Reader) Close() error { return r.log.Close() }

// Desks returns the folder of the newest desk of each task that has one, by the task's name.
func (r *Reader) Desks() (map[string]string, error) {
	keys, err := r.log.Keys(swarm.DeskKeys(""))
	if err != nil {
		return nil, err
	}
	desks := map[string]string{}
	for _, key := range keys { // the newest is first
		task, _, _ := strings.Cut(strings.TrimPrefix(key, swarm.DeskKeys("")), "/")
		if desks[task] != "" {
			continue
		}
		opened, _, err := swarm.FindBody[swarm.DeskOpening](r.log, key)
		if err != nil {
			return nil, err
		}
		desks[task] = opened.Dir
	}
	return desks, nil
}

// DeskInputs returns the inputs that the desk of a task had when its last attempt began, as JSON; nil = the
// run has opened no desk for it.
func (r *Reader) DeskInputs(task string) ([]byte, error) {
	keys, err := r.log.Keys(swarm.DeskKeys(task + "/"))
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	opened, _, err := swarm.FindBody[swarm.DeskOpening](r.log, keys[0]) // the newest is first
	if err != nil {
		return nil, err
	}
	return r.log.Body(opened.Manifest)
}

// Driven reports whether a living process drives the run.
func (r *Reader) Driven() bool {
	_, driven := r.Driver()
	return driven
}

// Driver returns the process that drives the run, if there is one.
func (r *Reader) Driver() (who swarm.Owner, driven bool) {
	who, driven, err := r.log.Owner(context.Background())
	return who, driven && err == nil
}

// GoesOn reports whether the run goes on without a person: a process drives it, or a worker takes it
// up as soon as there is one.
func (r *Reader) GoesOn() bool { return r.Driven() || r.awaitsWorker() }

// awaitsWorker reports whether a run that no process drives is left to workers.
func (r *Reader) awaitsWorker() bool {
	start, _, err := swarm.FindBody[swarm.RunStart](r.log, string(swarm.RunStarted))
	if err != nil || start.Engine == "" {
		return false
	}
	_, ended, err := r.log.Find(string(swarm.RunEnded))
	return err == nil && !ended
}

// Read returns up to limit events after a number, in order.
func (r *Reader) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	return r.log.Read(after, limit, to...)
}

// Watch returns a channel that gets a value soon after any process has appended an event. The
// function ends the watch.
func (r *Reader) Watch() (<-chan struct{}, func()) { return r.log.Watch() }

// Fold returns the run's fold up to now. If it had to read much and the run has no driver that
// would do it, it stores the fold for the next reader.
func (r *Reader) Fold() (*view.Run, error) {
	v, stored, err := fold(r.log, r.ID)
	if err == nil && foldDue(v, stored) && !r.Driven() {
		if log, err := r.home.Store.Open(context.Background(), r.ID, swarm.ReadWrite); err == nil { // without it the next reader folds again
			_ = storeFold(log, v)
			_ = log.Close()
		}
	}
	return v, err
}

// Picture returns the run as it is now. A run that has not ended and has no driver is interrupted,
// whatever its log says.
func (r *Reader) Picture() (view.Picture, error) {
	driven := r.Driven() // first: the last events of a driver that leaves now are in the fold
	v, err := r.Fold()
	if err != nil {
		return view.Picture{}, err
	}
	return r.withoutDriver(v.Picture(), driven), nil
}

func (r *Reader) withoutDriver(p view.Picture, driven bool) view.Picture {
	switch {
	case driven:
		return p
	case r.awaitsWorker():
		return p.Abandoned("it waits for a worker")
	}
	return p.Abandoned("the process that drove it is gone")
}

// Details returns the run's turns, envelopes and artifacts. Without a driver, a turn that has not
// ended is interrupted.
func (r *Reader) Details() (view.Details, error) {
	driven := r.Driven()
	d, err := view.Collect(swarm.Events(r.log, 0))
	markInterrupted(d.Turns, driven)
	return d, err
}

// Query returns the query of a swarm; "" if the run is none.
func (r *Reader) Query() (string, error) {
	p, err := swarm.FindPlan(r.log, planKey)
	if err != nil || p.Swarm == nil {
		return "", err
	}
	text, err := r.Text(p.Swarm.Query)
	return string(text), err
}

// BegunBy reports whether the run was begun with this command line. Secrets are stored nowhere, so
// they count as equal.
func (r *Reader) BegunBy(args []string) (bool, error) {
	p, err := swarm.FindPlan(r.log, planKey)
	if err != nil {
		return false, err
	}
	start, _, err := swarm.FindBody[swarm.RunStart](r.log, string(swarm.RunStarted))
	redact := Redactor(p)
	return slices.EqualFunc(start.Args, args, func(stored, arg string) bool { return stored == string(redact([]byte(arg))) }), err
}

// Text returns a text from the run's log: a prompt or an output.
func (r *Reader) Text(h swarm.Hash) ([]byte, error) {
	if h == "" || h == swarm.NoText {
		return nil, nil
	}
	return r.log.Body(h)
}

// A Why explains why a task or an agent does not run.
type Why struct {
	Chain   view.Chain    // the waits that begin with it
	Actions []view.Action // the newest answers and commands on the last of the chain, or on the run
	view.Picture
}

// Why returns the chain of waits that begins with a task or an agent. It reads the fold only, so its
// cost does not depend on the log.
func (r *Reader) Why(name string) (Why, error) {
	driven := r.Driven()
	v, err := r.Fold()
	if err != nil {
		return Why{}, err
	}
	chain, err := v.Why(name)
	if err != nil {
		return Why{}, err
	}
	p := r.withoutDriver(v.Picture(), driven)
	tasks := make(map[string]*view.Task, len(p.Tasks))
	for i := range p.Tasks {
		tasks[p.Tasks[i].Name] = &p.Tasks[i]
	}
	for i := range chain { // the picture of an abandoned run differs from its log
		if t := tasks[chain[i].Task]; t != nil {
			chain[i].Status, chain[i].Waits, chain[i].Reason = t.Status, t.Waits, t.Reason
		}
		if len(chain[i].Waits) == 0 { // a turn that was cut waits for nothing
			chain = chain[:i+1]
			break
		}
	}
	last := chain[len(chain)-1]
	return Why{chain, v.ActionsOn(last.Task, last.Agent), p}, nil
}

// Wait waits until the run does not go on, or ctx ends. A driver leaves when the run has ended or is
// interrupted. Wait returns the last picture.
func (r *Reader) Wait(ctx context.Context) (view.Picture, error) {
	p := r.newPoller()
	defer p.stop()
	for r.GoesOn() {
		if err := p.wait(ctx, false); err != nil {
			return view.Picture{}, err
		}
	}
	return r.Picture()
}

// Follow calls fn with each event after a number, in order, until fn returns false, the run does not
// go on, or ctx ends. It returns the number of the last event, and nil if ctx has ended.
func (r *Reader) Follow(ctx context.Context, after int64, fn func(*swarm.Event) bool) (int64, error) {
	p := r.newPoller()
	defer p.stop()
	for {
		goesOn := r.GoesOn() // before reading, so that the last events of a driver are not missed
		for {
			events, err := r.Read(after, followPage)
			if err != nil {
				return after, err
			}
			for i := range events {
				after = events[i].Seq
				if !fn(&events[i]) {
					return after, nil
				}
			}
			if len(events) < followPage {
				break
			}
		}
		if !goesOn || p.wait(ctx, false) != nil {
			return after, nil
		}
	}
}

// followPage is how many events Follow reads at once.
const followPage = 500

// Current returns the summary of a run, updated from its log. The stored summary is written only
// when a run begins and when its driver leaves. A run without a driver is as the last driver left
// it.
func Current(h *statedir.Home, s swarm.RunSummary) swarm.RunSummary {
	if s.Status == "" || s.Status.Ended() || s.Status == swarm.Interrupted {
		return s
	}
	log, err := h.Store.Open(context.Background(), s.ID, swarm.ReadOnly)
	if err != nil {
		return s
	}
	defer log.Close()
	now, err := Summarize(log, s.ID)
	if err != nil || now.Status == "" {
		return s
	}
	return now
}

// Advance folds the events that are new since a fold of the run, and returns the run's summary and
// whether a process drives it.
func (r *Reader) Advance(v *view.Run) (s swarm.RunSummary, driven bool, err error) {
	driven = r.Driven() // first: the last events of a driver that leaves now are in the fold
	if err := r.log.Scan(v.Seq, v.Apply); err != nil {
		return s, driven, err
	}
	return summarize(r.withoutDriver(v.Picture(), driven)), driven, nil
}

// Summarize makes the summary of a run from its log. It is empty for an empty log.
func Summarize(log swarm.RunLog, run swarm.RunID) (swarm.RunSummary, error) {
	v, err := View(log, run)
	if err != nil || v.Seq == 0 {
		return swarm.RunSummary{}, err
	}
	return summarize(v.Picture()), nil
}
