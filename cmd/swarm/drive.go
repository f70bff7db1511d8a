package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/provider"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

// stopSignals gives a context that ends at the first signal to stop; the second one kills what still runs, and the program.
// The returned function does what a signal does, for a key that was pressed.
func stopSignals(runID string) (ctx context.Context, interrupt, end func()) {
	ctx, stop := context.WithCancelCause(context.Background())
	var times atomic.Int32
	interrupt = func() {
		if times.Add(1) > 1 {
			provider.Reap(runID, nil)
			os.Exit(swarm.ExitInterrupted)
		}
		stop(swarm.Errorf(swarm.Stopped, "interrupted"))
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for range signals {
			interrupt()
		}
	}()
	return ctx, interrupt, func() { signal.Stop(signals); stop(nil) }
}

// drive drives a run and shows it, on a terminal as a board, else as lines, or as JSON; a quiet one not at all.
func (a *app) drive(h *home.Home, r *run.Run, o run.Options, quiet bool) (view.Picture, error) {
	ctx, interrupt, end := stopSignals(r.ID)
	defer end()
	screen, err := a.screen(r.ID, interrupt, func(on bool) {
		word := swarm.WordResume
		if on {
			word = swarm.WordPause
		}
		_ = run.Control(ctx, h, r.ID, word, "") // what was not noted does not happen, and can be seen not to
	})
	if err != nil {
		return view.Picture{}, err
	}
	if !quiet {
		o.Observer = screen
	}
	p, err := r.Drive(ctx, o)
	if err2 := screen.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return p, err
	}
	a.exit = p.Exit
	if p.Status == swarm.Interrupted {
		a.exit = swarm.ExitInterrupted
	}
	if !a.json && !quiet {
		a.printEnd(h, p)
	}
	return p, nil
}

// printResult writes what a run of one task has made, and nothing else, so that it can be piped on. Why it failed is complained.
func (a *app) printResult(r *run.Run, p view.Picture) error {
	t := p.Tasks[len(p.Tasks)-1]
	if t.Output.Hash != "" {
		text, err := r.Log().Body(t.Output.Hash)
		if err == nil {
			_, err = a.stdout.Write(text)
		}
		if err != nil {
			return err
		}
	}
	if t.Status != swarm.Completed {
		a.complain(swarm.Errorf(t.Kind, "%s %s%s", t.Name, t.Status, because(t.Reason)).WithHint("to see more: swarm show %s", p.ID))
	}
	return nil
}

// printEnd writes the table of tasks and where the outputs are.
func (a *app) printEnd(h *home.Home, p view.Picture) {
	fmt.Fprintln(a.stdout)
	_ = a.table(term.TaskTable(p, func(t view.Task) string { return t.Name + ".txt" }))
	fmt.Fprintf(a.stdout, "\nrun %s %s%s\n", p.ID, p.Status, because(p.Reason))
	if p.Status == swarm.Interrupted {
		fmt.Fprintf(a.stdout, "to go on: swarm resume %s\n", p.ID)
		return
	}
	fmt.Fprintf(a.stdout, "outputs: %s\n", h.OutputDir(p.ID))
	if p.Status == swarm.Failed {
		fmt.Fprintf(a.stdout, "to see why: swarm show %s · to try what failed again: swarm retry %s\n", p.ID, p.ID)
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + term.Escape(reason)
}

// screen is what shows a run while it is driven.
func (a *app) screen(runID string, interrupt func(), pause func(on bool)) (term.Screen, error) {
	if a.json {
		return &eventWriter{run: runID, out: json.NewEncoder(a.stdout)}, nil
	}
	colored, err := a.paints()
	if err != nil {
		return nil, err
	}
	if a.onTerminal() && os.Getenv("TERM") != "dumb" && !a.plain {
		return term.NewBoard(view.New(runID), term.BoardOptions{In: a.stdin, Out: a.stdout, Color: colored, Now: time.Now,
			Interrupt: func(int) { interrupt() }, Pause: pause}), nil
	}
	return term.NewLines(view.New(runID), a.stdout, colored), nil
}

// An eventWriter writes events as JSON lines.
type eventWriter struct {
	run string
	mu  sync.Mutex
	out *json.Encoder
}

func (w *eventWriter) Event(e *swarm.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(e.Public(w.run)) // a reader that has gone does not stop the run
}

func (w *eventWriter) Delta(string, provider.Delta) {}

func (w *eventWriter) Close() error { return nil }

// find finds the run that a user names.
func (a *app) find(ref string) (*home.Home, string, error) {
	h, err := a.home()
	if err != nil {
		return nil, "", err
	}
	dir, err := a.dir()
	if err != nil {
		return nil, "", err
	}
	entry, err := h.Find(ref, dir, a.anywhere)
	return h, entry.ID, err
}
