package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/desk"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
	"swarm/internal/provider"
	deskwork "swarm/internal/provider/desk"
)

// worker says who does the turn at a desk; "" = it has none. In a swarm only iterations are work: the
// supervisor, and the members of a council that judge each other, answer in words.
func (w *work) worker() swarm.Worker {
	if w.task.Swarm != nil || w.c.Want != plan.WantMail && w.c.Want != plan.WantAction {
		return ""
	}
	return w.task.WorkerOf(w.agent)
}

// deskPath is the folder of the turn's desk.
func (r *Runner) deskPath(w *work) string { return filepath.Join(r.Desks, w.c.Task) }

// ClaimDesks puts the desks of the run into a folder that its file names. Other runs may name it too, so it
// is claimed until Close.
func (r *Runner) ClaimDesks(dir string) (err error) {
	r.Desks = dir
	r.leaveDesks, err = desk.Claim(dir, r.Run)
	return err
}

// atDesk returns the provider that does the turn at a desk. Everything that it must know after a crash
// is in the log: which attempts have opened the desk, and what its inputs were.
func (r *Runner) atDesk(w *work) (provider.Provider, error) {
	t := &deskwork.Turn{Watcher: r.deskWatcher(), Dir: r.deskPath(w), Title: w.c.Task, Spans: w.made.Spans, Files: w.task.Files}
	if w.worker() == swarm.CommandWorker {
		worker, err := r.provider(w.spec)
		if err != nil {
			return nil, err
		}
		t.Worker = worker
	}
	var err error
	if t.Opened, err = r.manifest(w.turn); err != nil {
		return nil, err
	}
	if t.Replaced, err = r.replacedDesk(w); err != nil {
		return nil, err
	}
	for _, turn := range earlier(w.c) {
		m, err := r.manifest(turn)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		c, collected, err := swarm.FindBody[swarm.DeskCollection](r.Log, swarm.CollectedKey(turn))
		if err != nil {
			return nil, err
		}
		t.Before, t.Judged = m, collected && c.Clean()
	}
	if t.Failures, err = r.failures(w.c); err != nil {
		return nil, err
	}
	if t.Archive, err = r.archiveName(w); err != nil {
		return nil, err
	}
	if t.Needs, err = r.needs(w); err != nil {
		return nil, err
	}
	if w.task.OldDesk != "" || w.task.LateDesk != "" {
		opened, err := r.openedDesk(w.c.Task, w.c.Iteration-1)
		if err != nil {
			return nil, err
		}
		if !opened { // an iteration after that starts from the plan
			t.Corrected, t.Rewritten, t.Late = w.task.OldDesk, w.task.OldInstructions, w.task.LateDesk
		}
	}
	t.Asked = w.c.Attempt > w.task.Retries+1
	t.Open = func(o deskwork.Opening) error { return r.openDesk(w, o) }
	t.Notice = func(reason, hint string) { r.notice(w, reason, hint) }
	t.Tell = r.deskTeller(w)
	t.Take = func(f desk.File, content []byte) error { return r.storeFile(w, f, content) }
	w.desk = t
	return t, nil
}

// deskWatcher returns the watcher of all desks of the run.
func (r *Runner) deskWatcher() *desk.Watcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.desks == nil {
		r.desks = desk.NewWatcher(desk.WatchOptions{Pause: progressPause})
	}
	return r.desks
}

// manifest returns the inputs of a turn's desk; nil = the turn has not opened it.
func (r *Runner) manifest(turn swarm.TurnID) (*desk.Manifest, error) {
	opening, _, err := r.lastOpening(turn)
	if err != nil || opening == nil {
		return nil, err
	}
	text, err := r.Log.Body(opening.Manifest)
	if err != nil {
		return nil, err
	}
	m := &desk.Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, swarm.Errorf(swarm.Storage, "the inputs of the desk of %s cannot be read: %w", turn, err)
	}
	return m, nil
}

// lastOpening returns how the turn's desk was opened last, and the key of its next opening. Each start of the
// turn opens the desk.
func (r *Runner) lastOpening(turn swarm.TurnID) (last *swarm.DeskOpening, next string, err error) {
	next = swarm.DeskKey(turn)
	for n := 2; ; n++ {
		o, ok, err := swarm.FindBody[swarm.DeskOpening](r.Log, next)
		if err != nil || !ok {
			return last, next, err
		}
		last, next = &o, fmt.Sprintf("%s/%d", swarm.DeskKey(turn), n)
	}
}

// replacedDesk is where the desk is now that had the place when this iteration opened the task's desk first;
// "" = there was none, or it was not opened.
func (r *Runner) replacedDesk(w *work) (string, error) {
	for _, turn := range append(earlier(w.c), w.turn) {
		if o, ok, err := swarm.FindBody[swarm.DeskOpening](r.Log, swarm.DeskKey(turn)); ok || err != nil {
			return o.Archived, err
		}
	}
	return "", nil
}

// archiveName is the name under which the task's last desk is archived: task.iteration. One that this run
// has not made is of an earlier run.
func (r *Runner) archiveName(w *work) (string, error) {
	last := w.c.Iteration - 1
	for ; last > 1; last-- {
		_, ok, err := r.Log.Find(swarm.DeskKey(swarm.NewTurnID(w.c.Task, last, 1)))
		if err != nil {
			return "", err
		}
		if ok {
			break
		}
	}
	return fmt.Sprintf("%s.%d", w.c.Task, max(last, 1)), nil
}

// openedDesk says whether this run has opened the desk of a task in an iteration.
func (r *Runner) openedDesk(task string, iteration int) (bool, error) {
	for n := 1; ; n++ {
		turn := swarm.NewTurnID(task, iteration, n)
		if _, ok, err := r.Log.Find(swarm.DeskKey(turn)); ok || err != nil {
			return ok, err
		}
		if _, ended, err := r.Log.Find(swarm.EndKey(string(turn))); !ended || err != nil {
			return false, err
		}
	}
}

// needs are the tasks that the turn's task depends on, with their desks.
func (r *Runner) needs(w *work) (all []deskwork.Need, err error) {
	for _, d := range w.task.DependsOn {
		n := deskwork.Need{Dependency: d}
		if other := w.plan.tasks[d.Task]; other != nil && other.WorkerOf(w.plan.agents[other.Agent]) != "" {
			n.Dir = filepath.Join(r.Desks, d.Task)
			opened, err := r.openedDesk(d.Task, w.c.Iteration)
			if err != nil {
				return nil, err
			}
			n.Again = opened
			if !opened && other.OldDesk != "" {
				n.Dir = other.OldDesk
			}
			if n.Delivered, err = r.deliveries(other, w.c.Iteration); err != nil {
				return nil, err
			}
		}
		all = append(all, n)
	}
	return all, nil
}

// deliveries are the files that were collected at the desk of a task in an iteration. They are passed on
// as they were then, whatever has happened to the desk since. nil = its last attempt was not collected.
func (r *Runner) deliveries(t *swarm.Task, iteration int) (all []desk.Delivery, err error) {
	var body swarm.DeskCollection
	known := false
	for n := 1; ; n++ {
		turn := swarm.NewTurnID(t.Name, iteration, n)
		last, collected, err := swarm.FindBody[swarm.DeskCollection](r.Log, swarm.CollectedKey(turn))
		if err != nil {
			return nil, err
		}
		_, opened, err := r.Log.Find(swarm.DeskKey(turn))
		if err != nil {
			return nil, err
		}
		if collected || opened {
			body, known = last, collected
			continue
		}
		// Attempts that ended without a desk, or that were not carried over from another run, leave gaps.
		if _, ended, err := r.Log.Find(swarm.EndKey(string(turn))); err != nil {
			return nil, err
		} else if !ended && n > t.Retries {
			break
		}
	}
	if !known {
		return nil, nil
	}
	all = []desk.Delivery{}
	for _, f := range body.Files {
		it := desk.Delivery{File: desk.File{Kind: desk.FileKind(f.Kind), Path: f.Path, Size: f.Bytes, SHA256: f.SHA256, Large: f.Ref == ""}}
		if f.Ref != "" {
			it.Content = func() ([]byte, error) { return r.artifact(f.Ref) }
		}
		all = append(all, it)
	}
	return all, nil
}

// artifact returns the content of an artifact.
func (r *Runner) artifact(ref string) ([]byte, error) {
	it, ok, err := swarm.FindBody[swarm.Artifact](r.Log, agentapi.ArtifactKey(ref))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, swarm.Errorf(swarm.NotFound, "there is no artifact %s", ref)
	}
	return r.Log.Body(it.Hash)
}

// openDesk records the desk before its worker starts. It returns when that is on disk.
func (r *Runner) openDesk(w *work, o deskwork.Opening) error {
	_, key, err := r.lastOpening(w.turn)
	if err != nil {
		return err
	}
	text := swarm.Encode(o.Manifest)
	e := w.event(swarm.DeskOpened, swarm.DeskOpening{Dir: r.deskPath(w), Worker: w.worker(), Manifest: swarm.HashOf(text), Archived: o.Archived, Until: o.Until})
	e.Key = key
	_, err = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Absent: []string{w.nextStart()}, Events: []swarm.Event{e}, Bodies: [][]byte{text}})
	return err
}

// notice tells people something about the turn.
func (r *Runner) notice(w *work, reason, hint string) {
	e := w.event(swarm.Notice, swarm.Reason{Reason: r.clean(reason), Hint: r.clean(hint)})
	// The error may be dropped: a log that refuses this event also refuses the turn's end.
	_, _ = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Early: true, Events: []swarm.Event{e}})
}

// progressPause is the least time between two events of the same state of a desk. A worker may write
// its status a hundred times a second. The newest progress is always told, after the pause.
const progressPause = 500 * time.Millisecond

// deskTeller returns the function that records what the worker writes about itself. It appends early, so
// that other processes see it soon: nothing else may happen in the run for hours.
func (r *Runner) deskTeller(w *work) func(desk.Status) {
	last := ""
	return func(s desk.Status) {
		now := swarm.DeskStatus{State: string(s.State), Step: r.clean(s.Progress.CurrentStep), Done: s.Progress.StepsCompleted, Total: s.Progress.TotalSteps}
		if metrics := r.clean(string(s.Metrics)); metrics != "" {
			if now.Metrics = json.RawMessage(metrics); len(metrics) > maxNoted || !json.Valid(now.Metrics) {
				now.Metrics = swarm.Encode(excerpt.Head(metrics, maxNoted))
			}
		}
		if s.Error != nil {
			now.Error = excerpt.Head(r.clean(s.Error.String()), maxNoted)
		}
		// The end of a worker's program reads the final state once more.
		text := string(swarm.Encode(now))
		if s.State == desk.Pending || text == last {
			return
		}
		last = text
		// The error may be dropped: a log that refuses this event also refuses the turn's end.
		_, _ = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Early: true, Absent: []string{w.nextStart()},
			Events: []swarm.Event{w.event(swarm.DeskChanged, now)}})
	}
}

// event makes an event about the turn.
func (w *work) event(kind swarm.EventKind, body any) swarm.Event {
	e := swarm.NewEvent(kind, body)
	e.Task, e.Agent, e.Turn = w.c.Task, w.c.Agent, w.turn
	return e
}

// storeFile stores a file of the outbox as an artifact. The turn's end comes after it in the log, so the
// file is on disk when the turn is.
func (r *Runner) storeFile(w *work, f desk.File, content []byte) error {
	it := swarm.DeskFile{Path: r.clean(f.Path), Kind: string(f.Kind), Bytes: f.Size, SHA256: f.SHA256}
	if !f.Large {
		content = r.redact(content)
		e, stored := agentapi.ArtifactEvent(w.event(swarm.ArtifactStored, nil), "file", it.Path, content)
		b := swarm.Batch{Fence: w.c.Fence, Early: true, Absent: []string{w.nextStart()}, Events: []swarm.Event{e}}
		if len(content) > 0 { // every log has the empty body
			b.Bodies = [][]byte{content}
		}
		// The same bytes may be there under another name.
		if _, err := r.Log.Append(context.Background(), b); err != nil && !errors.Is(err, swarm.ErrConflict) {
			return err
		}
		it.Ref = stored.Ref
	}
	w.delivered = append(w.delivered, it)
	w.ownTools = w.ownTools || f.Kind == desk.Deliverable // in a swarm that is work, and more than words
	return nil
}

// collected is the event of what the worker delivered; nil = the turn did not come so far.
func (r *Runner) collected(w *work) *swarm.Event {
	if w.desk == nil || w.desk.Collected == nil {
		return nil
	}
	c := w.desk.Collected
	body := swarm.DeskCollection{Dir: w.desk.Dir, State: string(c.Status.State), Files: w.delivered}
	for _, criterion := range c.Criteria {
		body.Criteria = append(body.Criteria, swarm.DeskCriterion{Text: r.clean(criterion.Text), Met: criterion.Met})
	}
	for _, v := range c.Violations {
		body.Problems = append(body.Problems, r.clean(v.Error()))
	}
	e := w.event(swarm.DeskCollected, body)
	e.Key = swarm.CollectedKey(w.turn)
	return &e
}
