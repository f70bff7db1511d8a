//go:build unix && !linux

package process

import "swarm"

// ForbidInspection does nothing: macOS lets nobody read the memory of another process without a
// dialog, but ps shows the environment to the same user.
func ForbidInspection() {}

// AllowInspection undoes [ForbidInspection].
func AllowInspection() {}

// Separation returns why nothing separates programs of the same user here.
func Separation() (keys, tokens, leftovers error) {
	keys = swarm.Errorf(swarm.Other, "this system shows the environment of a process to all programs of its user").
		WithHint("an agent with a shell may read the keys in the environment of swarm")
	tokens = swarm.Errorf(swarm.Other, "this system does not tell which process holds a connection").
		WithHint("an agent with a shell may use the token of another one")
	leftovers = swarm.Errorf(swarm.Other, "this system has no cgroups, so leftover processes are found by their environment").
		WithHint("a process that empties its environment may outlive its turn")
	return keys, tokens, leftovers
}
