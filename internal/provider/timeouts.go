package provider

import "time"

// How patient every provider is, with servers and with programs that stay between turns.
const (
	Tries       = 8                      // of one request to a server
	FirstWait   = 500 * time.Millisecond // before the second; each further one waits twice as long
	LongestWait = 5 * time.Minute        // that a server may ask for
	Silence     = 10 * time.Minute       // after which a server's answer is taken for broken off
	KeepIdle    = 10 * time.Minute       // a program that has nothing to do
	CheckTime   = 30 * time.Second       // all that a check asks a program: some take seconds to start
	CancelTime  = 100 * time.Millisecond // in which an agent whose turn is cut may end by itself
)
