package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// workerProgram drives runs with the engine temporal. It is a program of its own, because the SDK of
// Temporal would make every start of this one slower.
const workerProgram = "swarm-worker"

func (a *app) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "worker [FLAG…]",
		Short: "Drive runs with the engine temporal, of every machine that shares the store",
		Long: `Drive the runs that begin with engine: temporal (or SWARM_ENGINE=temporal) on any machine that shares
the store. Several workers on several machines share the turns of these runs. If a worker is lost,
others go on.

This starts the program swarm-worker, from beside swarm or from PATH. The store is that of SWARM_STORE,
or of the compose file. Temporal is at TEMPORAL_ADDRESS (default 127.0.0.1:7233). swarm-worker --help
lists the flags.`,
		Example:            "  SWARM_STORE=postgres://me@db/swarm TEMPORAL_ADDRESS=temporal:7233 swarm worker",
		DisableFlagParsing: true, // they are flags of the other program
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return cmd.Help()
			}
			return a.worker(args)
		},
	}
}

// worker becomes the program of workers. The variable of the store is set when the store is opened.
func (a *app) worker(args []string) error {
	if _, err := a.home(); err != nil {
		return err
	}
	program, err := findWorker()
	if err != nil {
		return err
	}
	err = syscall.Exec(program, append([]string{workerProgram}, args...), os.Environ())
	return swarm.Errorf(swarm.Other, "%s cannot be started: %w", program, err)
}

// findWorker finds the program of workers beside this one, or in PATH.
func findWorker() (string, error) {
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		beside := filepath.Join(filepath.Dir(self), workerProgram)
		if found, err := exec.LookPath(beside); err == nil {
			return found, nil
		}
	}
	found, err := exec.LookPath(workerProgram)
	if err != nil {
		return "", swarm.Errorf(swarm.NotFound, "the program %s is neither beside swarm nor in PATH", workerProgram).
			WithHint("build it in the source of swarm: make worker, and put bin/%s beside swarm", workerProgram)
	}
	return found, nil
}

// follow shows a run that workers drive, until it ends or the person leaves.
func (a *app) follow(h *statedir.Home, id swarm.RunID, recordFile string) error {
	l, err := run.OpenReader(h, id)
	if err != nil {
		return err
	}
	defer l.Close()
	if !l.Driven() && !a.quiet && !a.json {
		fmt.Fprintf(a.stderr, "run %s waits for a worker; to start one: swarm worker\n", id)
	}
	err = a.attach(h, l)
	if recordFile == "" || err != nil {
		return err
	}
	path, err := recordTo(recordFile)
	return errors.Join(err, l.Record(path))
}

// errNoWorkersPage refuses --open for a run that workers drive.
var errNoWorkersPage = swarm.Errorf(swarm.BadInput, "a worker drives the run, so this process has no page of it").
	WithHint("leave out --open; swarm serve has the page of every run")
