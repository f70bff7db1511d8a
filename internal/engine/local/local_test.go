package local_test

import (
	"testing"

	"swarm"
	"swarm/internal/engine/enginetest"
	"swarm/internal/engine/local"
	"swarm/internal/sqlite"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Subject{
		Engine: local.Run,
		Store:  func(t *testing.T) swarm.Store { return sqlite.NewStore(t.TempDir()) },
	})
}
