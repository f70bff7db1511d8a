package sqlite

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"syscall"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"swarm"
)

// A conn is one connection to SQLite's C interface. On the path of an append, database/sql would
// cost more than the statement itself. One goroutine at a time may use it.
type conn struct {
	path   string
	tls    *libc.TLS
	db     uintptr
	out    uintptr // eight bytes for results that C returns by pointer
	args   uintptr // the texts of bound arguments, outside Go's heap
	room   int     // the size of args in bytes
	stmts  map[string]*stmt
	names  map[string]string // interned texts: kinds, agents, tasks, receivers
	sums   bool              // pages and events have checksums; older builds wrote none
	fields []byte            // the fields of one event, for its checksum
}

// A stmt is a prepared statement.
type stmt struct {
	c *conn
	p uintptr
}

const (
	waitForLocks = 10 * time.Second // for SQLite's own locks; the write lock makes waiting rare
	maxNames     = 1 << 14
	keptRoom     = 1 << 20 // bytes for arguments that a connection keeps
)

var patchOnce sync.Once

// connect opens the file, which must exist.
func connect(path string, flags int32) (*conn, error) {
	patchOnce.Do(lib.PatchIssue199) // The driver does this in an init function: it sets the page size on linux/arm64.
	c := &conn{path: path, tls: libc.NewTLS(), stmts: map[string]*stmt{}, names: map[string]string{}}
	c.out = lib.Xsqlite3_malloc(c.tls, 8)
	name, err := libc.CString(path)
	if err != nil || c.out == 0 {
		return nil, swarm.Errorf(swarm.Storage, "no memory to open %s", path)
	}
	if err := register(c.tls); err != nil {
		return nil, storage(path, "the log cannot be opened", err)
	}
	rc := lib.Xsqlite3_open_v2(c.tls, name, c.out, flags|lib.SQLITE_OPEN_NOMUTEX, vfs.name)
	libc.Xfree(c.tls, name)
	c.db = c.pointer()
	if rc != lib.SQLITE_OK {
		err := c.fail(rc)
		c.close()
		return nil, err
	}
	lib.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	lib.Xsqlite3_busy_timeout(c.tls, c.db, int32(waitForLocks.Milliseconds()))
	if rc := lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, c.out); rc == lib.SQLITE_OK {
		c.sums = isChecked(c.pointer())
	}
	return c, nil
}

// close closes the connection. The last connection to a file makes a checkpoint: it moves the
// write-ahead log into the file.
func (c *conn) close() error {
	for _, s := range c.stmts {
		lib.Xsqlite3_finalize(c.tls, s.p)
	}
	c.stmts = nil
	rc := lib.Xsqlite3_close_v2(c.tls, c.db)
	lib.Xsqlite3_free(c.tls, c.args)
	lib.Xsqlite3_free(c.tls, c.out)
	vfs.damages.Delete(c.tls)
	c.tls.Close()
	if rc != lib.SQLITE_OK {
		return swarm.Errorf(swarm.Storage, "%s could not be closed: SQLite says %d", c.path, rc)
	}
	return nil
}

func (c *conn) pointer() uintptr {
	return uintptr(binary.NativeEndian.Uint64(libc.GoBytes(c.out, 8)))
}

// A sqliteError is an error of SQLite, with the system's reason if there is one.
type sqliteError struct {
	code  int32
	msg   string
	errno syscall.Errno
}

func (e *sqliteError) Error() string {
	if e.errno != 0 {
		return fmt.Sprintf("%s (%v)", e.msg, e.errno)
	}
	return e.msg
}

func (e *sqliteError) Unwrap() error {
	if e.errno != 0 {
		return e.errno
	}
	return nil
}

// fail makes an error of a result code.
func (c *conn) fail(rc int32) error {
	cause := &sqliteError{code: rc, msg: libc.GoString(lib.Xsqlite3_errstr(c.tls, rc))}
	e := &swarm.Error{Kind: swarm.Storage, File: c.path, Msg: "the log cannot be used", Err: cause}
	if at, ok := vfs.damages.Load(c.tls); ok && rc == lib.SQLITE_IOERR_DATA {
		return c.damaged(at.(damage))
	}
	switch rc & 0xff {
	case lib.SQLITE_IOERR, lib.SQLITE_FULL, lib.SQLITE_CANTOPEN:
		cause.errno = syscall.Errno(lib.Xsqlite3_system_errno(c.tls, c.db))
	}
	switch rc & 0xff {
	case lib.SQLITE_NOTADB:
		e.Kind, e.Msg = swarm.BadInput, "this is no log of a run"
	case lib.SQLITE_CORRUPT:
		return c.damaged(cause)
	case lib.SQLITE_FULL:
		cause.errno = syscall.ENOSPC
	case lib.SQLITE_IOERR:
		e.Msg = "the disk failed"
	case lib.SQLITE_READONLY:
		e.Msg = "the log cannot be written"
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		e.Msg, e.Hint = "the log stays locked by another program", "end the program that has it open, a database browser perhaps"
	case lib.SQLITE_ERROR:
		cause.msg = libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)) // the message names the missing table or column
		return c.damaged(cause)
	}
	if cause.errno == syscall.ENOSPC {
		e.Msg, e.Hint = "the disk is full", "make room, then resume the run"
	}
	return e
}

// prepare returns the statement for this text. It is compiled at the first call.
func (c *conn) prepare(sql string) (*stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	text, err := libc.CString(sql)
	if err != nil {
		return nil, c.fail(lib.SQLITE_NOMEM)
	}
	rc := lib.Xsqlite3_prepare_v3(c.tls, c.db, text, int32(len(sql)), lib.SQLITE_PREPARE_PERSISTENT, c.out, 0)
	libc.Xfree(c.tls, text)
	if rc != lib.SQLITE_OK {
		return nil, c.fail(rc)
	}
	s := &stmt{c: c, p: c.pointer()}
	c.stmts[sql] = s
	return s, nil
}

// exec runs a statement that has no rows.
func (c *conn) exec(sql string, args ...any) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer s.done()
	if err := s.bind(args...); err != nil {
		return err
	}
	_, err = s.next()
	return err
}

// once runs a statement that takes effect when it is compiled, as some pragmas do.
func (c *conn) once(sql string) error {
	err := c.exec(sql)
	if s := c.stmts[sql]; s != nil {
		lib.Xsqlite3_finalize(c.tls, s.p)
		delete(c.stmts, sql)
	}
	return err
}

// number returns the one number that a statement selects. If there is no row, ok is false.
func (c *conn) number(sql string, args ...any) (n int64, ok bool, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, false, err
	}
	defer s.done()
	if err := s.bind(args...); err != nil {
		return 0, false, err
	}
	ok, err = s.next()
	if ok {
		n = s.int64(0)
	}
	return n, ok, err
}

// changed returns how many rows the last statement wrote.
func (c *conn) changed() int64 { return lib.Xsqlite3_changes64(c.tls, c.db) }

// reserve makes room for the texts of one statement's arguments. It gives back what an unusually
// large text took: the plan of 100,000 tasks has 28 MB, and all other events are small.
func (c *conn) reserve(n int) error {
	if n <= c.room && (c.room <= keptRoom || n > keptRoom) {
		return nil
	}
	n = max(n, 4096, min(2*c.room, keptRoom))
	lib.Xsqlite3_free(c.tls, c.args) // realloc would keep a block that is large enough
	c.args, c.room = lib.Xsqlite3_malloc64(c.tls, lib.Tsqlite3_uint64(n)), n
	if c.args == 0 {
		c.room = 0
		return c.fail(lib.SQLITE_NOMEM)
	}
	return nil
}

// text is bytes that are bound as text.
type text []byte

// bind binds arguments: int64, string, text, []byte (a blob). Empty ones are NULL. The texts are
// copied to one buffer outside Go's heap, which the next bind overwrites. So a statement with texts
// must be done before another one is bound.
func (s *stmt) bind(args ...any) error {
	total := 0
	for _, a := range args {
		switch a := a.(type) {
		case string:
			total += len(a)
		case []byte:
			total += len(a)
		case text:
			total += len(a)
		}
	}
	if total > math.MaxInt32/2 {
		return s.c.fail(lib.SQLITE_TOOBIG)
	}
	if err := s.c.reserve(total); err != nil {
		return err
	}
	mem := libc.GoBytes(s.c.args, s.c.room)
	at, tls := 0, s.c.tls
	for i, a := range args {
		var rc int32
		col, p := int32(i+1), s.c.args+uintptr(at)
		switch a := a.(type) {
		case int64:
			rc = lib.Xsqlite3_bind_int64(tls, s.p, col, a)
		case string:
			if a == "" {
				rc = lib.Xsqlite3_bind_null(tls, s.p, col)
				break
			}
			at += copy(mem[at:], a)
			rc = lib.Xsqlite3_bind_text(tls, s.p, col, p, int32(len(a)), 0)
		case []byte:
			if len(a) == 0 {
				rc = lib.Xsqlite3_bind_null(tls, s.p, col)
				break
			}
			at += copy(mem[at:], a)
			rc = lib.Xsqlite3_bind_blob(tls, s.p, col, p, int32(len(a)), 0)
		case text:
			if len(a) == 0 {
				rc = lib.Xsqlite3_bind_null(tls, s.p, col)
				break
			}
			at += copy(mem[at:], a)
			rc = lib.Xsqlite3_bind_text(tls, s.p, col, p, int32(len(a)), 0)
		}
		if rc != lib.SQLITE_OK {
			return s.c.fail(rc)
		}
	}
	return nil
}

// next steps to the next row. It returns false if there is none.
func (s *stmt) next() (bool, error) {
	switch rc := lib.Xsqlite3_step(s.c.tls, s.p); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.fail(rc)
	}
}

// done resets the statement, and ends the read transaction that it held open.
func (s *stmt) done() { lib.Xsqlite3_reset(s.c.tls, s.p) }

func (s *stmt) int64(col int32) int64 {
	return lib.Xsqlite3_column_int64(s.c.tls, s.p, col)
}

// view returns a column's bytes in SQLite's memory. They are valid until the next step.
func (s *stmt) view(col int32) []byte {
	p := lib.Xsqlite3_column_blob(s.c.tls, s.p, col)
	if p == 0 {
		return nil
	}
	return libc.GoBytes(p, int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, col)))
}

func (s *stmt) text(col int32) string { return string(s.view(col)) }

// name returns a text that occurs often. It is kept once.
func (c *conn) name(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	names := c.names
	if n, ok := names[string(b)]; ok {
		return n
	}
	n := string(b)
	if len(names) < maxNames {
		names[n] = n
	}
	return n
}
