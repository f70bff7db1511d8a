package process

import "os"

// An ID identifies a process for good. The kernel reuses pids, and two containers that share a
// folder have the same ones. A pid with its start time is never another process.
type ID struct {
	PID     int
	Started uint64 // in clock ticks since boot; 0 = not known
}

// Self returns the ID of this process.
func Self() ID { return IDOf(os.Getpid()) }
