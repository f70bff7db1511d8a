package sqlite

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"swarm"
)

// OpenReadOnly opens a log for reading, in any state: a process drives its run, its owner died, or
// its folder cannot be written. It creates no log and blocks no writer.
func OpenReadOnly(path string) (*Log, error) {
	l := newLog(path)
	l.readOnly = true
	mark, err := readMark(path)
	if err == nil {
		err = inspect(path)
	}
	if err == nil || sealed(err) {
		l.r, l.scrap, err = connectAnywhere(path)
	}
	if err == nil {
		if err = l.r.checkEnd(mark); err != nil {
			err = errors.Join(err, l.closeReader())
		}
	}
	if err != nil {
		return nil, at(path, err)
	}
	return l, nil
}

// connectAnywhere makes a connection that writes nothing, also in a folder that cannot be written.
// The caller removes the scrap folder, if one is returned.
func connectAnywhere(path string) (c *conn, scrap string, err error) {
	c, err = connectReader(path, 0)
	switch {
	case !sealed(err):
	case pending(path): // SQLite needs a file beside the log to read the pending events.
		c, scrap, err = connectCopy(path)
	default:
		c, err = connectReader(immutable(path), lib.SQLITE_OPEN_URI)
	}
	if err == nil {
		c.path = path
	}
	return c, scrap, err
}

// connectReader makes a connection that writes nothing, and checks that it can read.
func connectReader(name string, flags int32) (*conn, error) {
	c, err := connect(name, flags|lib.SQLITE_OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	if err = c.once("PRAGMA query_only=1"); err == nil {
		_, _, err = c.number("PRAGMA user_version")
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// sealed reports whether an error comes from a folder in which SQLite may create no files.
func sealed(err error) bool {
	var e *sqliteError
	return errors.As(err, &e) && (e.code&0xff == lib.SQLITE_CANTOPEN || e.code&0xff == lib.SQLITE_READONLY)
}

// connectCopy reads a copy of a log, in a temporary folder.
func connectCopy(path string) (c *conn, scrap string, err error) {
	scrap, err = os.MkdirTemp("", "swarm-log-")
	if err != nil {
		return nil, "", storage(path, "the log can be read neither in its folder nor from a copy", err)
	}
	name := filepath.Join(scrap, "copy.db")
	if err = errors.Join(copyFile(path, name), copyFile(path+"-wal", name+"-wal")); err != nil {
		err = storage(path, "the log can be read neither in its folder nor from a copy", err)
	}
	if err == nil {
		err = inspect(name)
	}
	if err == nil {
		c, err = connectReader(name, 0)
	}
	if err != nil {
		os.RemoveAll(scrap)
		return nil, "", err
	}
	return c, scrap, nil
}

func copyFile(from, to string) error {
	src, err := openNow(from)
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
