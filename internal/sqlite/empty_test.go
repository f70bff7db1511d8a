package sqlite

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

//go:embed schema.sql
var schema string

var update = flag.Bool("update", false, "make empty.db anew from schema.sql")

// TestEmptyLogIsTheSchema makes the empty log from its schema and compares. The bytes of SQLite's
// own version and of its change counters may differ.
func TestEmptyLogIsTheSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	c, err := connect(path, lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	reserve, set := []byte{reserved, 0, 0, 0}, libc.GoBytes(c.out, 4)
	copy(set, reserve)
	if rc := lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_RESERVE_BYTES, c.out); rc != lib.SQLITE_OK {
		t.Fatal(c.fail(rc))
	}
	statements := []string{fmt.Sprintf("PRAGMA page_size=%d", pageSize), "PRAGMA journal_mode=WAL", fmt.Sprintf("PRAGMA application_id=%d", appID),
		fmt.Sprintf("PRAGMA user_version=%d", format)}
	statements = append(statements, strings.Split(strings.TrimSpace(schema), "\n")...)
	for _, sql := range statements {
		if err := c.once(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("empty.db", made, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(made) != len(empty) {
		t.Fatalf("empty.db has %d bytes; schema.sql makes %d: run go test -update", len(empty), len(made))
	}
	const counter, counterEnd, version, versionEnd = 24, 28, 92, 100
	kept := bytes.Clone(empty)
	for _, b := range [][]byte{made, kept} {
		clear(b[counter:counterEnd])
		clear(b[version:versionEnd])
		clear(b[pageSize-reserved : pageSize])
	}
	if !bytes.Equal(made, kept) {
		t.Error("empty.db is not what schema.sql makes: run go test -update")
	}
}
