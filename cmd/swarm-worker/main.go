// Command swarm-worker drives runs with the engine temporal, of every machine that shares the store.
// It is a program of its own, because the SDK of Temporal would make every start of swarm slower.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/engine/local"
	"swarm/internal/engine/temporal"
	"swarm/internal/flow"
	"swarm/internal/httpd"
	"swarm/internal/postgres"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/sandbox"
	"swarm/internal/statedir"
	"swarm/internal/telemetry"
)

// version is set by the linker.
var version = "dev"

func main() {
	if sandbox.Invoked(os.Args) { // a program of a run: this process must see its sockets
		os.Exit(sandbox.Main(os.Args))
	}
	process.ForbidInspection() // agents run as the same user, and must not read our keys
	if len(os.Args) > 1 && os.Args[1] == "mcp" {
		os.Exit(complain(os.Stderr, becomeSwarm(os.Args[1:])))
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil {
		err = work(o)
	}
	os.Exit(complain(os.Stderr, err))
}

// complain prints an error and its hint, and returns the exit code.
func complain(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(w, "error: %s\n", err)
	if hint := swarm.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
	return swarm.ExitCode(err)
}

// becomeSwarm runs swarm in the place of this program. Agents that take our tools over pipes start the
// program that drives them, to serve these tools.
func becomeSwarm(args []string) error {
	program, err := exec.LookPath("swarm")
	if self, err2 := os.Executable(); err2 == nil {
		if beside, err2 := exec.LookPath(filepath.Join(filepath.Dir(self), "swarm")); err2 == nil {
			program, err = beside, nil
		}
	}
	if err == nil {
		err = syscall.Exec(program, append([]string{"swarm"}, args...), os.Environ())
	}
	return swarm.Errorf(swarm.NotFound, "the program swarm cannot be started: %w", err).WithHint("put it beside swarm-worker, or into PATH")
}

// options are what the command line and the environment say.
type options struct {
	address, namespace, queue, store string
	heartbeat                        time.Duration
	turns                            int
}

const about = `swarm-worker drives the runs that begin with engine: temporal (or SWARM_ENGINE=temporal), on any
machine that shares the store of SWARM_STORE. It has to have the folders of these runs under the same
paths, and the agents' programs and keys. Ctrl-C stops it: others go on with its runs, or it does when
it is started again.

Flags:
`

// parse reads the flags and the variables. The variables of Temporal are removed from the environment:
// agents' programs get the rest of it.
func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("swarm-worker", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprint(out, about)
		f.PrintDefaults()
	}
	or := func(variable, otherwise string) string {
		if value := os.Getenv(variable); value != "" {
			return value
		}
		return otherwise
	}
	f.StringVar(&o.address, "address", or("TEMPORAL_ADDRESS", "127.0.0.1:7233"), "`host:port` of Temporal (or TEMPORAL_ADDRESS)")
	f.StringVar(&o.namespace, "namespace", or("TEMPORAL_NAMESPACE", "default"), "the `namespace` in Temporal (or TEMPORAL_NAMESPACE)")
	f.StringVar(&o.queue, "queue", "", "the task `queue` in Temporal, the same for all workers of a store (default from the store's address)")
	f.DurationVar(&o.heartbeat, "heartbeat", time.Minute, "how long another worker may be silent before its turns are done again")
	f.IntVar(&o.turns, "turns", 1000, "how many `turns` this worker does at once; an agent that waits for another has one")
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "TEMPORAL_") {
			_ = os.Unsetenv(name)
		}
	}
	if err := f.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = swarm.Errorf(swarm.BadInput, "%w", err)
		}
		return o, err
	}
	if f.NArg() > 0 {
		return o, swarm.Errorf(swarm.BadInput, "swarm-worker takes no argument %q", f.Arg(0)).WithHint("swarm-worker --help lists its flags")
	}
	if o.store = os.Getenv(control.StoreVariable); o.store == "" {
		return o, swarm.Errorf(swarm.BadInput, "a worker needs the store that the machines share").
			WithHint("set %s=postgres://user@host:port/database", control.StoreVariable)
	}
	return o, control.CheckStore(o.store)
}

// work serves until a signal comes.
func work(o options) error {
	store, err := postgres.NewStore(o.store)
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := statedir.Open(func(string) swarm.Store { return store })
	if err != nil {
		return err
	}
	h.Summarize = run.Summarize
	if err := h.Make(); err != nil {
		return err
	}
	if _, err := store.Examine(context.Background()); err != nil {
		return err
	}
	run.Sweep(h)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	w := newWorker(ctx, h, os.Stdout)
	tools, err := httpd.Serve(version, func(err error) { w.say("the tools of agents: %s", err) })
	if err != nil {
		return err
	}
	defer tools.Close()
	w.options = run.Options{Engine: w.engine, Children: local.Run, Server: tools, Serve: httpd.Serve}
	if x := telemetry.Open(os.Getenv, version); x != nil {
		w.options.Telemetry = x
	}
	if o.queue == "" {
		o.queue = "swarm " + flow.Version + " " + store.Name()
	}
	t, err := temporal.Connect(o.address, o.namespace)
	if err != nil {
		return swarm.Errorf(swarm.Other, "Temporal cannot be reached at %s: %w", o.address, err).WithHint("set TEMPORAL_ADDRESS, and TEMPORAL_NAMESPACE if it is not default")
	}
	defer t.Close()
	if w.temporal, err = temporal.Start(temporal.Options{Client: t, Queue: o.queue, Open: w.open, Fault: w.fault, Heartbeat: o.heartbeat, Calls: o.turns}); err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		stop(swarm.Errorf(swarm.Stopped, "the worker was stopped"))
		<-signals
		w.kill()
		os.Exit(swarm.ExitInterrupted)
	}()
	w.say("worker %d: runs of %s, with Temporal at %s (namespace %s)", os.Getpid(), store.Name(), o.address, o.namespace)
	w.serve()
	w.temporal.Stop()
	return nil
}
