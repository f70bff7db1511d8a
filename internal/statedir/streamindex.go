package statedir

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"swarm"
)

// An entry is the position of a group in said.jsonl. Names are stored as hashes. A collision does
// no harm, because the group itself begins with the name.
type entry struct {
	name   uint64
	offset int64
	length int64
}

func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return h.Sum64()
}

func appendEntry(b []byte, e entry) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.name)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.offset))
	return binary.LittleEndian.AppendUint64(b, uint64(e.length))
}

// moveEntries adds an offset to the positions of entries.
func moveEntries(b []byte, by int64) {
	for ; len(b) >= entrySize; b = b[entrySize:] {
		binary.LittleEndian.PutUint64(b[8:], binary.LittleEndian.Uint64(b[8:])+uint64(by))
	}
}

func entryOf(b []byte) entry {
	read := binary.LittleEndian.Uint64
	return entry{read(b), int64(read(b[8:])), int64(read(b[16:]))}
}

// A StreamsReader reads the streams of a run, while they are written or later. It has no mutex: one
// goroutine uses it and its StreamReaders.
type StreamsReader struct {
	dir string

	// The index as far as it was read. Long runs have hundreds of thousands of turns, so there is
	// no allocation per turn.
	groups []entry
	before []int32          // by group: number of the previous group of the same name, from 1; 0 = none
	last   map[uint64]int32 // by hash of a name: number of its last group
}

// ReadStreams returns the reader of a run's streams.
func (h *Home) ReadStreams(run swarm.RunID) *StreamsReader {
	return &StreamsReader{dir: h.streamDir(run)}
}

// Turn returns the reader of one turn, which was started for the n-th time. A turn without output
// has no stream, which is not an error.
func (s *StreamsReader) Turn(turn swarm.TurnID, start int) *StreamReader {
	return &StreamReader{all: s, name: streamName(string(turn), start)}
}

// readIndex reads new entries of the index.
func (s *StreamsReader) readIndex() error {
	f, err := s.open(indexName)
	if f == nil || err != nil {
		return err
	}
	defer f.Close()
	known := int64(len(s.groups)) * entrySize
	info, err := f.Stat()
	if err != nil {
		return s.unreadable(indexName, err)
	}
	more := int(info.Size()-known) / entrySize // an incomplete entry is read next time
	if more <= 0 {
		return nil
	}
	b := make([]byte, more*entrySize)
	if _, err := f.ReadAt(b, known); err != nil {
		return s.unreadable(indexName, err)
	}
	if s.last == nil {
		s.last = make(map[uint64]int32, more)
	}
	s.groups, s.before = slices.Grow(s.groups, more), slices.Grow(s.before, more)
	for ; len(b) > 0; b = b[entrySize:] {
		e := entryOf(b)
		s.groups, s.before = append(s.groups, e), append(s.before, s.last[e.name])
		s.last[e.name] = int32(len(s.groups))
	}
	return nil
}

// since returns the numbers of a turn's groups after a given one, in order.
func (s *StreamsReader) since(name string, after int32) (numbers []int32) {
	for n := s.last[hashOf(name)]; n > after; n = s.before[n-1] {
		numbers = append(numbers, n)
	}
	slices.Reverse(numbers)
	return numbers
}

// open opens a file of the run; nil = it does not exist. O_NONBLOCK keeps it from waiting for the
// writer of a named pipe that somebody has put there.
func (s *StreamsReader) open(name string) (*os.File, error) {
	f, err := os.OpenFile(s.dir+"/"+name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.unreadable(name, err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, s.unreadable(name, cmp.Or(err, errors.New("it is no file")))
	}
	return f, nil
}

func (s *StreamsReader) unreadable(name string, err error) error {
	return storageError(s.dir+"/"+name, "the stream cannot be read", err)
}
