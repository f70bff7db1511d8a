package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"

	"swarm"
)

// A Store is a folder of logs: <run>.db with its write-ahead log and its locks, and <run>.jsonl
// with the run's summaries. See [swarm.Store].
type Store struct{ dir string }

// NewStore returns the store in a folder. The first run creates the folder.
func NewStore(dir string) swarm.Store { return &Store{dir} }

// Create makes the log of a new run.
func (s *Store) Create(_ context.Context, run swarm.RunID) (swarm.RunLog, error) {
	path, err := s.path(run)
	if err != nil {
		return nil, err
	}
	l, err := Create(path)
	if err != nil {
		return nil, err // not l: a nil *Log is no nil RunLog
	}
	return l, nil
}

// Open opens the log of a run. An empty file without a mark belongs to a process that is creating
// the run right now, so there is no run yet.
func (s *Store) Open(_ context.Context, run swarm.RunID, access swarm.Access) (swarm.RunLog, error) {
	path, err := s.path(run)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		if mark, err := readMark(path); err == nil && mark == 0 {
			return nil, &swarm.Error{Kind: swarm.NotFound, File: path, Msg: "there is no such run"}
		}
	}
	open := Open
	if access == swarm.ReadOnly {
		open = OpenReadOnly
	}
	l, err := open(path)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Runs lists runs by the names of their files. Ids sort by time.
func (s *Store) Runs(ctx context.Context, q swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	return func(yield func(swarm.RunEntry, error) bool) {
		ids, err := s.ids(q)
		if err != nil {
			yield(swarm.RunEntry{}, err)
			return
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				yield(swarm.RunEntry{}, err)
				return
			}
			sum, saved := s.summary(id)
			if path, err := s.path(id); err == nil && !exists(path) {
				sum.Problem, sum.Damaged = missing(path).Error(), true
			}
			if !yield(swarm.RunEntry{RunSummary: sum, Saved: saved}, nil) {
				return
			}
		}
	}
}

// ids returns the ids that match a query, newest first.
func (s *Store) ids(q swarm.RunQuery) ([]swarm.RunID, error) {
	if q.ID != "" {
		path, err := s.path(q.ID)
		if err != nil || !exists(path) && swarm.KindOf(missing(path)) == swarm.NotFound {
			return nil, nil // No run has an id that is not valid.
		}
		return []swarm.RunID{q.ID}, nil
	}
	f, err := os.Open(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storage(s.dir, "the folder cannot be read", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, storage(s.dir, "the folder cannot be read", err)
	}
	var ids []swarm.RunID
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".db")
		if base, locked := strings.CutSuffix(name, ".db.lock"); locked && !exists(s.dir+"/"+base+".db") { // left by a run whose file was deleted
			id, ok = base, swarm.KindOf(missing(s.dir+"/"+base+".db")) != swarm.NotFound
		}
		if ok && strings.HasPrefix(id, q.Prefix) && (q.Before == "" || id < string(q.Before)) && swarm.IsRunID(id) {
			ids = append(ids, swarm.RunID(id))
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// path returns the path of a run's log. An id from outside never leads out of the folder.
func (s *Store) path(run swarm.RunID) (string, error) {
	if !swarm.IsRunID(string(run)) {
		return "", swarm.Errorf(swarm.BadInput, "%s is not a run's id", swarm.Quote(string(run))).
			WithHint("write an id as `swarm ls` shows it")
	}
	return s.dir + string(os.PathSeparator) + string(run) + ".db", nil
}

// Remove deletes a run's files. It holds the owner's lock until all of them are gone, so that no
// process resumes the run meanwhile. The lock's own file goes last. The mark goes first: without it
// nobody misses the log. Then the log goes: after a crash the rest are leftovers, and half a run is
// never mistaken for a whole one.
func (s *Store) Remove(_ context.Context, run swarm.RunID, o swarm.RemoveOptions) (done swarm.Removed, err error) {
	path, err := s.path(run)
	if err != nil {
		return done, err
	}
	lock, held, err := lockForRemoval(path + ".owner")
	if lock != nil {
		defer lock.Close()
	}
	if err != nil {
		return done, storage(path, "the run cannot be removed", err)
	}
	if held {
		return done, &swarm.OwnedError{}
	}
	if o.Fence != swarm.AnyFence && exists(path) {
		if err := checkFence(path, o.Fence); err != nil {
			return done, err
		}
	}
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err != nil {
		return done, storage(s.dir, "the run cannot be removed", err)
	}
	defer root.Close()
	names := []string{".db.lock", ".db", ".db-wal", ".db-shm", ".jsonl", ".db.owner"}
	for i, end := range names {
		names[i] = string(run) + end
	}
	if o.Damaged {
		files, err := os.ReadDir(s.dir)
		if err != nil {
			return done, storage(path, "the run cannot be removed", err)
		}
		for _, f := range files {
			if strings.HasPrefix(f.Name(), string(run)+".db"+asideMark) {
				names = append(names, f.Name())
			}
		}
	}
	for _, name := range names {
		if err := removeFile(root, name, o.DryRun, &done); err != nil {
			return done, storage(path, "the run cannot be removed", err)
		}
	}
	return done, nil
}

// checkFence refuses to remove a run that a process drives without the lock, or that was driven
// since the caller looked.
func checkFence(path string, fence int64) error {
	l, err := OpenReadOnly(path)
	if err != nil {
		return err
	}
	defer l.Close()
	who, driven, err := l.leaseholder()
	switch {
	case err != nil:
		return err
	case driven:
		return &swarm.OwnedError{Owner: who}
	case who.Fence != fence:
		return swarm.ErrFenced
	}
	return nil
}

// lockForRemoval takes the owner's lock, and reports whether an owner holds it. Without the file
// there is neither.
func lockForRemoval(path string) (lock *os.File, held bool, err error) {
	lock, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err = flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return lock, false, nil
	}
	_ = lock.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, true, nil
	}
	return nil, false, err
}

// removeFile deletes a file and counts it. It deletes a link and does not follow it.
func removeFile(root *os.Root, name string, dryRun bool, done *swarm.Removed) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	done.Files++
	done.Bytes += info.Size()
	if dryRun {
		return nil
	}
	if err = root.Remove(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close does nothing: each log has its own connections.
func (s *Store) Close() error { return nil }
