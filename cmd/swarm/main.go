// Command swarm runs teams of AI agents that talk to each other.
//
// Each file holds one command, or a few that belong together. The commands read flags, call the
// internal packages, and print results. Decisions about a run are made there, not here.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"swarm/internal/process"
	"swarm/internal/sandbox"
)

func main() {
	if sandbox.Invoked(os.Args) { // a program of the run: its driver must see its sockets
		os.Exit(sandbox.Main(os.Args))
	}
	process.ForbidInspection() // agents run as the same user, and must not read our keys
	if isOpener(os.Args) {     // nor write addresses into its pipe
		os.Exit(runOpener(os.Args))
	}
	paceCollector()
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Values for debug.SetGCPercent: the heap growth, in percent of the live heap, that starts the next
// collection.
const (
	gcShort = 400 // most commands end before a collection would pay off
	gcLong  = 40  // a run of 10,000 tasks holds 90 MB; five times that would be too much
	gcLarge = 20  // a run of 100,000 tasks holds 270 MB; 40 takes 80 MB more, and 20 takes 3 % more CPU
)

// smallHeap is the heap size, in bytes, up to which saving time is worth more than saving memory.
const smallHeap = 64 << 20

// largeHeap is the heap size, in bytes, from which on memory is worth more than time.
const largeHeap = 192 << 20

// paceCollector lets the heap grow to smallHeap, or to 1.4 times what is live, whichever is more. A
// large one grows to 1.2 times.
func paceCollector() {
	debug.SetGCPercent(gcShort)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := gcShort
	// Nothing refers to the object. So each collection, just after it has counted the live heap,
	// calls the finalizer. The finalizer registers itself again for the next collection.
	var collected func(*[16]byte)
	collected = func(object *[16]byte) {
		metrics.Read(live)
		if percent := percentFor(live[0].Value.Uint64()); percent != now {
			now = percent
			debug.SetGCPercent(percent) // stops the world for a moment, so only on a change
		}
		runtime.SetFinalizer(object, collected)
	}
	runtime.SetFinalizer(new([16]byte), collected)
}

func percentFor(live uint64) int {
	live = max(live, 1)
	if live > largeHeap {
		return gcLarge
	}
	return int(max(gcLong, min(gcShort, (smallHeap-min(live, smallHeap))*100/live)))
}
