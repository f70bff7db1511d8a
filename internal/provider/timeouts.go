package provider

import "time"

// Timeouts and retries of all providers, for servers and for programs that stay between turns.
const (
	Tries       = 8                      // of one request to a server
	FirstWait   = 500 * time.Millisecond // before the second try; it doubles for each further one
	LongestWait = 5 * time.Minute        // the longest pause that a server which fails may ask for
	ShortWait   = time.Minute            // the longest pause in a turn that a busy server may ask for; longer ones are limits
	Silence     = 10 * time.Minute       // without data, after which the answer of a server or a model counts as broken off
	Patience    = 5 * time.Minute        // with a program that waits because its model's server told it to come back later
	KeepIdle    = 10 * time.Minute       // that an idle program is kept
	CheckTime   = 30 * time.Second       // for all that a check asks a program: some take seconds to start
	CancelTime  = 100 * time.Millisecond // in which an agent whose turn is cut may end by itself
	SettleTime  = 5 * time.Second        // in which a program may do so after the turn's end, to keep its session
)
