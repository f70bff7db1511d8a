package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"

	"swarm"
)

// maxSummary is the largest size of a file of summaries. Runs that end after a few changes never
// reach it.
const maxSummary = 64 << 10

// Save appends a run's summary as a line to a file. The last whole line counts, so a reader finds
// the new line or the one before it. Replacing the file would make some file systems wait for the
// disk. A lost summary can be made again from the log.
func (s *Store) Save(_ context.Context, sum swarm.RunSummary) error {
	path, err := s.summaryPath(sum.ID)
	if err == nil {
		err = appendLine(path, swarm.Encode(sum))
	}
	if err != nil {
		return storage(path, "the run's summary cannot be written", err)
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
	for end := bytes.LastIndexByte(b, '\n'); end >= 0; end = bytes.LastIndexByte(b, '\n') {
		b = b[:end]
		line := b[bytes.LastIndexByte(b, '\n')+1:]
		if sum = (swarm.RunSummary{}); json.Unmarshal(line, &sum) == nil && sum.ID == run && sum.Status != "" {
			return sum, true
		}
	}
	return swarm.RunSummary{ID: run}, false
}

func (s *Store) summaryPath(run swarm.RunID) (string, error) {
	path, err := s.path(run)
	if err != nil {
		return "", err
	}
	return path[:len(path)-len(".db")] + ".jsonl", nil
}
