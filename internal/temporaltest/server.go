// Package temporaltest runs a Temporal server for tests.
package temporaltest

import (
	"sync"
	"testing"

	"swarm/internal/servertest"
)

// Address returns host and port of a server that belongs to this test binary. All tests of the binary
// share it. It ends with the binary. Where Temporal was not built, the test is skipped.
func Address(t testing.TB) string {
	t.Helper()
	s, err := start()
	servertest.SkipWithout(t, err, "Temporal is not here: make test-cluster builds it")
	return s.Address
}

// start starts the server of all tests once.
var start = sync.OnceValues(func() (*servertest.Server, error) { return servertest.Start("temporal.sh", "server") })
