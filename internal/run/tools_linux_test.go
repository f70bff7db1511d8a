package run

import (
	"io"
	"net"
	"testing"
)

// An agent's program may end before its last request is looked at. That is no theft of its token.
func TestARequestWhoseClientIsGoneIsRefusedAndNotReported(t *testing.T) {
	reports := 0
	admits := func(conn net.Conn) error {
		server := &toolServer{fault: func(error) { reports++ }}
		return toolUser{agent: "coder", token: "of no program", server: server}.Admits(conn)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := admits(conn); err == nil || reports != 1 {
		t.Errorf("a process that is not of the turn: %v, %d reports", err, reports)
	}
	reports = 0
	_ = client.Close()
	_, _ = io.Copy(io.Discard, conn) // until the end has come
	if err := admits(conn); err == nil || reports != 0 {
		t.Errorf("a client that is gone: %v, %d reports", err, reports)
	}
}
