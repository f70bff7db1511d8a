package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"swarm"
	"swarm/internal/run"
)

// detachedVariable names, in a detached process, the file descriptor on which its parent waits to hear that the run is on disk.
const detachedVariable = "SWARM_DETACHED_FD"

// detach runs the same command in a session of its own and returns when its run is on disk. Until then the other process
// complains on our standard error and its exit code is ours.
func (a *app) detach() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	hear, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer hear.Close()
	cmd := exec.Command(self, withoutDetach(os.Args[1:])...)
	cmd.Stdin, cmd.Stderr = a.stdin, os.Stderr
	cmd.ExtraFiles = []*os.File{tell, os.Stdout} // which it does not write to: it only has to know what it is
	cmd.Env = append(os.Environ(), detachedVariable+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	tell.Close()
	id, _ := bufio.NewReader(hear).ReadString('\n')
	if id = strings.TrimSpace(id); id == "" {
		var exit *exec.ExitError
		if err := cmd.Wait(); errors.As(err, &exit) {
			a.exit = exit.ExitCode()
			return nil
		}
		return swarm.Errorf(swarm.Other, "the detached process ended before its run began")
	}
	if a.json {
		return a.print(map[string]string{"run": id})
	}
	fmt.Fprintf(a.stdout, "run %s\nto look in: swarm attach %s · to wait for its end: swarm wait %s\n", id, id, id)
	return nil
}

func withoutDetach(args []string) (rest []string) {
	for i, arg := range args {
		if arg == "--" {
			return append(rest, args[i:]...)
		}
		if arg != "-d" && arg != "--detach" && arg != "--detach=true" {
			rest = append(rest, arg)
		}
	}
	return rest
}

// detached, in a detached process, tells the parent that the run is on disk, and lets go of its terminal.
func detached(runID swarm.RunID) {
	if os.Getenv(detachedVariable) != "3" {
		return
	}
	_ = os.Unsetenv(detachedVariable)
	parent, out := os.NewFile(3, "parent"), os.NewFile(4, "the parent's output")
	run.PrintsTo(out)
	out.Close()
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			_ = dup(int(null.Fd()), fd)
		}
		null.Close()
	}
	fmt.Fprintln(parent, runID)
	parent.Close()
}
