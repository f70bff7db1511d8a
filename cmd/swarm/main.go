// Command swarm runs teams of AI agents that talk to each other.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

func main() {
	paceCollector()
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// How many percent of the live heap the garbage collector lets the program allocate before it runs again.
const (
	gcShort = 400 // most commands are over before they have used the memory that a collection would give back
	gcLong  = 40  // a run of 10,000 tasks holds 90 MB; five times that would be too much
)

// smallHeap is how large the heap may grow before memory counts for more than the time that collections take.
const smallHeap = 32 << 20

// paceCollector lets the heap grow to smallHeap, or to 1.4 times what is live, whichever is more.
func paceCollector() {
	debug.SetGCPercent(gcShort)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := gcShort
	// Nothing refers to the object, so each collection finds it, just after it has counted what is live, and calls the finalizer,
	// which keeps the object for the next collection.
	var collected func(*[16]byte)
	collected = func(object *[16]byte) {
		metrics.Read(live)
		if percent := percentFor(live[0].Value.Uint64()); percent != now {
			now = percent
			debug.SetGCPercent(percent) // which stops the program for a moment
		}
		runtime.SetFinalizer(object, collected)
	}
	runtime.SetFinalizer(new([16]byte), collected)
}

func percentFor(live uint64) int {
	live = max(live, 1)
	return int(max(gcLong, min(gcShort, (smallHeap-min(live, smallHeap))*100/live)))
}
