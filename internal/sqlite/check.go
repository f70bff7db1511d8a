package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"swarm"
)

// A checker reads all of a log, and goes on after damage.
type checker struct {
	ctx    context.Context
	path   string
	tell   func(part string, done, total int64)
	report swarm.LogCheck
	inWAL  map[int64]bool // pages whose newest version is in the write-ahead log
}

// Check reads all of a log, see [swarm.Recoverer].
func (s *Store) Check(ctx context.Context, run swarm.RunID, progress func(part string, done, total int64)) (swarm.LogCheck, error) {
	path, err := s.path(run)
	if err != nil {
		return swarm.LogCheck{}, err
	}
	if !exists(path) {
		return swarm.LogCheck{}, missing(path)
	}
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	k := &checker{ctx: ctx, path: path, tell: progress, report: swarm.LogCheck{Run: run, File: path}, inWAL: map[int64]bool{}}
	mark, err := readMark(path) // before the events, which may grow
	for _, check := range []func() error{k.frames, k.pages, func() error { return k.content(mark) }} {
		if err == nil {
			err = check()
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	return k.report, err
}

func (k *checker) add(part swarm.LogPart) {
	k.report.Damaged = k.report.Damaged || part.Damaged > 0
	k.report.Parts = append(k.report.Parts, part)
}

// frames checks the write-ahead log.
func (k *checker) frames() error {
	frames, err := readFrames(k.path + "-wal")
	if err != nil {
		return storage(k.path, "the write-ahead log cannot be read", err)
	}
	part := swarm.LogPart{Part: "write-ahead log", Checked: int64(len(frames))}
	var bad []int64
	for i, f := range frames {
		if f.whole {
			k.inWAL[f.page] = true
		} else {
			bad = append(bad, int64(i+1))
		}
	}
	part.Damaged, part.Note = int64(len(bad)), numbers("frame", bad)
	k.add(part)
	return nil
}

// pages checks the file's pages by their checksums. A page that is zero may have been freed before
// it was ever written. If it is in use, the events or texts on it are missed.
func (k *checker) pages() error {
	f, err := openRegular(k.path, os.O_RDONLY)
	if err != nil {
		return storage(k.path, "the log cannot be read", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return storage(k.path, "the log cannot be read", err)
	}
	part := swarm.LogPart{Part: "pages"}
	page := make([]byte, pageSize)
	if n, err := f.ReadAt(page[:100], 0); n < 100 {
		part.Damaged, part.Note = 1, "the file has no header"
		k.add(part)
		return ignoreEOF(err)
	}
	if !checksummed(page) {
		part.Note = "an older build wrote this log: only texts have checksums"
		k.add(part)
		return nil
	}
	total := st.Size() / pageSize
	var bad []int64
	for number := int64(1); number <= total && k.ctx.Err() == nil; number++ {
		k.tell(part.Part, number, total)
		good := false
		for range 3 { // A running process may be writing this page.
			if n, err := f.ReadAt(page, (number-1)*pageSize); n < pageSize {
				return storage(k.path, "the log cannot be read", err)
			}
			if good = whole(number, page) || isZero(page) || k.inWAL[number]; good {
				break
			}
		}
		part.Checked++
		if !good {
			bad = append(bad, number)
		}
	}
	part.Damaged, part.Note = int64(len(bad)), numbers("page", bad)
	if st.Size()%pageSize != 0 {
		part.Damaged++
		part.Note = strings.TrimPrefix(part.Note+"; the file ends in the middle of a page", "; ")
	}
	k.add(part)
	return nil
}

// content checks what SQLite reads.
func (k *checker) content(mark int64) error {
	c, scrap, err := connectAnywhere(k.path)
	if err != nil {
		k.add(swarm.LogPart{Part: "events", Damaged: 1, Note: plain(err)})
		return nil
	}
	c.leaveFiles()
	defer func() {
		c.close()
		os.RemoveAll(scrap)
	}()
	last, _, err := c.number("SELECT max(seq) FROM ev")
	if err != nil {
		last = 0
	}
	part := swarm.LogPart{Part: "events"}
	for more := true; more && k.ctx.Err() == nil; {
		part.Checked, more, err = c.walk(part.Checked, func(*row) bool { return true })
		if k.tell(part.Part, part.Checked, last); err != nil {
			part.Damaged = max(1, last-part.Checked)
			part.Note = plain(err)
			if part.Checked > 0 {
				part.Note += fmt.Sprintf("; events 1 to %d are intact", part.Checked)
			}
			break
		}
	}
	k.report.Intact = part.Checked
	k.add(part)
	texts := swarm.LogPart{Part: "texts"}
	var lost []string
	const unreadable = "some cannot be read"
	err = c.texts(func(hash, text []byte, err error) error {
		texts.Checked++
		if err != nil {
			texts.Damaged++
			switch {
			case hash != nil:
				lost = append(lost, hex.EncodeToString(hash)[:12])
			case !slices.Contains(lost, unreadable):
				lost = append(lost, unreadable)
			}
		}
		k.tell(texts.Part, texts.Checked, texts.Checked)
		return k.ctx.Err()
	})
	if err := k.ctx.Err(); err != nil {
		return err
	}
	if err != nil { // The other texts could not be read.
		texts.Damaged++
		lost = append(lost, plain(err))
	}
	texts.Note = strings.Join(lost[:min(5, len(lost))], ", ")
	k.add(texts)
	k.tell("index", 0, 0)
	k.add(c.checkIndex())
	end := swarm.LogPart{Part: "end", Checked: mark}
	if mark == 0 && last > 0 && c.sums {
		end.Note = "the lock file is missing or damaged, so a lost end would not be noticed"
	}
	if last < mark {
		end.Damaged, end.Note = mark-last, fmt.Sprintf("the log ends at event %d, and %d were acknowledged", last, mark)
	}
	k.add(end)
	return nil
}

// checkIndex has SQLite compare the indices with the tables.
func (c *conn) checkIndex() swarm.LogPart {
	part := swarm.LogPart{Part: "index", Checked: 1}
	s, err := c.prepare("PRAGMA integrity_check(5)")
	if err != nil {
		part.Damaged, part.Note = 1, plain(err)
		return part
	}
	defer s.done()
	for {
		ok, err := s.next()
		switch {
		case err != nil:
			part.Damaged, part.Note = 1, plain(err)
			return part
		case !ok:
			return part
		}
		if text := s.text(0); text != "ok" {
			part.Damaged = 1
			for line := range strings.Lines(text) {
				if part.Note = strings.TrimSpace(line); !strings.HasPrefix(line, "***") { // a heading
					break
				}
			}
		}
	}
}

// texts calls f with all texts, and with an error for each that is damaged. After a damaged page it
// goes on with the texts on other pages.
func (c *conn) texts(f func(hash, text []byte, err error) error) error {
	pages, _, _ := c.number("PRAGMA page_count")
	most, _, err := c.number("SELECT max(rowid) FROM body")
	counted := err == nil && most <= 128*pages // A page holds fewer. A recovery also reads pages that may be wrong.
	if !counted {
		most = min(128*pages, 1<<20)
	}
	s, err := c.prepare("SELECT hash, data FROM body WHERE rowid=?")
	if err != nil {
		return err
	}
	missing := fmt.Errorf("%w: a text cannot be read", swarm.ErrDamaged)
	said := false
	for id := int64(1); id <= most; id++ {
		if err := s.bind(id); err != nil {
			return err
		}
		ok, err := s.next()
		switch {
		case errors.Is(err, swarm.ErrDamaged) && !counted && said:
			err = nil // nobody knows how many there were
		case errors.Is(err, swarm.ErrDamaged):
			said = true
			err = f(nil, nil, missing)
		case err != nil:
		case ok:
			hash, text := s.view(0), s.view(1)
			if sum := sha256.Sum256(text); string(sum[:]) != string(hash) {
				err = f(hash, nil, missing)
			} else {
				err = f(hash, text, nil)
			}
		}
		s.done()
		if err != nil {
			return err
		}
	}
	return nil
}

// numbers lists the places of damage, the first few of them.
func numbers(what string, all []int64) string {
	if len(all) == 0 {
		return ""
	}
	const most = 5
	texts := make([]string, 0, most)
	for _, n := range all[:min(most, len(all))] {
		texts = append(texts, fmt.Sprint(n))
	}
	if len(all) > most {
		texts = append(texts, "…")
	}
	return what + " " + strings.Join(texts, ", ")
}

// plain returns an error's text without the file's name.
func plain(err error) string {
	var e *swarm.Error
	if errors.As(err, &e) {
		return strings.TrimPrefix(e.Text(), swarm.ErrDamaged.Error()+": ")
	}
	return err.Error()
}
