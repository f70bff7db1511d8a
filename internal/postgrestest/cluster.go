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
	var exit *exec.ExitError
	const missing = 3
	if errors.As(err, &exit) && exit.ExitCode() == missing {
		t.Skip("PostgreSQL is not here: sh scripts/postgres.sh installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.address
}

// A cluster is a running PostgreSQL.
type cluster struct {
	address string
	input   io.Closer // its standard input, which must stay open: a file that nothing refers to is closed
}

// start starts the cluster once. It ends when its standard input does, and so with this process.
var start = sync.OnceValues(func() (*cluster, error) {
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
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the cluster did not start: %w", err), cmd.Wait())
	}
	return &cluster{strings.TrimSpace(line), input}, nil
})
