// Package simulation runs whole runs in virtual time and breaks things around them. It has tests
// only.
//
// The loops, the engine, the turn runner, the tools of agents and the views are the real ones. Made
// up are the agents, the people, and the store, which is a [swarm.RunLog] in memory that passes the
// suite of storetest. A seed decides everything: the plan, what agents do and how long it takes, what
// people ask, which appends fail, when a process dies or hangs, and when the power is lost. After a
// run the log is compared with a ledger that the agents and people kept outside of it.
//
// The clock is that of testing/synctest: it moves when every goroutine waits. The seed gives every
// delay a length of its own, so that one goroutine wakes at a time. That is why the same seed writes
// the same log, byte for byte.
//
// To repeat a seed and print its log: go test ./internal/simulation -run TestSeeds -seed N -v
package simulation
