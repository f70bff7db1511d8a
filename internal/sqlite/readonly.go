package sqlite

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"swarm"
)

// OpenReadOnly opens a log for reading: one whose run is being driven, one whose owner died, one in a folder that cannot be
// written. It makes no log and keeps nobody from writing.
func OpenReadOnly(path string) (*Log, error) {
	if err := inspect(path); err != nil {
		return nil, err
	}
	l := newLog(path)
	l.readOnly = true
	r, err := connect(path, lib.SQLITE_OPEN_READWRITE)
	if err == nil {
		err = r.probe()
	}
	var e *sqliteError
	if errors.As(err, &e) && (e.code&0xff == lib.SQLITE_CANTOPEN || e.code&0xff == lib.SQLITE_READONLY) {
		if r != nil {
			r.close()
		}
		r, l.scrap, err = connectSealed(path)
	}
	if err != nil {
		if r != nil {
			r.close()
		}
		return nil, at(path, err)
	}
	l.r = r
	return l, nil
}

// probe makes a connection a reader's, and reads something.
func (c *conn) probe() error {
	if err := c.once("PRAGMA query_only=1"); err != nil {
		return err
	}
	_, _, err := c.number(sqlFence)
	return err
}

// connectSealed reads a log where SQLite may make no files: as it stands if its process ended well, else a copy of it, with what its
// write-ahead log still holds, in a folder for scraps.
func connectSealed(path string) (c *conn, scrap string, err error) {
	name := immutable(path)
	if pending(path) {
		if scrap, err = os.MkdirTemp("", "swarm-log-"); err != nil {
			return nil, "", storage(path, "the log lies in a folder that cannot be written, and cannot be copied", err)
		}
		name = filepath.Join(scrap, "copy.db")
		if err := errors.Join(copyFile(path, name), copyFile(path+"-wal", name+"-wal")); err != nil {
			os.RemoveAll(scrap)
			return nil, "", storage(path, "the log lies in a folder that cannot be written, and cannot be copied", err)
		}
	}
	c, err = connect(name, lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_URI)
	if err == nil {
		if err = c.probe(); err == nil {
			return c, scrap, nil
		}
		c.close()
	}
	if scrap != "" {
		os.RemoveAll(scrap)
	}
	return nil, "", err
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

func (l *Log) errReadOnly() error {
	return &swarm.Error{Kind: swarm.BadInput, File: l.path, Msg: "this log is open for reading only"}
}
