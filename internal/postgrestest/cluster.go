// Package postgrestest runs a PostgreSQL cluster for tests.
package postgrestest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Address returns the address of a cluster that belongs to this test binary, with its password. All
// tests of the binary share it. It ends with the binary. Without PostgreSQL the test is skipped.
func Address(t testing.TB) string {
	t.Helper()
	c, err := start()
	skipWithout(t, err)
	return c.Address
}

// skipWithout skips a test if there is no PostgreSQL.
func skipWithout(t testing.TB, err error) {
	t.Helper()
	var exit *exec.ExitError
	const missing = 3
	if errors.As(err, &exit) && exit.ExitCode() == missing {
		t.Skip("PostgreSQL is not here: sh scripts/postgres.sh installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A Cluster is a running PostgreSQL.
type Cluster struct {
	Address string
	input   io.WriteCloser // of its script, which must stay open: a file that nothing refers to is closed
	output  *bufio.Reader
}

// Close ends the cluster.
func (c *Cluster) Close() { _ = c.input.Close() }

// Crash ends all processes of the server, without a shutdown.
func (c *Cluster) Crash() error { return c.tell("crash", "crashed") }

// Start starts the server again.
func (c *Cluster) Start() error { return c.tell("start", "started") }

func (c *Cluster) tell(command, want string) error {
	if _, err := io.WriteString(c.input, command+"\n"); err != nil {
		return err
	}
	line, err := c.output.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		return fmt.Errorf("the cluster answered %q to %s: %w", line, command, err)
	}
	return nil
}

// start starts the cluster of all tests once.
var start = sync.OnceValues(Run)

// Run starts a cluster that a test can crash. It ends when its standard input does, and so with this
// process.
func Run() (*Cluster, error) {
	root, err := os.Getwd()
	for ; err == nil && root != "/"; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", filepath.Join(root, "scripts", "postgres.sh"), "cluster")
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
		return nil, errors.Join(fmt.Errorf("the cluster did not start: %w", err), cmd.Wait())
	}
	return &Cluster{strings.TrimSpace(line), input, lines}, nil
}
