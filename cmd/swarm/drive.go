package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/engine"
	"swarm/internal/engine/local"
	"swarm/internal/engine/replay"
	"swarm/internal/mail"
	"swarm/internal/process"
	"swarm/internal/recording"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

// stops is how a user stops a run. The first signal or key ends the context. The second one kills
// the running programs and exits. A closed output pipe ends the context too.
type stops struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	signals chan os.Signal

	mu    sync.Mutex // guards the fields below: the signal goroutine and the screen use them
	times int
	kill  func() // called before the program exits at once
	other func() // replaces what Ctrl-C does; nil = it stops the run
}

func stopSignals() *stops {
	s := &stops{signals: make(chan os.Signal, 4)}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	// A write to a closed pipe would kill the program, unless it handles SIGPIPE. The signal itself
	// is ignored, because it does not say which write failed: the pipe may belong to an agent that
	// does not read its prompt. A watchedWriter reports a closed standard output.
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		for sig := range s.signals {
			switch other := s.replacement(); {
			case sig == syscall.SIGPIPE:
			case sig == os.Interrupt && other != nil:
				other()
			default:
				s.interrupt()
			}
		}
	}()
	return s
}

// watched wraps a writer. The run stops when its reader closes the pipe.
func (s *stops) watched(w io.Writer) io.Writer { return &watchedWriter{w, s} }

type watchedWriter struct {
	io.Writer
	stops *stops
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		w.stops.stop(swarm.Errorf(swarm.Stopped, "nobody reads what is written"))
	}
	return n, err
}

// interrupt stops the run, and at the second call kills it. Keys and signals both call it.
func (s *stops) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times++; s.times > 1 {
		if s.kill != nil {
			s.kill()
		}
		os.Exit(swarm.ExitInterrupted)
	}
	s.stop(swarm.Errorf(swarm.Stopped, "interrupted"))
}

// instead replaces what Ctrl-C does; nil restores it.
func (s *stops) instead(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other = do
}

func (s *stops) replacement() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.other
}

// killing sets the function that is called before the program exits at once.
func (s *stops) killing(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill = do
}

func (s *stops) end() {
	signal.Stop(s.signals)
	s.stop(nil)
}

// engineFor returns the engine that replays a recording, or without one the local engine.
func engineFor(rec *recording.Recording) engine.Engine {
	if rec != nil {
		return replay.Engine(rec)
	}
	return local.Run
}

// drive drives a run to its end and shows it: as a board on a terminal, else as lines, or as JSON.
// Of a quiet run only what needs a person is shown.
func (a *app) drive(h *statedir.Home, r *run.Run, o run.Options) error {
	s := stopSignals()
	defer s.end()
	var page *shownPage
	if a.open {
		var err error
		if page, err = a.showPage(r.ID, r.Log()); err != nil {
			return err
		}
		defer page.close()
	}
	v := view.New(r.ID)
	screen, err := a.screen(v, s, keysOf(s.ctx, h, r.ID), a.linesOf(r.Began().Kind))
	if err != nil {
		return err
	}
	s.killing(func() {
		process.Kill(r.ID)
		giveBack(screen)
		if !a.json {
			fmt.Fprintf(a.stderr, "run %s was killed\nto resume it: swarm resume %s\n", r.ID, r.ID)
		}
	})
	o.Observer, o.View = screen, v
	o.Serve, o.Telemetry = a.serveTools, a.runTelemetry()
	p, err := r.Drive(s.ctx, o)
	if err2 := screen.Close(); err == nil && !errors.Is(err2, syscall.EPIPE) {
		err = err2
	}
	if err != nil {
		return err
	}
	a.exit = p.Exit
	if p.Status == swarm.Interrupted {
		a.exit = swarm.ExitInterrupted
	}
	if err := a.printEnd(h, p, r.Log().Body); err != nil {
		return err
	}
	page.linger(s.ctx, a)
	return nil
}

// linesOf is where the lines of a run go. Those of a swarm go to standard error, because its answer
// is what a pipe wants.
func (a *app) linesOf(kind swarm.RunKind) io.Writer {
	if kind == swarm.SwarmRun {
		return a.stderr
	}
	return a.stdout
}

// giveBack restores the terminal. It gives up after a second, because a write to a stopped terminal
// blocks and the program has to exit.
func giveBack(screen term.Screen) {
	closed := make(chan struct{})
	go func() {
		_ = screen.Close() // the program ends in any case
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}

// keys are the actions of the board's keys on a run.
type keys struct {
	ctx     context.Context
	control *control.Control
	run     swarm.RunID
}

// keysOf returns the keys on a run, for the caller of this program.
func keysOf(ctx context.Context, h *statedir.Home, id swarm.RunID) keys {
	return keys{ctx, &control.Control{Home: h, Caller: control.FindCaller(h, swarm.HowBoard)}, id}
}

func (k keys) pause(on bool) {
	word := swarm.CommandResume
	if on {
		word = swarm.CommandPause
	}
	_, _ = k.control.Tell(k.ctx, k.run, word, "") // on an error the run is not paused, and the board shows that
}

func (k keys) answer(id string, ok bool) error {
	_, err := k.control.Answer(k.ctx, k.run, id, run.Decision{OK: ok})
	return err
}

// send sends a message of the person at the board.
func (k keys) send(agent, question, text string) error {
	if err := k.control.Caller.Steer(k.control.Home, k.run, "writing from the board"); err != nil {
		return err
	}
	box, err := run.OpenUserMailbox(k.control.Home, k.run)
	if err != nil {
		return err
	}
	defer box.Close()
	if question != "" {
		_, err = box.Answer(k.ctx, question, mail.Draft{Message: text})
	} else {
		_, err = box.FromUser(k.ctx, mail.Draft{To: agent, Message: text})
	}
	return err
}

// screen makes the screen that shows a run while this process drives it.
func (a *app) screen(v *view.Run, s *stops, k keys, lines io.Writer) (term.Screen, error) {
	if a.json {
		return a.warned(&eventWriter{run: v.ID, out: json.NewEncoder(term.EscapeJSON(s.watched(a.stdout)))}), nil
	}
	if a.quiet {
		return needWriter{a.stderr}, nil
	}
	colored, err := a.paints()
	if err != nil {
		return nil, err
	}
	if a.width() > 0 && os.Getenv("TERM") != "dumb" && !a.plain { // a terminal that tells no size has no board
		return withChildren(term.NewBoard(v, term.BoardOptions{Terminal: a.terminal(colored),
			Interrupt: func(int) { s.interrupt() }, Pause: k.pause, Answer: k.answer, Send: k.send}), k.control.Home, v), nil
	}
	l := a.newLines(v, s.watched(lines), colored)
	l.Unattended = !a.attended()
	return a.warned(withChildren(l, k.control.Home, v)), nil
}

// newLines makes the lines of a run. A pipe has each word of an agent once: if the lines have the output
// of a task, the end of the run does not repeat it. On a terminal the result has scrolled away.
func (a *app) newLines(v *view.Run, w io.Writer, colored bool) *term.Lines {
	l := term.NewLines(v, w, colored)
	if !a.onTerminal() {
		a.said = l.Said
	}
	return l
}

// warned makes a screen also report on standard error that the run waits for a person. On a
// terminal the screen itself shows that. Elsewhere its output may go to a file or to another
// program.
func (a *app) warned(s term.Screen) term.Screen {
	if a.onTerminal() {
		return s
	}
	return warner{s, a.stderr}
}

type warner struct {
	term.Screen
	out io.Writer
}

func (w warner) Event(e *swarm.Event) {
	w.Screen.Event(e)
	if view.Stalled(e) {
		fmt.Fprintln(w.out, term.Escape(view.DescribeEvent(e)))
	}
}

// showFlags adds the flags that choose how a run is shown.
func (a *app) showFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.plain, "plain", false, "lines instead of the board")
	cmd.Flags().BoolVarP(&a.quiet, "quiet", "q", false, "only the final output, errors, and questions to you")
	cmd.MarkFlagsMutuallyExclusive("plain", "quiet")
}

// A needWriter is the screen of a quiet run: it shows only what needs a person.
type needWriter struct{ out io.Writer }

func (w needWriter) Event(e *swarm.Event) {
	if need := view.Need(e); need != "" && e.Kind != swarm.RunEnded { // the result and the exit code tell the end
		fmt.Fprintln(w.out, term.Escape(need))
	}
}

func (needWriter) Delta(string, swarm.Delta) {}

func (needWriter) Close() error { return nil }

// An eventWriter writes events as JSON lines.
type eventWriter struct {
	run swarm.RunID
	mu  sync.Mutex
	out *json.Encoder
}

func (w *eventWriter) Event(e *swarm.Event) { w.write(e.Public(w.run)) }

func (w *eventWriter) write(v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(v) // the watched writer below stops the run when its reader is gone
}

func (w *eventWriter) Delta(string, swarm.Delta) {}

func (w *eventWriter) Close() error { return nil }

// find finds the run that a user names by its id, the beginning of it, or @last.
func (a *app) find(ref string) (*control.Control, swarm.RunID, error) {
	c, s, err := a.state(ref)
	return c, s.ID, err
}

// state finds a run, with its current summary.
func (a *app) state(ref string) (*control.Control, swarm.RunSummary, error) {
	c, err := a.control()
	if err != nil {
		return nil, swarm.RunSummary{}, err
	}
	s, err := c.Find(ref)
	return c, s, err
}
