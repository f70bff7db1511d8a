package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"swarm/internal/logbase"
)

// SQLite takes a damaged write-ahead log for the work of a crash: it forgets the first damaged frame
// and everything after it, without a word. So the number of the last durable event is also kept
// outside of SQLite's files: it is the mark, in the .lock file. A log that ends before its mark has
// lost something that was acknowledged, and is refused.
//
// The mark is written after the sync, and is not synced itself. After power loss it may be too low,
// and it is never too high. It is written through a mapping of the file, which is one store to
// memory: a system call that writes would change the file's time, for which the next sync would have
// to wait. If somebody cuts the file meanwhile, the memory behind the mapping is gone, and so is the
// mark. Then the file is made whole again.

const (
	markAt   = 8  // the mark's place in the .lock file; commits ring with the first byte
	lockSize = 17 // a byte more than the mark, so that the mark's place is on disk before it is used
)

// packMark puts a number and a checksum of it into one word, which is written whole or not at all.
func packMark(seq int64) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(seq))
	return uint64(seq)<<24 | uint64(crc32.Checksum(b[:], logbase.Castagnoli())>>8)
}

// unpackMark returns the number in a word. ok is false for a word that nobody wrote.
func unpackMark(word uint64) (seq int64, ok bool) {
	seq = int64(word >> 24)
	return seq, word == packMark(seq)
}

// A mark is the mapping of a .lock file.
type mark struct {
	f      *os.File
	mu     sync.Mutex // guards memory, which is nil when the log is closed
	memory []byte
}

// open maps the file, which an older build may have made too short.
func (m *mark) open(f *os.File) error {
	m.f = f
	err := m.lengthen()
	if err == nil {
		m.memory, err = syscall.Mmap(int(f.Fd()), 0, lockSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	return err
}

// lengthen gives the file its full length.
func (m *mark) lengthen() error {
	st, err := m.f.Stat()
	if err == nil && st.Size() < lockSize {
		_, err = m.f.WriteAt([]byte{0}, lockSize-1)
	}
	return err
}

// use calls do with the word of the mark, unless the log is closed. Access to a mapping whose file
// was cut is a fault, which would end the program.
func (m *mark) use(do func(word *atomic.Uint64)) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory == nil {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault, ok := recover().(error); ok {
			err = fault
		}
	}()
	do((*atomic.Uint64)(unsafe.Pointer(&m.memory[markAt])))
	return nil
}

// read returns the mark, and 0 for one that is gone.
func (m *mark) read() (seq int64, ok bool) {
	err := m.use(func(word *atomic.Uint64) { seq, ok = unpackMark(word.Load()) })
	return seq, ok && err == nil
}

// raise notes that everything up to an event is durable. Other processes do the same at the same
// time.
func (m *mark) raise(seq int64) error {
	store := func(word *atomic.Uint64) {
		for {
			old := word.Load()
			if was, ok := unpackMark(old); ok && was >= seq || word.CompareAndSwap(old, packMark(seq)) {
				return
			}
		}
	}
	if m.use(store) == nil {
		return nil
	}
	if err := m.lengthen(); err != nil {
		return err
	}
	return m.use(store)
}

// covers reports whether no process has acknowledged an event after this one.
func (m *mark) covers(seq int64) bool {
	acknowledged, ok := m.read()
	return ok && acknowledged <= seq
}

func (m *mark) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory == nil {
		return nil
	}
	err := syscall.Munmap(m.memory)
	m.memory = nil
	return err
}

// readMark returns the mark of a log, 0 if there is none. A damaged one counts as none: the log
// itself may be whole.
func readMark(path string) (seq int64, err error) {
	f, err := openNow(path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, storage(path, "the log cannot be read", err)
	}
	defer f.Close()
	var b [8]byte
	if n, _ := f.ReadAt(b[:], markAt); n < len(b) {
		return 0, nil // an older build made it
	}
	seq, ok := unpackMark(binary.NativeEndian.Uint64(b[:]))
	if !ok {
		return 0, nil
	}
	return seq, nil
}

// checkEnd refuses a log that ends before its mark. The mark must have been read before the
// connection reads anything, because the log may grow.
func (c *conn) checkEnd(mark int64) error {
	last, _, err := c.number("SELECT coalesce(max(seq), 0) FROM ev")
	if err == nil && last < mark {
		err = c.damaged(damage{what: fmt.Sprintf("it ends at event %d, and %d were acknowledged", last, mark)})
	}
	return err
}
