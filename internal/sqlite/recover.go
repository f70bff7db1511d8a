package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	lib "modernc.org/sqlite/lib"

	"swarm"
	"swarm/internal/logbase"
)

// asideMark stands between a log's name and the time in the names of damaged files that are kept.
const asideMark = ".damaged-"

// Recover puts a new log in the place of a damaged one, see [swarm.Recoverer]. It holds the owner's
// lock and the write lock, so that no process resumes the run or writes mail meanwhile. Until the
// new log is whole and on disk, nothing of the old one is changed.
func (s *Store) Recover(ctx context.Context, run swarm.RunID) (done swarm.LogRecovery, err error) {
	done.Run = run
	path, err := s.path(run)
	if err != nil {
		return done, err
	}
	check, err := s.Check(ctx, run, nil)
	if err != nil {
		return done, err
	}
	if !check.Damaged {
		return done, &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the log is whole: there is nothing to recover"}
	}
	owner, held, err := lockForRemoval(path + ".owner")
	if owner != nil {
		defer owner.Close()
	}
	if held {
		return done, &swarm.OwnedError{}
	}
	lock, lockErr := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err = errors.Join(err, lockErr); err != nil {
		return done, storage(path, "the log cannot be locked", err)
	}
	defer lock.Close()
	if err := flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return done, &swarm.Error{Kind: swarm.Storage, File: path, Err: errBusy, Hint: "end the process that writes to this run"}
	}
	r := &recovery{ctx: ctx, path: path, done: &done}
	defer r.cleanUp()
	if err := r.openSources(); err != nil {
		return done, err
	}
	if err := r.write(path + ".new"); err != nil {
		return done, err
	}
	if done.Events == 0 {
		_ = Remove(path + ".new")
		return done, unrecoverable(path, nothingLeft)
	}
	mark, err := readMark(path)
	if err != nil {
		return done, err
	}
	r.findLost(mark)
	r.closeSources()
	return done, r.replace()
}

const nothingLeft = "not even its first event can be read"

// unrecoverable says that nothing of a log can be saved, and why.
func unrecoverable(path, what string) error {
	run := strings.TrimSuffix(filepath.Base(path), ".db")
	return &swarm.Error{Kind: swarm.Storage, File: path,
		Err:  fmt.Errorf("%w: %w", swarm.ErrDamaged, damage{what: what}),
		Hint: "copy the files " + run + ".* of a backup; nothing was changed, and `swarm prune --damaged` deletes what is left"}
}

// A recovery reads what is intact of a log and writes a new one.
type recovery struct {
	ctx      context.Context
	path     string
	done     *swarm.LogRecovery
	sources  []*conn  // the best one first
	resealed *conn    // the source whose pages nothing vouches for
	fence    int64    // the highest one in the saved events
	scraps   []string // files and folders to be removed
}

func (r *recovery) cleanUp() {
	r.closeSources()
	for _, scrap := range r.scraps {
		os.RemoveAll(scrap)
	}
}

func (r *recovery) closeSources() {
	for _, c := range r.sources {
		c.close()
	}
	r.sources = nil
}

// openSources opens the log in three ways: as SQLite sees it, with all frames of the write-ahead log
// that are whole, and with pages whose checksum is wrong. SQLite forgets the frames after a damaged
// one. Most of them are newer versions of the same few pages, so that usually nothing is missing
// without the damaged one.
func (r *recovery) openSources() error {
	c, scrap, err := connectAnywhere(r.path)
	if scrap != "" {
		r.scraps = append(r.scraps, scrap)
	}
	if err == nil {
		c.leaveFiles()
		r.sources = append(r.sources, c)
	}
	merged := r.path + ".merged"
	r.scraps = append(r.scraps, merged)
	if err := r.merge(merged); err != nil {
		return storage(r.path, "the write-ahead log cannot be merged into a copy of the log", err)
	}
	if c, err := connectReader(immutable(merged), lib.SQLITE_OPEN_URI); err == nil {
		r.sources = append(r.sources, c)
	}
	resealed := r.path + ".resealed"
	r.scraps = append(r.scraps, resealed)
	if changed, err := reseal(merged, resealed); err != nil {
		return storage(r.path, "a copy of the log cannot be made", err)
	} else if changed {
		if c, err := connectReader(immutable(resealed), lib.SQLITE_OPEN_URI); err == nil {
			r.sources, r.resealed = append(r.sources, c), c
		}
	}
	if len(r.sources) == 0 {
		return unrecoverable(r.path, nothingLeft)
	}
	slices.SortStableFunc(r.sources, func(a, b *conn) int { return int(b.intact() - a.intact()) })
	return nil
}

// intact returns the number of the last event before the first one that is damaged or missing.
func (c *conn) intact() (last int64) {
	for more := true; more; {
		last, more, _ = c.walk(last, func(*row) bool { return true })
	}
	return last
}

// merge copies the log's file, and puts every whole frame of the write-ahead log into the copy.
func (r *recovery) merge(name string) error {
	frames, err := readFrames(r.path + "-wal")
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := copyFile(r.path, name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(frames) == 0 {
		return mendFirstPage(f)
	}
	wal, err := os.Open(r.path + "-wal")
	if err != nil {
		return err
	}
	defer wal.Close()
	page := make([]byte, pageSize)
	if _, err := f.ReadAt(page, 0); ignoreEOF(err) != nil {
		return err
	}
	sums, size := checksummed(page), int64(0)
	for _, frame := range frames {
		if !frame.whole || frame.page == 0 {
			continue
		}
		if _, err := wal.ReadAt(page, frame.at); err != nil {
			return err
		}
		if frame.page == 1 {
			sums = checksummed(page)
		}
		if sums {
			binary.BigEndian.PutUint32(page[pageSize-reserved:], pageSum(frame.page, page))
		}
		if _, err := f.WriteAt(page, (frame.page-1)*pageSize); err != nil {
			return err
		}
		if frame.commit > 0 {
			size = frame.commit * pageSize
		}
	}
	if size > 0 {
		if err := f.Truncate(size); err != nil {
			return err
		}
	}
	return mendFirstPage(f)
}

// mendFirstPage puts the first page of an empty log in the place of a damaged one. It holds the
// schema, which is the same in all logs, and counts of pages.
func mendFirstPage(f *os.File) error {
	page := make([]byte, pageSize)
	if _, err := f.ReadAt(page, 0); err != nil {
		return ignoreEOF(err)
	}
	st, err := f.Stat()
	if err != nil || !checksummed(page) {
		return err
	}
	const size, freelist, freelistEnd = 28, 32, 40
	if whole(1, page) { // SQLite refuses a file that is shorter than its header says.
		if least := int64(binary.BigEndian.Uint32(page[size:])) * pageSize; st.Size() < least {
			err = f.Truncate(least)
		}
		return err
	}
	copy(page, empty)
	binary.BigEndian.PutUint32(page[size:], uint32(st.Size()/pageSize))
	clear(page[freelist:freelistEnd])
	binary.BigEndian.PutUint32(page[pageSize-reserved:], pageSum(1, page))
	_, err = f.WriteAt(page, 0)
	return err
}

// reseal copies a log, and gives each page with a wrong checksum a good one, so that SQLite reads it.
// Another program that moves the write-ahead log into the file, as sqlite3 does when it closes a
// log, writes pages without our checksum. Nothing wrong is taken from such a page, because each
// event and each text is checked by itself.
func reseal(from, to string) (changed bool, err error) {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) { // of a recovery that was killed
		return false, err
	}
	if err := copyFile(from, to); err != nil {
		return false, err
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	page := make([]byte, pageSize)
	for number := int64(1); ; number++ {
		if n, err := f.ReadAt(page, (number-1)*pageSize); n < pageSize {
			return changed, ignoreEOF(err)
		}
		if number == 1 && !checksummed(page) {
			return false, nil
		}
		if whole(number, page) || isZero(page) {
			continue
		}
		binary.BigEndian.PutUint32(page[pageSize-reserved:], pageSum(number, page))
		if _, err := f.WriteAt(page, (number-1)*pageSize); err != nil {
			return false, err
		}
		changed = true
	}
}

// write writes the new log.
func (r *recovery) write(name string) (err error) {
	if err := Remove(name); err != nil && swarm.KindOf(err) != swarm.NotFound { // of a recovery that was killed
		return err
	}
	l, err := Create(name)
	if err != nil {
		return at(r.path, err)
	}
	defer func() {
		if err != nil {
			l.Close()
			_ = Remove(name)
			err = at(r.path, err)
		}
	}()
	if err = l.w.exec("BEGIN IMMEDIATE"); err == nil {
		err = r.copyEvents(l.w)
	}
	if err == nil {
		err = r.copyTexts(l.w)
	}
	if err == nil {
		err = r.copyOwner(l.w)
	}
	if err == nil {
		err = l.w.exec("COMMIT")
	}
	if err == nil {
		err = l.wal.Sync()
	}
	if err == nil {
		err = l.writeLock.mark.raise(r.done.Events)
	}
	if err == nil {
		err = l.Close()
	}
	return err
}

func (r *recovery) copyEvents(to *conn) (err error) {
	from, last, sum := r.sources[0], int64(0), uint32(0)
	for more := true; more; {
		var failed error
		if failed = to.exec("COMMIT"); failed == nil { // so that a long log is not held in memory
			failed = to.exec("BEGIN IMMEDIATE")
		}
		if failed = errors.Join(failed, r.ctx.Err()); failed != nil {
			return failed
		}
		last, more, err = from.walk(last, func(e *row) bool {
			sum = logbase.Sum(&to.fields, sum, e.seq, e.micros, &e.fields, e.data)
			f := &e.fields
			failed = to.exec(to.query(insert), e.seq, e.micros, text(f[0]), text(f[1]), text(f[2]), text(f[3]), text(f[4]), text(f[5]),
				text(e.data), int64(sum))
			if failed == nil && to.changed() != 1 {
				return false // A key that was there before: an old log without checksums, whose first part alone is intact.
			}
			r.done.Events = e.seq
			if string(f[0]) == string(swarm.RunOwned) {
				owned := swarm.Event{Kind: swarm.RunOwned, Data: e.data}
				if o, err := swarm.Body[swarm.Ownership](&owned); err == nil {
					r.fence = max(r.fence, o.Fence)
				}
			}
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		if err != nil && !errors.Is(err, swarm.ErrDamaged) {
			return err
		}
	}
	return nil
}

// copyTexts takes the intact texts of all sources.
func (r *recovery) copyTexts(to *conn) error {
	lost := map[string]bool{}
	unknown := int64(math.MaxInt64) // as many as the best source lacks
	for _, from := range r.sources {
		missing := int64(0)
		err := from.texts(func(hash, text []byte, damage error) error {
			switch {
			case damage == nil:
				delete(lost, string(hash))
				if err := to.exec(sqlBody, hash, text); err != nil {
					return err
				}
				r.done.Texts += to.changed()
			case hash != nil:
				lost[string(hash)] = true
			default:
				missing++
			}
			return r.ctx.Err()
		})
		if err == nil {
			unknown = min(unknown, missing)
		}
		if err != nil && !errors.Is(err, swarm.ErrDamaged) {
			return err
		}
	}
	if unknown == math.MaxInt64 {
		unknown = 0
	}
	r.done.LostTexts = int64(len(lost)) + unknown
	return nil
}

// copyOwner keeps the version of the loops, and a fence that is as high as that of every earlier
// owner. The row of the owner may be an old version: its newest frame may be the damaged one.
func (r *recovery) copyOwner(to *conn) error {
	loops, fence := "", r.fence
	for _, from := range r.sources {
		if h, err := from.holder(); err == nil && from != r.resealed {
			loops, fence = max(loops, h.loops), max(fence, h.fence)
		}
	}
	if loops == "" && r.resealed != nil { // The fence of all owners is in the events.
		if h, err := r.resealed.holder(); err == nil {
			loops = h.loops
		}
	}
	return to.exec(sqlOwn, loops, int64(0), int64(0), fence, int64(0), int64(0))
}

// findLost finds out what is lost. Of lost events it believes nothing but the names of their turns.
func (r *recovery) findLost(mark int64) {
	last := mark
	for _, from := range r.sources {
		if from == r.resealed {
			continue
		}
		s, err := from.prepare("SELECT seq, turn FROM ev WHERE seq>? ORDER BY seq DESC")
		if err != nil || s.bind(r.done.Events) != nil {
			continue
		}
		for {
			ok, err := s.next()
			if err != nil || !ok {
				break
			}
			last = max(last, s.int64(0))
			if turn := swarm.TurnID(s.text(1)); turn != "" && !slices.Contains(r.done.Turns, turn) {
				r.done.Turns = append(r.done.Turns, turn)
			}
		}
		s.done()
	}
	slices.Sort(r.done.Turns)
	r.done.LostEvents = max(0, last-r.done.Events)
}

// replace keeps the damaged files under other names and puts the new log in their place. After a
// crash in between, the log is refused as before, because its mark is replaced last.
func (r *recovery) replace() error {
	aside := r.path + asideMark + time.Now().UTC().Format("20060102-150405.000")
	summary := r.path[:len(r.path)-len(".db")] + ".jsonl"
	for _, move := range [][2]string{{r.path + ".lock", aside + ".lock"}, {r.path, aside}} {
		if err := os.Link(move[0], move[1]); err != nil {
			return storage(r.path, "the damaged log cannot be kept", err)
		}
		r.done.Kept = append(r.done.Kept, move[1])
	}
	for _, move := range [][2]string{{r.path + "-wal", aside + "-wal"}, {summary, aside + ".jsonl"}} {
		if err := os.Rename(move[0], move[1]); err == nil {
			r.done.Kept = append(r.done.Kept, move[1])
		} else if !errors.Is(err, os.ErrNotExist) {
			return storage(r.path, "the damaged log cannot be kept", err)
		}
	}
	for _, side := range []string{"-shm", ".new-wal", ".new-shm"} {
		if err := os.Remove(r.path + side); err != nil && !errors.Is(err, os.ErrNotExist) {
			return storage(r.path, "the recovered log cannot be put in place", err)
		}
	}
	for _, end := range []string{"", ".lock"} {
		if err := os.Rename(r.path+".new"+end, r.path+end); err != nil {
			return storage(r.path, "the recovered log cannot be put in place", err)
		}
	}
	slices.Sort(r.done.Kept)
	return syncDir(filepath.Dir(r.path))
}
