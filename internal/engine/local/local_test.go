package local_test

import (
	"testing"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/engine/enginetest"
	"swarm/internal/engine/local"
	"swarm/internal/sqlite"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Subject{
		Engine: func(*testing.T) engine.Engine { return local.Run },
		Store:  func(t *testing.T) swarm.Store { return sqlite.NewStore(t.TempDir()) },
	})
}
