package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

// logOptions select what to print of a run's timeline.
type logOptions struct {
	tasks  []string
	follow bool
	times  bool
	since  time.Time
	grep   *regexp.Regexp
	last   int // lines; -1 = all
}

func (a *app) logsCommand() *cobra.Command {
	var o logOptions
	var from, grep string
	cmd := &cobra.Command{
		Use:   "logs [RUN] [TASK…]",
		Short: "Print what agents said, and how their tasks went",
		Long: `Print what the agents of a run said, in order of time, with the events of their tasks in between.
Each line starts with its task and a mark: | output, ! standard error, > tools. If a turn's stream is
gone, print its stored output. Lines of a swarm are those of swarm solve.

With --json each line is {time, task, turn, kind, text}.

` + newestRun,
		Example: "  swarm logs\n  swarm logs code test -f\n  swarm logs @last --since 10m --grep 'FAIL|panic'\n  swarm logs @last -n 20",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.since, err = since(from, time.Now()); err != nil {
				return err
			}
			if cmd.Flags().Changed("number") && o.last < 0 {
				return swarm.Errorf(swarm.BadInput, "-n %d: the number of lines cannot be negative", o.last)
			}
			if grep != "" {
				if o.grep, err = regexp.Compile(grep); err != nil {
					return swarm.Errorf(swarm.BadInput, "--grep %s: %w", grep, err).WithHint("the syntax is RE2; to match a special character itself, write \\ in front of it")
				}
			}
			o.tasks = args[1:]
			return a.logs(args[0], o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "print new lines until the run ends")
	f.BoolVarP(&o.times, "times", "t", false, "put the time in front of each line")
	f.StringVar(&from, "since", "", "only lines since this `time`: 10m, 2d, 14:30 or 2026-11-15T14:30:00Z")
	f.StringVar(&grep, "grep", "", "only lines that match this `expression`")
	f.IntVarP(&o.last, "number", "n", -1, "only the last `N` lines")
	f.Lookup("number").DefValue = "all"
	return cmd
}

func (a *app) logs(ref string, o logOptions) error {
	home, l, err := a.openReader(ref)
	if err != nil {
		return err
	}
	defer l.Close()
	p, end, err := logged(home, l, o)
	if err != nil {
		return err
	}
	w, err := a.logWriter(p, o)
	if err != nil {
		return err
	}
	if p.Kind == swarm.SwarmRun && !a.json {
		return w.swarm(l)
	}
	timeline, lines, err := w.past(l, end)
	if err == nil {
		err = w.catchUp()
	}
	if err == nil && o.follow {
		err = follow(timeline, lines.Take)
	}
	return errors.Join(err, lines.End(), w.catchUp())
}

// follow prints what is new until the run has no driver, or the user leaves, which is no failure.
func follow(timeline *run.Timeline, take func(run.Entry) error) error {
	ctx, end := leaveSignals()
	defer end()
	err := timeline.Follow(ctx, take)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// swarm prints the log of a swarm as `swarm solve` prints it: its agents answer in JSON, which is not
// for people.
func (w *logWriter) swarm(l *run.Reader) error {
	at := &swarmLog{logWriter: w}
	lines := term.NewLines(view.New(l.ID), at, w.color)
	lines.ShowsAnswer = true
	take := func(e run.Entry) error {
		if at.time = e.Time; e.Event != nil {
			lines.Event(e.Event)
		} else {
			lines.Delta(e.Task, e.Delta())
		}
		return nil
	}
	timeline := l.Timeline()
	err := timeline.ReadNew(take)
	if err == nil {
		err = w.catchUp()
	}
	if err == nil && w.follow {
		err = follow(timeline, take)
	}
	return errors.Join(err, lines.Close(), w.catchUp())
}

// A swarmLog selects lines that are drawn already.
type swarmLog struct {
	*logWriter
	time time.Time // of the entry that is drawn
}

func (s *swarmLog) Write(drawn []byte) (int, error) {
	for line := range strings.Lines(string(drawn)) {
		line = strings.TrimSuffix(line, "\n")
		task, text := term.SplitLine(line)
		if err := s.take(logLine{run.Line{Time: s.time, Task: task, Text: text}, line}); err != nil {
			return 0, err
		}
	}
	return len(drawn), nil
}

// A logLine is a line of a log. That of a swarm is drawn already.
type logLine struct {
	run.Line
	drawn string
}

// manyTasks is the number of tasks from which on lines of a run are printed without knowing all of its
// tasks.
const manyTasks = 1000

// logged returns the tasks that the lines may be of, and where the run stands. Of a large run that has
// ended it returns only the tasks that are asked for; the last lines name theirs. The log of a swarm is
// drawn from its beginning, so all of it is read.
func logged(home *statedir.Home, l *run.Reader, o logOptions) (view.Picture, run.TimelineEnd, error) {
	if s := home.Summary(l.ID); (o.last >= 0 || len(o.tasks) > 0) && s.Tasks > manyTasks && s.Kind != swarm.SwarmRun {
		end, ended, err := l.Ended()
		var p view.Picture
		for _, name := range o.tasks {
			if turn, wrong := l.LastTurn(name); turn == "" { // it has copies, or no turn, or does not exist
				ended, err = false, errors.Join(err, wrong)
			}
			p.Tasks = append(p.Tasks, view.Task{Name: name})
		}
		if ended || err != nil {
			return p, end, err
		}
	}
	v, err := l.Fold()
	if err != nil {
		return view.Picture{}, run.TimelineEnd{}, err
	}
	return v.Picture(), run.EndOf(v), nil
}

// past prints the timeline so far. For the last lines it starts near the end of the run, and starts
// again eight times as far back while it finds too few. Reading a long run whole would be slow.
func (w *logWriter) past(l *run.Reader, end run.TimelineEnd) (timeline *run.Timeline, lines *run.Lines, err error) {
	for events := int64(4*w.last + 100); ; events *= 8 {
		if w.last < 0 {
			events = end.Seq
		}
		var whole bool
		if timeline, whole, err = l.TimelineOfLast(end, events); err != nil {
			return nil, nil, err
		}
		if len(w.tasks) > 0 {
			timeline.Only = func(task string) bool { return slices.Contains(w.tasks, task) }
		}
		w.held, w.sure, w.late = nil, false, 0
		lines = &run.Lines{Fn: func(l run.Line) error { return w.take(logLine{Line: l}) }}
		err := timeline.ReadNew(func(m run.Entry) error {
			w.sure = w.sure || m.Event != nil
			return lines.Take(m)
		})
		if err != nil || whole || w.late >= w.last {
			return timeline, lines, err
		}
	}
}

// A logWriter prints the lines of a timeline that a user wants to see.
type logWriter struct {
	logOptions
	app   *app
	print *term.LogLines
	color bool
	held  []logLine // the last lines so far, until catchUp prints them
	sure  bool      // an event was read, so no later line is missing
	late  int       // lines since sure
	live  bool      // lines are printed at once
}

func (a *app) logWriter(p view.Picture, o logOptions) (*logWriter, error) {
	var tasks []string // the named tasks and their copies
	for _, name := range o.tasks {
		before := len(tasks)
		for _, t := range p.Tasks {
			if t.Name == name || t.Base == name {
				tasks = append(tasks, t.Name)
			}
		}
		if len(tasks) == before {
			for _, t := range tasksOf(p, name) {
				tasks = append(tasks, t.Name)
			}
		}
		if len(tasks) == before {
			_, err := task(p, name)
			return nil, err
		}
	}
	o.tasks = tasks
	color, err := a.paints()
	if err != nil {
		return nil, err
	}
	return &logWriter{logOptions: o, app: a, color: color, print: term.NewLogLines(a.stdout, p, color)}, nil
}

func (w *logWriter) take(line logLine) error {
	switch {
	case len(w.tasks) > 0 && !slices.Contains(w.tasks, line.Task),
		line.Time.Before(w.since),
		w.grep != nil && !w.grep.MatchString(line.Text):
		return nil
	case w.live || w.last < 0:
		return w.write(line)
	}
	if w.sure {
		w.late++
	}
	w.held = append(w.held, line)
	if len(w.held) > 2*w.last+100 {
		w.held = slices.Clone(w.held[len(w.held)-w.last:])
	}
	return nil
}

// catchUp prints the held lines. From then on each line is printed at once.
func (w *logWriter) catchUp() error {
	w.live = true
	held := w.held[max(0, len(w.held)-max(0, w.last)):]
	w.held = nil
	for _, line := range held {
		if line.Task != "" {
			w.print.Meet(line.Task)
		}
	}
	for _, line := range held {
		if err := w.write(line); err != nil {
			return err
		}
	}
	return nil
}

func (w *logWriter) write(line logLine) error {
	if w.app.json {
		return w.app.print(line.Line)
	}
	stamp := ""
	if w.times {
		stamp = line.Time.Local().Format("2006-01-02 15:04:05.000 ")
	}
	if line.drawn != "" {
		_, err := io.WriteString(w.app.stdout, term.Paint(w.color).With(term.Dim, stamp)+line.drawn+"\n")
		return err
	}
	for text := range strings.SplitSeq(line.Text, "\n") {
		if err := w.print.Print(stamp, line.Task, line.Kind, text); err != nil {
			return err
		}
	}
	return nil
}
