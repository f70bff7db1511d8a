package statedir

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"swarm"
)

// Summary returns the run's current summary.
func (h *Home) Summary(run swarm.RunID) swarm.RunSummary {
	entry, ok := h.entry(run)
	if !ok {
		return swarm.RunSummary{ID: run}
	}
	s, _ := h.present(entry)
	return s
}

// Exists reports whether the run exists. It does even if its log was deleted and the rest was not,
// and as long as a store that does not answer may have it.
func (h *Home) Exists(run swarm.RunID) bool {
	_, ok, err := h.lookup(run)
	return ok || err != nil
}

// HasLog reports whether the run's log is in its place, or may be in a store that does not answer.
func (h *Home) HasLog(run swarm.RunID) bool {
	entry, ok, err := h.lookup(run)
	return ok && !entry.Damaged || err != nil
}

// entry is like lookup, but a run whose lookup fails counts as missing.
func (h *Home) entry(run swarm.RunID) (swarm.RunEntry, bool) {
	entry, ok, err := h.lookup(run)
	return entry, ok && err == nil
}

// lookup returns the run's entry in the store's list, and whether there is one.
func (h *Home) lookup(run swarm.RunID) (swarm.RunEntry, bool, error) {
	if run != "" { // an empty query means all runs
		for entry, err := range h.Store.Runs(context.Background(), swarm.RunQuery{ID: run}) {
			return entry, true, err
		}
	}
	return swarm.RunEntry{RunSummary: swarm.RunSummary{ID: run}}, false, nil
}

// Driven reports whether a process drives the run now.
func (h *Home) Driven(run swarm.RunID) bool {
	log, err := h.Store.Open(context.Background(), run, swarm.ReadOnly)
	if err != nil {
		return false
	}
	defer log.Close()
	_, driven, err := log.Owner(context.Background())
	return driven && err == nil
}

// present returns the current summary, and saves it if it had to be read from the log. The error is
// the one behind the summary's Problem.
func (h *Home) present(entry swarm.RunEntry) (swarm.RunSummary, error) {
	s, driven, err := h.current(entry)
	if !driven && !reflect.DeepEqual(s, entry.RunSummary) && s.Begun() && s.Problem == "" {
		_ = h.Store.Save(context.Background(), s) // best effort: it saves reading the log next time
	}
	return s, err
}

// current returns the current summary, and whether a process drives the run. A run that is saved as
// running, but that no process drives, was interrupted, or it ended and crashed before saving that.
func (h *Home) current(entry swarm.RunEntry) (s swarm.RunSummary, driven bool, err error) {
	s = entry.RunSummary
	if entry.Saved && s.Status.Ended() && !s.Damaged {
		return s, false, nil
	}
	log, err := h.Store.Open(context.Background(), s.ID, swarm.ReadOnly)
	if swarm.KindOf(err) == swarm.NotFound {
		return swarm.RunSummary{ID: s.ID}, false, nil
	}
	if err == nil {
		defer log.Close()
		_, driven, err = log.Owner(context.Background())
	}
	if err != nil {
		if s.Status != "" && !s.Status.Ended() && !h.DrivenBy(s.ID, s.PID) {
			s.Status = swarm.Interrupted
		}
		return withProblem(s, err), driven, err
	}
	if entry.Saved && driven == (s.Status != swarm.Interrupted) {
		return s, driven, nil
	}
	s, err = h.rebuild(log, s)
	switch {
	case driven && (s.Status == "" || s.Status == swarm.Interrupted):
		s.Status = swarm.Running
	case !driven && s.Begun() && s.Problem == "" && !s.Status.Ended():
		s.Status = swarm.Interrupted
	}
	return s, driven, err
}

// rebuild makes the summary from the log. If the log cannot be read, the saved summary is returned
// with the problem.
func (h *Home) rebuild(log swarm.RunLog, saved swarm.RunSummary) (swarm.RunSummary, error) {
	if h.Summarize == nil {
		if saved.Status == "" {
			saved.Status = swarm.Interrupted
		}
		return saved, nil
	}
	s, err := h.Summarize(log, saved.ID)
	if err != nil {
		return withProblem(saved, err), err
	}
	s.ID = saved.ID
	if s.PID == 0 {
		s.PID, s.Host = saved.PID, saved.Host
	}
	return s, nil
}

// List returns the summaries of all runs that were started in dir, or anywhere, newest first.
func (h *Home) List(dir string, anywhere bool) ([]swarm.RunSummary, error) {
	var all []swarm.RunSummary
	for s, err := range h.Runs(dir, anywhere, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Runs iterates over the runs that were started in dir, or anywhere, newest first. If before is
// given, only older runs count. A caller that stops early reads no further summaries.
func (h *Home) Runs(dir string, anywhere bool, before swarm.RunID) iter.Seq2[swarm.RunSummary, error] {
	return func(yield func(swarm.RunSummary, error) bool) {
		for entry, err := range h.Store.Runs(context.Background(), swarm.RunQuery{Before: before}) {
			if err != nil {
				yield(swarm.RunSummary{}, err)
				return
			}
			if entry.Saved && !anywhere && entry.Dir != dir {
				continue // skipped without opening its log
			}
			if s, _ := h.present(entry); s.Begun() && (anywhere || mayBeOf(s, dir)) && !yield(s, nil) {
				return
			}
		}
	}
}

// Uncertain returns an error if a listed run may be another than its summary says: a shared store did not answer
// when its log was opened, and may do so in a moment.
func (h *Home) Uncertain(s swarm.RunSummary) error {
	if h.shared == nil || s.Problem == "" || s.Damaged {
		return nil
	}
	return swarm.Errorf(swarm.Storage, "the run %s cannot be read at the moment: %s", s.ID, s.Problem).WithHint("try it again")
}

// mayBeOf reports whether a run was started in a folder. Nobody knows it of a damaged run that lost
// its summary, so such a run is one of every folder.
func mayBeOf(s swarm.RunSummary, dir string) bool {
	return s.Dir == dir || s.Dir == "" && s.Damaged
}

func withProblem(s swarm.RunSummary, err error) swarm.RunSummary {
	s.Problem, s.Damaged = err.Error(), errors.Is(err, swarm.ErrDamaged)
	return s
}
