package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"swarm"
)

// A damage is the place in a log where something is not what was written.
type damage struct {
	page  int64 // of the database file, from 1
	frame int64 // of the write-ahead log, from 1
	event int64
	what  string // else
}

func (d damage) Error() string {
	switch {
	case d.page > 0:
		return fmt.Sprintf("page %d of the file is not what was written", d.page)
	case d.frame > 0:
		return fmt.Sprintf("frame %d of its write-ahead log is not what was written", d.frame)
	case d.event > 0:
		return fmt.Sprintf("event %d is not what was written", d.event)
	}
	return d.what
}

// damaged is the error of a damaged log. The connection then leaves all files as they are: closing
// it would move the write-ahead log into the file, and delete it.
func (c *conn) damaged(cause error) error {
	c.leaveFiles()
	return damagedError(c.path, cause)
}

func damagedError(path string, cause error) error {
	return &swarm.Error{Kind: swarm.Storage, File: path, Err: fmt.Errorf("%w: %w", swarm.ErrDamaged, cause), Hint: hintDamaged(path)}
}

func hintDamaged(path string) string {
	return "`swarm db check " + strings.TrimSuffix(filepath.Base(path), ".db") + "` shows what is intact; nothing was changed"
}

// leaveFiles makes SQLite leave the write-ahead log alone when the connection is closed.
func (c *conn) leaveFiles() {
	const size = 16 // two arguments of a C function: on, and where to write the new state
	p := c.tls.Alloc(size)
	defer c.tls.Free(size)
	lib.Xsqlite3_db_config(c.tls, c.db, lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, libc.VaList(p, int32(1), uintptr(0)))
}
