package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"swarm/internal/process"
)

// The first argument of this program when it is an opener, and of the process that starts one.
const (
	openerCommand  = "__opener"
	openersCommand = "__start-opener"
)

// An opener opens addresses in a person's browser. nil = this machine has no browser.
type opener struct{ addresses io.WriteCloser }

// startOpener starts a process that opens addresses, before this one starts any program of a run.
//
// The browser may be its child, and must not be ours: whatever is below a driver counts as an agent's
// program, is refused by every server, and ends with the run. So the opener is the child of a process
// that has ended, in a session of its own. Later that is no longer possible, because a driver adopts
// orphans and its children inherit its mark. The opener ends when this process does.
func startOpener() *opener {
	command := browserCommand()
	self, err := os.Executable()
	if len(command) == 0 || err != nil {
		return nil
	}
	cmd := exec.Command(self, append([]string{openersCommand}, command...)...)
	cmd.Env = process.Common() // agents can read it, and the browser's
	addresses, err := cmd.StdinPipe()
	if err != nil {
		return nil
	}
	if cmd.Start() != nil {
		addresses.Close()
		return nil
	}
	// Wait would close the pipe, whose other end the opener has by now.
	if state, err := cmd.Process.Wait(); err != nil || !state.Success() {
		addresses.Close()
		return nil
	}
	return &opener{addresses}
}

func (o *opener) open(address string) {
	if o != nil {
		_, _ = io.WriteString(o.addresses, address+"\n") // the address is printed, too
	}
}

func (o *opener) close() {
	if o != nil {
		_ = o.addresses.Close() // it is only read
	}
}

// isOpener reports whether the arguments are those of an opener, or of the process that starts one.
func isOpener(args []string) bool {
	return len(args) > 2 && (args[1] == openerCommand || args[1] == openersCommand)
}

// runOpener runs the process that startOpener starts, or the opener that this one starts in turn.
func runOpener(args []string) int {
	if args[1] == openersCommand {
		self, err := os.Executable()
		if err != nil {
			return 1
		}
		next := exec.Command(self, append([]string{openerCommand}, args[2:]...)...)
		next.Stdin = os.Stdin
		if next.Start() != nil {
			return 1
		}
		return 0
	}
	_, _ = syscall.Setsid() // Ctrl-C in the terminal is not for the browser
	addresses := bufio.NewScanner(os.Stdin)
	for addresses.Scan() {
		command := withAddress(args[2:], addresses.Text())
		browser := exec.Command(command[0], command[1:]...)
		if browser.Start() == nil { // otherwise the person has the address that was printed
			go func() { _ = browser.Wait() }() // it may be the browser itself, which stays
		}
	}
	return 0
}

// browserCommand returns the program that opens an address: the first of $BROWSER that there is, or
// that of the system. Without a display xdg-open might start a browser in the terminal.
func browserCommand() []string {
	for entry := range strings.SplitSeq(os.Getenv("BROWSER"), ":") {
		if words := strings.Fields(entry); len(words) > 0 {
			if path, err := exec.LookPath(words[0]); err == nil {
				return append([]string{path}, words[1:]...)
			}
		}
	}
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	return []string{path}
}

// withAddress puts an address in the place of %s, or at the end.
func withAddress(command []string, address string) []string {
	command = slices.Clone(command)
	for i, word := range command[1:] {
		if strings.Contains(word, "%s") {
			command[i+1] = strings.ReplaceAll(word, "%s", address)
			return command
		}
	}
	return append(command, address)
}
