package acp

import (
	"time"

	"swarm/internal/provider"
)

// SetLimits shortens the time for which an agent's model may be silent, and that in which a program
// may obey a cancel.
func SetLimits(p provider.Provider, quiet, settle time.Duration) {
	h := p.(*host)
	h.quiet, h.settle = quiet, settle
}
