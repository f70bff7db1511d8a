package provider

import (
	"syscall"

	"swarm"
)

// Ended makes the error of a program that ended by a signal that was not ours, or with another code
// than 0. who is the program's name for people, or "". words are its last words.
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
		return e.WithHint("the program crashed, or something else ended it; `swarm logs` has what it said before")
	}
	e := swarm.Errorf(swarm.Exited, "%sexit status %d%s", with, status.ExitStatus(), words)
	switch status.ExitStatus() {
	case 128 + int(syscall.SIGKILL): // the code of a shell whose program was killed
		return e.WithHint(outOfMemory)
	case 127: // the code of a shell that did not find a program
		return e.WithHint(
			"127 mostly means that a program which it wanted to run is not there; `swarm logs` has what it said",
		)
	}
	return e.WithHint("`swarm logs` has all that it said; with retries: N for the task it is tried again by itself")
}

const outOfMemory = "that is mostly the system, which had no memory left: have fewer work at a time (-j), or ask for less at once"
