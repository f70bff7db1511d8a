package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
)

// detachedVariable names, in a detached process, the file descriptor of a pipe to its parent. The
// process writes the run's id there once the run is on disk.
const detachedVariable = "SWARM_DETACHED_FD"

// detachFlag adds -d to a command that drives a run.
func detachFlag(cmd *cobra.Command, detach *bool) {
	cmd.Flags().BoolVarP(detach, "detach", "d", false, "run in the background; see swarm attach and swarm wait")
}

// detach starts the same command in a session of its own, and returns when the run is on disk.
// Until then the child writes its errors to our standard error. If it ends before that, its exit
// code becomes ours. next is what else to type, with %s for the run.
func (a *app) detach(next string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	started, report, err := os.Pipe()
	if err != nil {
		return err
	}
	defer started.Close()
	cmd := exec.Command(self, withoutDetach(os.Args[1:])...)
	cmd.Stdin, cmd.Stderr = a.stdin, os.Stderr
	// The child never writes to our standard output. It notes which file that is, for run.PrintsTo.
	cmd.ExtraFiles = []*os.File{report, os.Stdout}
	cmd.Env = append(os.Environ(), detachedVariable+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	report.Close()
	id, _ := bufio.NewReader(started).ReadString('\n')
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
	fmt.Fprintf(a.stdout, "run %s\nto watch it: swarm attach %s · to wait for its end: swarm wait %s%s\n", id, id, id, strings.ReplaceAll(next, "%s", id))
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

// isDetached says whether a parent waits to be told that the run is on disk.
func isDetached() bool { return os.Getenv(detachedVariable) == "3" }

// detached reports to the parent of a detached process that the run is on disk. Before that it
// replaces the standard streams with /dev/null, so that the terminal can close.
func detached(runID swarm.RunID) {
	if !isDetached() {
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
