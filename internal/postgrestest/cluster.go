// Package postgrestest runs a PostgreSQL cluster for tests.
package postgrestest

import (
	"bufio"
	"errors"
	"fmt"
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
	address, err := start()
	var exit *exec.ExitError
	const missing = 3
	if errors.As(err, &exit) && exit.ExitCode() == missing {
		t.Skip("PostgreSQL is not here: sh scripts/postgres.sh installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// start starts the cluster once. It ends when its standard input does, and so with this process.
var start = sync.OnceValues(func() (string, error) {
	root, err := os.Getwd()
	for ; err == nil && root != "/"; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	cmd := exec.Command("sh", filepath.Join(root, "scripts", "postgres.sh"), "cluster")
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	keep = input
	output, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return "", errors.Join(fmt.Errorf("the cluster did not start: %w", err), cmd.Wait())
	}
	return strings.TrimSpace(line), nil
})

var keep any // the cluster's standard input, which must stay open
