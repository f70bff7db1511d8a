package local_test

import (
	"testing"

	"swarm/internal/engine/enginetest"
	"swarm/internal/engine/local"
)

func TestConformance(t *testing.T) { enginetest.Run(t, local.Run) }
