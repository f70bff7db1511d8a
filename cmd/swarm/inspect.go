package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

// openReader finds the run that a user names, and opens it for reading.
func (a *app) openReader(ref string) (*statedir.Home, *run.Reader, error) {
	c, id, err := a.find(ref)
	if err != nil {
		return nil, nil, err
	}
	l, err := c.OpenReader(id)
	return c.Home, l, err
}

// completeRun offers the ids of runs for a command's first argument.
func (a *app) completeRun(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offers := []string{"@last\tthe newest run"}
	c, err := a.control()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for s, err := range c.Home.Runs(c.Dir, c.Anywhere, "") {
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		if strings.HasPrefix(string(s.ID), begun) {
			offers = append(offers, string(s.ID)+"\t"+string(s.Status)+" "+s.Name)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// onTerminal reports whether standard output is a terminal.
func (a *app) onTerminal() bool {
	f, ok := a.stdout.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// attended reports whether a person watches: standard output or standard error is a terminal. A
// detached process still has its parent's standard error when it calls this.
func (a *app) attended() bool { return a.onTerminal() || xterm.IsTerminal(int(os.Stderr.Fd())) }

// terminal describes the terminal that screens draw on.
func (a *app) terminal(color bool) term.Terminal {
	return term.Terminal{In: a.keys(), Out: a.stdout, Color: color, Now: time.Now}
}

// keys is what keys are read from: standard input, or the terminal of the process if standard input is
// a file or a pipe, which is then the input of prompts. A file cannot be polled for keys.
func (a *app) keys() io.Reader {
	if xterm.IsTerminal(int(a.stdin.Fd())) {
		return a.stdin
	}
	if tty, err := os.Open("/dev/tty"); err == nil {
		return tty
	}
	return strings.NewReader("")
}

// paints reports whether standard output gets colours.
func (a *app) paints() (bool, error) { return term.Color(a.color, os.Getenv, a.onTerminal()) }

// errorPaint is for standard error. A bad --color, which is an error itself, gives none.
func (a *app) errorPaint() term.Paint {
	f, ok := a.stderr.(*os.File)
	color, err := term.Color(a.color, os.Getenv, ok && xterm.IsTerminal(int(f.Fd())))
	return term.Paint(err == nil && color)
}

// rank returns the word before a message, such as "error:", in its colour.
func rank(paint term.Paint, word string) string {
	styles := map[string]term.Style{"error:": term.Wrong, "warning:": term.Yellow, "hint:": term.Cyan}
	return paint.With(styles[word], word)
}

// width returns the width of the terminal that standard output is; 0 if it is none.
func (a *app) width() int {
	if f, ok := a.stdout.(*os.File); ok && a.onTerminal() {
		if w, _, err := xterm.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// table prints a table, at most as wide as the terminal.
func (a *app) table(t *term.Table) error {
	color, err := a.paints()
	if err != nil {
		return err
	}
	return t.Print(a.stdout, a.width(), color)
}

// foreign prepares text that an agent wrote for standard output. Programs get it unchanged. On a
// terminal, control characters are escaped: they could move the cursor or hide text.
func (a *app) foreign(text []byte) string {
	if a.onTerminal() {
		return term.Escape(string(text))
	}
	return string(text)
}

// printForeign prints a text that an agent wrote. On a terminal its last line ends, so that the prompt
// of the shell has a line of its own.
func (a *app) printForeign(text []byte) error {
	shown := a.foreign(text)
	if a.onTerminal() && shown != "" && !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	_, err := io.WriteString(a.stdout, shown)
	return err
}

// tasksOf returns the tasks of an agent, whose name may begin with an @.
func tasksOf(p view.Picture, agent string) (tasks []view.Task) {
	for _, t := range p.Tasks {
		if t.Agent == strings.TrimPrefix(agent, "@") {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// task finds the task of a run that a user names. An agent's name means its last task that has an
// output, or else its last.
func task(p view.Picture, name string) (view.Task, error) {
	var names, copies []string
	for _, t := range p.Tasks {
		if s := t.Subtask; s != nil && s.ID == name {
			return t, nil
		}
		if t.Name == name {
			return t, nil
		}
		if t.Base == name {
			copies = append(copies, t.Name)
		}
		names = append(names, t.Name)
	}
	err := swarm.Errorf(swarm.BadInput, "run %s has no task %q", p.ID, name)
	if copies != nil {
		return view.Task{}, err.WithHint("it has copies: %s", strings.Join(copies, ", "))
	}
	of := tasksOf(p, name)
	for _, t := range slices.Backward(of) {
		if t.Output.Hash != "" {
			return t, nil
		}
	}
	if len(of) > 0 {
		return of[len(of)-1], nil
	}
	return view.Task{}, err.WithHint("%s", swarm.DidYouMean(name, names))
}

// span reads a duration such as 90s, 10m or 1h30m, and also days and weeks: 7d, 2w. The limit of a
// century keeps the sum from overflowing.
func span(text string) (time.Duration, error) {
	const day, century = 24 * time.Hour, 36525 * 24 * time.Hour
	bad := swarm.Errorf(swarm.BadInput, "%q is not a duration", text).WithHint("write it like 90s, 10m, 1h30m, 7d or 2w")
	if text == "0" {
		return 0, nil
	}
	var total time.Duration
	rest := text
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		number, after, ok := strings.Cut(rest, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n*float64(unit.of) <= float64(century)) {
			return 0, bad
		}
		total += time.Duration(n * float64(unit.of))
		rest = after
	}
	if rest != "" || rest == text {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > century {
			return 0, bad
		}
		total += d
	}
	if total < 0 || total > century {
		return 0, bad
	}
	return total, nil
}

// since reads a point in time: a duration before now, a time of today, a date, or both.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := span(text); err == nil {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, m, d := now.Date()
			return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, swarm.Errorf(swarm.BadInput, "%q is not a time", text).WithHint("write how long ago, as in 10m or 2d, a time of today, as in 14:30, or 2026-11-15 14:30")
}

// ago formats a point in time relative to now, for people.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return ""
	case d < time.Second:
		return "now"
	case d < 7*24*time.Hour:
		return term.Duration(d.Truncate(time.Second)) + " ago"
	}
	return t.Local().Format("2006-01-02 15:04")
}
