package sqlite

import (
	"errors"
	"io"
	"os"
)

// Room in the write-ahead log.
//
// A sync of a file that has grown also writes the file system's journal: the new blocks and the new
// size. That takes as long again as the sync of the events. So the write-ahead log is kept ahead of
// need: zeros are written past its end in steps, and commits fill them. SQLite reads a frame of
// zeros as the end of the log.
//
// Zeros never overwrite anything: the file is open for appending only, so the kernel puts them at
// its end, whatever anybody else writes meanwhile. They are written while SQLite's write lock is
// held.
const (
	roomStep    = 64 << 10
	roomMaxStep = 512 << 10
	roomSmall   = 256 << 10 // a write-ahead log up to this size grows by the small step
)

var zeros [roomMaxStep]byte

// openRoom opens the write-ahead log beside SQLite, for syncs and for room. SQLite has no locks on
// this file, so closing it drops none.
func openRoom(path string) (*os.File, error) {
	f, err := os.OpenFile(path+"-wal", os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, storage(path, "the log cannot be opened for writing", err)
	}
	return f, nil
}

// writeRoom makes the write-ahead log of a new log, with room if the disk has space.
func writeRoom(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, full := f.Write(zeros[:roomStep]); full != nil {
		err = f.Truncate(0)
	}
	return errors.Join(err, f.Close())
}

// makeRoom writes zeros past the end of the write-ahead log if SQLite has filled the last ones. A
// size that is no multiple of the step shows that, whichever process wrote: frames have another
// length. Room is only a matter of speed, so a full disk is no error here. The commit that follows
// needs less space, and reports its own error.
func (l *Log) makeRoom() {
	size, err := l.wal.Seek(0, io.SeekEnd)
	if err != nil || size%roomStep == 0 {
		return
	}
	step := int64(roomStep)
	if size > roomSmall {
		step = roomMaxStep
	}
	_, _ = l.wal.Write(zeros[:step-size%step])
}
