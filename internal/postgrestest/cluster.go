// Package postgrestest runs a PostgreSQL cluster for tests.
package postgrestest

import (
	"sync"
	"testing"

	"swarm/internal/servertest"
)

// Address returns the address of a cluster that belongs to this test binary, with its password. All
// tests of the binary share it. It ends with the binary. Without PostgreSQL the test is skipped.
func Address(t testing.TB) string {
	t.Helper()
	c, err := start()
	servertest.SkipWithout(t, err, "PostgreSQL is not here: sh scripts/postgres.sh installs it")
	return c.Address
}

// start starts the cluster of all tests once.
var start = sync.OnceValues(Run)

// A Cluster is a running PostgreSQL.
type Cluster struct{ *servertest.Server }

// Run starts a cluster that a test can crash.
func Run() (*Cluster, error) {
	s, err := servertest.Start("postgres.sh", "cluster")
	return &Cluster{s}, err
}

// Crash ends all processes of the server, without a shutdown.
func (c *Cluster) Crash() error { return c.Tell("crash", "crashed") }

// Start starts the server again.
func (c *Cluster) Start() error { return c.Tell("start", "started") }
