package process

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// talkers starts n programs with their own tokens, each with a connection to this process.
func talkers(tb testing.TB, n int) (conns []net.Conn, tokens []string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		token := strings.Repeat("t", i+1)
		p, err := Job{
			Path: self, Argv: []string{self}, Talk: true, Run: "run",
			Env: append(os.Environ(), "PROCESS_TEST_DIAL=tcp "+l.Addr().String(), envToken+"="+token),
		}.Start()
		if err != nil {
			tb.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _, _ = p.Wait(context.Background())
		}()
		tb.Cleanup(func() { p.CloseInput(); <-ended })
		conn, err := l.Accept()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { conn.Close() })
		conns, tokens = append(conns, conn), append(tokens, token)
	}
	return conns, tokens
}

func TestTokenWorksOnlyInItsProgram(t *testing.T) {
	conns, tokens := talkers(t, 3)
	for i, conn := range conns {
		for j, token := range tokens {
			if err := CheckToken(conn, token); (err == nil) != (i == j) {
				t.Errorf("program %d with the token of %d: %v", i, j, err)
			}
		}
		if CheckToken(conn, "") == nil || CheckToken(conn, "unknown") == nil {
			t.Error("a token of no program works")
		}
	}
	// Another child of this process, which no Job started.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_DIAL=tcp "+l.Addr().String(), envToken+"="+tokens[0])
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if CheckToken(conn, tokens[0]) == nil {
		t.Error("a process that no job started uses a token")
	}
}

func BenchmarkCheckToken(b *testing.B) {
	conns, tokens := talkers(b, 100)
	for b.Loop() {
		if err := CheckToken(conns[50], tokens[50]); err != nil {
			b.Fatal(err)
		}
	}
}
