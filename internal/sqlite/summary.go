package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"syscall"

	"swarm"
	"swarm/internal/logbase"
)

// maxSummary is the largest size of a file of summaries. Runs that end after a few changes never
// reach it.
const maxSummary = 64 << 10

// Save appends a run's summary as a line to a file. The last line counts. If it is not whole, there
// is no summary: the line before it may say that a resumed run has ended. Replacing the file would
// make some file systems wait for the disk. A lost summary is made again from the log.
func (s *Store) Save(_ context.Context, sum swarm.RunSummary) error {
	path, err := s.summaryPath(sum.ID)
	if err == nil {
		err = appendLine(path, summed(swarm.Encode(sum)))
	}
	if err != nil {
		return storage(path, "the run's summary cannot be written", err)
	}
	return nil
}

// summed puts a line's checksum in front of it.
func summed(line []byte) []byte {
	return append(fmt.Appendf(nil, "%08x ", crc32.Checksum(line, logbase.Castagnoli())), line...)
}

// unsummed returns a line without its checksum. A damaged line is nil. Lines of older builds have
// no checksum: they begin with a brace, which one flipped bit does not make of any digit.
func unsummed(line []byte) []byte {
	const digits = 9
	switch {
	case len(line) > 0 && line[0] == '{':
		return line
	case len(line) > digits && bytes.Equal(summed(line[digits:]), line):
		return line[digits:]
	}
	return nil
}

func appendLine(path string, line []byte) error {
	f, err := openRegular(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > maxSummary {
		if err := f.Truncate(0); err != nil { // A reader at this instant makes the summary from the log.
			return err
		}
		size = 0
	}
	if size > 0 { // After a crash the last line may be incomplete.
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// openRegular opens a regular file. A pipe, or a link to a device, would keep the caller waiting.
func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, errors.New("it is not a file"))
	}
	return f, nil
}

// openNow opens a file for reading. It never waits: a FIFO in the file's place would block the reader
// for good, and with it every command that lists runs.
func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// summary returns the summary that was saved last.
func (s *Store) summary(run swarm.RunID) (sum swarm.RunSummary, ok bool) {
	path, err := s.summaryPath(run)
	if err != nil {
		return swarm.RunSummary{ID: run}, false
	}
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return swarm.RunSummary{ID: run}, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2*maxSummary)) // A larger file is not ours.
	if err != nil {
		return swarm.RunSummary{ID: run}, false
	}
	b, ended := bytes.CutSuffix(b, []byte{'\n'})
	line := unsummed(b[bytes.LastIndexByte(b, '\n')+1:])
	if !ended || json.Unmarshal(line, &sum) != nil || sum.ID != run || sum.Status == "" {
		return swarm.RunSummary{ID: run}, false
	}
	return sum, true
}

func (s *Store) summaryPath(run swarm.RunID) (string, error) {
	path, err := s.path(run)
	if err != nil {
		return "", err
	}
	return path[:len(path)-len(".db")] + ".jsonl", nil
}
