// Command swarm runs teams of AI agents that talk to each other.
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	// Most calls are over before they have used the memory that a collection would give back.
	debug.SetGCPercent(400)
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
