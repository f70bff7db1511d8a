// Command swarm runs teams of AI agents that talk to each other.
package main

import (
	"os"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
