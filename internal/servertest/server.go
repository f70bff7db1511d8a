// Package servertest runs servers of other projects for tests, by the scripts of this module.
package servertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Server is a running server. Its script ends it when its standard input ends, and so with this
// process.
type Server struct {
	Address string         // what the script prints when the server is ready
	input   io.WriteCloser // of its script, which must stay open: a file that nothing refers to is closed
	output  *bufio.Reader
}

// Start starts a server by a script of the module's folder scripts, with an argument.
func Start(script, argument string) (*Server, error) {
	root, err := os.Getwd()
	for ; err == nil && root != "/"; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", filepath.Join(root, "scripts", script), argument)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(output)
	line, err := lines.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server of %s did not start: %w", script, err), cmd.Wait())
	}
	return &Server{strings.TrimSpace(line), input, lines}, nil
}

// Close ends the server.
func (s *Server) Close() { _ = s.input.Close() }

// Tell sends a line to the script, and demands its answer.
func (s *Server) Tell(line, want string) error {
	if _, err := io.WriteString(s.input, line+"\n"); err != nil {
		return err
	}
	answer, err := s.output.ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != want {
		return fmt.Errorf("the server's script answered %q to %s: %w", answer, line, err)
	}
	return nil
}

// SkipWithout skips a test if the script has found that the server's program is missing. It fails the
// test for any other error.
func SkipWithout(t testing.TB, err error, missing string) {
	t.Helper()
	var exit *exec.ExitError
	const notHere = 3
	if errors.As(err, &exit) && exit.ExitCode() == notHere {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
}
