// Package pipetest has the named pipes by which tests and the programs that they start wait for each other.
//
// A pipe is held open at both ends for as long as its test lasts. Then no opening ever waits: one that waits can be cut by a signal,
// as Go's runtime sends them to itself, and whoever waits at the other end takes that for somebody who came and left.
package pipetest

import (
	"os"
	"syscall"
	"testing"
)

// A Pipe is a named pipe.
type Pipe struct {
	t    testing.TB
	file *os.File
}

// Make makes a pipe.
func Make(t testing.TB, path string) *Pipe {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &Pipe{t, f}
}

// Say writes a line for who reads next.
func (p *Pipe) Say(line string) {
	p.t.Helper()
	if _, err := p.file.WriteString(line + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Line waits for the next line.
func (p *Pipe) Line() string {
	p.t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := p.file.Read(b); err != nil {
			p.t.Fatal(err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}
