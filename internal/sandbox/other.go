//go:build !linux

package sandbox

import "swarm"

// Invoked reports whether the arguments are those of a stage: never.
func Invoked([]string) bool { return false }

// Main runs a stage. There is none.
func Main([]string) int { return 125 }

// machineSupport says why there is no sandbox.
func machineSupport() support {
	return support{err: swarm.Errorf(swarm.NotFound, "`sandbox: os` works on Linux only: Seatbelt of macOS is not tested with swarm").
		WithHint("take `sandbox` out, or run swarm in a Linux virtual machine or container")}
}
