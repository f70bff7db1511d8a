package statedir

import (
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

// An entry of the index is the place of a group in said.jsonl. Names are known by their hash: a group begins with the name itself.
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

// moveEntries moves the places of some entries.
func moveEntries(b []byte, by int64) {
	for ; len(b) >= entrySize; b = b[entrySize:] {
		binary.LittleEndian.PutUint64(b[8:], binary.LittleEndian.Uint64(b[8:])+uint64(by))
	}
}

func entryOf(b []byte) entry {
	return entry{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint64(b[16:]))}
}

// A StreamsReader reads what the turns of a run say, while they say it or later. It belongs to one goroutine.
type StreamsReader struct {
	dir string

	// The index as far as it was read: long runs have hundreds of thousands of turns, so that nothing is allocated for each.
	groups []entry
	before []int32          // by group: the number of the group before it that has the same name, from 1; 0 = none
	last   map[uint64]int32 // by the hash of a name: the number of its last group
}

// ReadStreams reads what the turns of a run say.
func (h *Home) ReadStreams(run swarm.RunID) *StreamsReader {
	return &StreamsReader{dir: h.streamDir(run)}
}

// Turn reads what a turn says that was started for the n-th time. A turn that has said nothing has no stream, which is no error.
func (s *StreamsReader) Turn(turn string, start int) *StreamReader {
	return &StreamReader{all: s, name: streamName(turn, start)}
}

// learn reads what is new in the index.
func (s *StreamsReader) learn() error {
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
	more := int(info.Size()-known) / entrySize // half an entry is there another time
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

// since are the numbers of the groups of a turn that come after one of them, in order.
func (s *StreamsReader) since(name string, after int32) (numbers []int32) {
	for n := s.last[hashOf(name)]; n > after; n = s.before[n-1] {
		numbers = append(numbers, n)
	}
	slices.Reverse(numbers)
	return numbers
}

// open opens a file of the run; nil = it is not there.
func (s *StreamsReader) open(name string) (*os.File, error) {
	f, err := os.OpenFile(s.dir+"/"+name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.unreadable(name, err)
	}
	return f, nil
}

func (s *StreamsReader) unreadable(name string, err error) error {
	return &swarm.Error{Kind: swarm.Storage, File: s.dir + "/" + name, Msg: "the stream cannot be read", Err: swarm.WithoutPath(err)}
}
