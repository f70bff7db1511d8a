package sqlite

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// A frame is a page in the write-ahead log.
type frame struct {
	page   int64 // the page's number
	commit int64 // for the last frame of a transaction: the pages of the database after it
	at     int64 // where the page's bytes are
	whole  bool
}

// readFrames returns the frames of a write-ahead log up to the last one that ends a transaction.
// Later ones are of a transaction that never ended. SQLite stops at the first damaged frame. This
// goes on: each frame has the checksum of all frames before it, so that the one after a damaged
// frame can be checked again.
func readFrames(path string) (frames []frame, err error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, walHeader)
	if n, err := f.ReadAt(head, 0); n < len(head) || isZero(head) {
		return nil, ignoreEOF(err) // There is room alone, or nothing.
	}
	salt, before := head[16:24], head[24:32]
	b := make([]byte, frameHeader+pageSize)
	end := 0
	for at := int64(walHeader); ; at += int64(len(b)) {
		if n, err := f.ReadAt(b, at); n < len(b) {
			return frames[:end], ignoreEOF(err)
		}
		header, page := b[:frameHeader], b[frameHeader:]
		ours := string(header[8:16]) == string(salt)
		if at == walHeader && !ours && !isZero(header) {
			salt, ours = append([]byte(nil), header[8:16]...), true // The log's header is damaged, or this frame's.
		}
		now := frame{page: int64(binary.BigEndian.Uint32(header)), commit: int64(binary.BigEndian.Uint32(header[4:])),
			at: at + frameHeader, whole: wholeFrame(before, header, page)}
		before = append([]byte(nil), header[16:24]...)
		frames = append(frames, now)
		if ours && now.whole && now.commit > 0 {
			end = len(frames)
		}
	}
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
