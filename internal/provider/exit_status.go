package provider

import (
	"syscall"

	"swarm"
)

// Ended is the error of a program that has not ended well, and nobody here has ended: by a signal, or with another code than 0.
// What it says with the code it says itself, whatever a shell would mean by it. who is what people call it, "" = nobody calls it
// anything; words are its last.
func Ended(who string, status syscall.WaitStatus, words string) *swarm.Error {
	by, with := "ended by", ""
	if who != "" {
		by, with = who+" was ended by", who+" ended with "
	}
	if status.Signaled() {
		signal := status.Signal()
		e := swarm.Errorf(swarm.Crashed, "%s signal %d (%v)%s", by, int(signal), signal, words)
		if signal == syscall.SIGKILL {
			return e.WithHint(outOfMemory)
		}
		return e.WithHint("the program broke, or somebody has ended it; `swarm logs` has what it said before")
	}
	e := swarm.Errorf(swarm.Exited, "%sexit status %d%s", with, status.ExitStatus(), words)
	switch status.ExitStatus() {
	case 128 + int(syscall.SIGKILL): // so says one whose own program was killed
		return e.WithHint(outOfMemory)
	case 127: // so say shells
		return e.WithHint("127 mostly means that a program which it wanted to run is not there; `swarm logs` has what it said")
	}
	return e.WithHint("`swarm logs` has all that it said; with retries: N for the task it is tried again by itself")
}

const outOfMemory = "that is mostly the system, which had no memory left: have fewer work at a time (-j), or ask for less at once"
