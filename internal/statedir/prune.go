package statedir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarm"
)

// PruneOptions select what to delete.
type PruneOptions struct {
	Now         time.Time
	OlderThan   time.Duration              // time since a run ended or was abandoned
	OutputsOnly bool                       // delete only the copies of outputs
	DryRun      bool                       // delete nothing, only report
	Damaged     bool                       // also delete runs whose log is damaged, and what recoveries kept of one
	Dir         string                     // only runs that were started here; "" = anywhere
	Spare       func(run swarm.RunID) bool // reports runs that are not to be deleted; nil = none
}

// Pruned is what was deleted of a run.
type Pruned struct {
	ID     string       `json:"id"`
	Status swarm.Status `json:"status,omitempty"` // "" = leftovers without a log
	Ended  time.Time    `json:"ended,omitzero"`
	Files  int          `json:"files"`
	Bytes  int64        `json:"bytes"`
}

// perRun are the folders that have a subfolder for every run.
var perRun = []string{"outputs", "streams", "trees", "artifacts", "work"}

// Prune deletes the files of old runs and returns what it deleted. It never touches a run that a
// process drives, nor a file outside of the state folder, because os.Root follows no link out of
// it. After an error it continues with the other runs, unless a shared store is away, and returns the
// first error. A run whose log cannot be looked at stays, with all its files.
func (h *Home) Prune(opt PruneOptions) ([]Pruned, error) {
	if h.shared != nil && !opt.DryRun { // a machine without files of its own can still remove runs
		if err := h.Make(); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(h.dir)
	switch {
	case err == nil:
		defer root.Close()
	case h.shared == nil || !errors.Is(err, fs.ErrNotExist):
		return nil, storageError(h.dir, "the state folder cannot be read", err)
	}
	ids, err := h.prunable()
	if err != nil {
		return nil, err
	}
	if opt.Spare != nil { // before any run is deleted: it may depend on the logs of others
		ids = slices.DeleteFunc(ids, func(id string) bool { return opt.Spare(swarm.RunID(id)) })
	}
	var all []Pruned
	var first error
	for _, id := range ids {
		p, err := h.pruneRun(root, id, opt)
		if err != nil && first == nil {
			first = &swarm.Error{Kind: swarm.Storage, Msg: "the run " + id + " cannot be deleted", Err: err, Hint: swarm.HintOf(err)}
		}
		if p.Files > 0 {
			all = append(all, p)
		}
		if h.shared != nil && swarm.KindOf(err) == swarm.Storage && !errors.Is(err, swarm.ErrDamaged) {
			break // the store is away, and each further run would wait for it
		}
	}
	return all, first
}

// Delete deletes all files of one run, unless a process drives it.
func (h *Home) Delete(run swarm.RunID, now time.Time) error {
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return storageError(h.dir, "the state folder cannot be read", err)
	}
	defer root.Close()
	_, err = h.pruneRun(root, string(run), PruneOptions{Now: now})
	return err
}

// prunable returns the ids of all runs, the oldest first. It includes runs whose log is
// gone and that have leftover files only. What is a leftover is never decided by the absence of a log alone:
//   - The files of runs in the state folder have places of their own, so the folder of logs must have
//     had the log. If that folder is not there, or is empty, it may be on a disk that is not mounted,
//     and nothing is a leftover.
//   - A shared store must say that it had the run and that the run was removed. The store may be
//     another one than before, or one that was set back.
func (h *Home) prunable() ([]string, error) {
	var ids []string
	for entry, err := range h.Store.Runs(context.Background(), swarm.RunQuery{}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, string(entry.ID))
	}
	leftovers, err := h.leftovers(ids)
	if err != nil {
		return nil, err
	}
	ids = append(ids, leftovers...)
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// leftovers returns the ids of runs that have files here and are known to have no log.
func (h *Home) leftovers(runs []string) (ids []string, err error) {
	if h.shared == nil {
		names, err := namesIn(h.in("runs"))
		if err != nil || len(names) == 0 {
			return nil, err // nothing is known of any log
		}
		for _, name := range names {
			if id, _, ok := strings.Cut(name, "."); ok {
				ids = append(ids, id)
			}
		}
	}
	for _, folder := range perRun {
		names, err := namesIn(h.files(folder))
		if err != nil {
			return nil, err
		}
		ids = append(ids, names...)
	}
	with := make(map[string]bool, len(runs)) // a log
	for _, id := range runs {
		with[id] = true
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !swarm.IsRunID(id) || with[id] })
	if h.shared == nil || len(ids) == 0 {
		return ids, nil
	}
	asked := make([]swarm.RunID, len(ids))
	for i, id := range ids {
		asked[i] = swarm.RunID(id)
	}
	removed, err := h.shared.Removed(context.Background(), asked)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(removed, swarm.RunID(id)) }), nil
}

// beingMade is the age below which a run without events may be one that a process is just creating.
const beingMade = time.Minute

// pruneRun deletes a run that ended or was abandoned long enough ago. The fence protects against a
// race: the store refuses to remove the log if a process has owned the run since lastState.
func (h *Home) pruneRun(root *os.Root, id string, opt PruneOptions) (Pruned, error) {
	s, changed, fence, driven, err := h.lastState(swarm.RunID(id))
	var damage error
	switch {
	case driven || h.shared != nil && h.isLive(swarm.RunID(id)): // the store may be a copy of the one in which the run is driven
		return Pruned{}, nil
	case errors.Is(err, swarm.ErrDamaged):
		damage = err
	case err != nil && h.shared != nil: // a file in the state folder that is no log is deleted
		return Pruned{}, err
	}
	p := Pruned{ID: id, Status: s.Status, Ended: s.Ended}
	if p.Ended.IsZero() {
		if p.Ended = newest(root, h.pathsOf(id)); changed.After(p.Ended) { // another machine may have the files
			p.Ended = changed
		}
	}
	least := opt.OlderThan
	if s.Started.IsZero() {
		least = max(least, beingMade)
	}
	if opt.Dir != "" && s.Dir != opt.Dir || opt.Now.Sub(p.Ended) < least {
		return Pruned{}, nil
	}
	if damage != nil && !opt.Damaged {
		return Pruned{}, damage
	}
	folders := perRun
	if opt.OutputsOnly {
		folders = []string{"outputs"}
	} else {
		removing := swarm.RemoveOptions{Fence: fence, DryRun: opt.DryRun, Damaged: opt.Damaged}
		removed, err := h.Store.Remove(context.Background(), swarm.RunID(id), removing)
		var owned *swarm.OwnedError
		if errors.As(err, &owned) || errors.Is(err, swarm.ErrFenced) {
			return Pruned{}, nil // a process has resumed it meanwhile
		}
		p.Files, p.Bytes = removed.Files, removed.Bytes
		if err != nil {
			return p, err
		}
	}
	for _, folder := range folders {
		path, err := filepath.Rel(h.dir, h.ofRun(folder, swarm.RunID(id)))
		if err == nil {
			err = remove(root, path, opt.DryRun, &p)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// lastState returns the summary of a run, when its log was changed, its current fence, and whether a
// process drives it. If the log is damaged, the error says so. Any other error means that nothing is
// known of the run.
func (h *Home) lastState(id swarm.RunID) (s swarm.RunSummary, changed time.Time, fence int64, driven bool, err error) {
	entry, _, err := h.lookup(id)
	if err != nil {
		return s, changed, 0, false, err
	}
	fence = swarm.AnyFence
	log, err := h.Store.Open(context.Background(), id, swarm.ReadOnly)
	if err == nil {
		var who swarm.Owner
		if who, _, err = log.Owner(context.Background()); err == nil {
			fence = who.Fence
		}
		_ = log.Close()
	}
	if errors.Is(err, swarm.ErrDamaged) {
		s, driven, _ = h.current(entry)
		return s, entry.Changed, fence, driven, swarm.Errorf(swarm.Storage, "%w", err).
			WithHint("`swarm db recover %s` saves what is intact; `swarm prune --damaged` deletes damaged runs too", id)
	}
	if err == nil || swarm.KindOf(err) == swarm.NotFound || h.shared == nil { // a file that is no log still has a summary
		s, driven, err = h.current(entry) // not saved: the times of the files show when the run was abandoned
	}
	return s, entry.Changed, fence, driven, err
}

// pathsOf returns the paths at which files of a run may be, in the state folder.
func (h *Home) pathsOf(id string) (paths []string) {
	if h.shared == nil {
		paths = []string{"runs/" + id + ".db", "runs/" + id + ".db-wal", "runs/" + id + ".jsonl"}
	}
	for _, folder := range perRun {
		if path, err := filepath.Rel(h.dir, h.ofRun(folder, swarm.RunID(id))); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// newest returns the time of the last change among these paths. Without a state folder there is none.
func newest(root *os.Root, paths []string) (last time.Time) {
	if root == nil {
		return last
	}
	for _, path := range paths {
		if info, err := root.Lstat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// remove deletes a file, or a folder with its content, and counts the files. It deletes links
// without following them. Without a state folder there is nothing to delete.
func remove(root *os.Root, path string, dryRun bool, p *Pruned) error {
	if root == nil {
		return nil
	}
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		dir, err := root.Open(path)
		if err != nil {
			return err
		}
		names, err := dir.Readdirnames(-1)
		dir.Close()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := remove(root, path+"/"+name, dryRun, p); err != nil {
				return err
			}
		}
	} else {
		p.Files++
		p.Bytes += info.Size()
	}
	if dryRun {
		return nil
	}
	err = root.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
