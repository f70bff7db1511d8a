package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A textReader reads a text of a run by its hash.
type textReader func(swarm.Hash) ([]byte, error)

// mostResults is how many results are printed when a run ends. Of a run with more, none is: the
// reader chooses with swarm out.
const mostResults = 3

// results returns the tasks whose outputs are the results of a run: the completed ones that no other
// task depends on.
func results(p view.Picture) (tasks []view.Task) {
	for _, t := range p.Tasks {
		if t.Final && t.Status == swarm.Completed && t.Good.Bytes > 0 && !p.Kind.Team() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// printEnd writes the results of a run, the table of its tasks, how the run ended, and what to type
// next. Of a swarm it writes the answer.
func (a *app) printEnd(h *statedir.Home, p view.Picture, text textReader) error {
	if a.quiet && !a.json {
		return a.printResult(p, text)
	}
	if p.Kind == swarm.SwarmRun {
		return a.endSwarm(p)
	}
	if a.json {
		return nil
	}
	if err := a.printResults(p, text); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	_ = a.table(term.TaskTable(p, func(t view.Task) string { return t.Name + ".txt" }))
	a.remedies(a.stdout, p)
	if p.Reason == string(p.Status) {
		p.Reason = "" // it only repeats the status
	}
	fmt.Fprintf(a.stdout, "\nrun %s %s%s\n", p.ID, p.Status, excerpt.Reason(term.Escape(p.Reason)))
	if p.Status != swarm.Interrupted && hasOutputs(h, p.ID) {
		fmt.Fprintf(a.stdout, "outputs: %s\n", h.OutputDir(p.ID))
	}
	a.printNext(nextCommands(p))
	return nil
}

// hasOutputs reports whether the copies of a run's outputs are here. Those of a shared run are on the
// machine that drove it.
func hasOutputs(h *statedir.Home, run swarm.RunID) bool {
	if _, shared := h.Store.(swarm.SharedStore); !shared {
		return true
	}
	_, err := os.Stat(h.OutputDir(run))
	return err == nil
}

// printResults writes the results of a run in full: what its lead reports, or the outputs of its last
// tasks.
func (a *app) printResults(p view.Picture, text textReader) error {
	if p.Report != "" {
		fmt.Fprintf(a.stdout, "\nreported: %s\n", term.Escape(strings.TrimRight(p.Report, "\n")))
	}
	for _, line := range p.Goal.Lines() {
		fmt.Fprintln(a.stdout, term.Escape(line))
	}
	tasks := results(p)
	if a.streamed || len(tasks) > mostResults {
		return nil
	}
	color, err := a.paints()
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if a.said != nil && a.said(t.Name) {
			continue
		}
		body, err := text(t.Good.Hash)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "\n%s\n", term.Paint(color).With(term.Bold, "output of "+term.OneLine(t.Name)+":"))
		if t.Good.Bytes > int64(len(body)) {
			fmt.Fprintf(a.stdout, "(the last %s of %s)\n", term.Bytes(int64(len(body))), term.Bytes(t.Good.Bytes))
		}
		fmt.Fprintln(a.stdout, strings.TrimRight(term.Escape(string(body)), "\n"))
	}
	return nil
}

// printResult writes only the results of a run, so that they can be piped. The reasons of failures go
// to standard error.
func (a *app) printResult(p view.Picture, text textReader) error {
	if p.Kind == swarm.SwarmRun {
		if p.Answer != "" {
			answer, err := a.readAnswer(string(p.ID))
			if err == nil {
				err = a.printAnswer(answer)
			}
			if err != nil {
				return err
			}
		}
	} else if err := a.writeOutputs(p, text); err != nil {
		return err
	}
	switch {
	case p.Status == swarm.Interrupted:
		a.complain(swarm.Errorf(swarm.Stopped, "run %s was interrupted", p.ID).WithHint("to resume it: %s", p.ResumeCommand()))
	case p.Status != swarm.Completed:
		a.complainOfTasks(p)
	}
	return nil
}

// writeOutputs writes the report of a team, or the outputs of the last tasks, and nothing else. A single
// task that failed has an output, too.
func (a *app) writeOutputs(p view.Picture, text textReader) error {
	if p.Report != "" {
		_, err := fmt.Fprintln(a.stdout, a.foreign([]byte(strings.TrimRight(p.Report, "\n"))))
		return err
	}
	tasks := results(p)
	if len(p.Tasks) == 1 && p.Tasks[0].Output.Hash != "" {
		tasks = []view.Task{p.Tasks[0]}
		tasks[0].Good = tasks[0].Output
	}
	for _, t := range tasks {
		body, err := text(t.Good.Hash)
		if err == nil {
			_, err = io.WriteString(a.stdout, a.foreign(body))
		}
		if err == nil && (len(tasks) > 1 || a.onTerminal()) && len(body) > 0 && body[len(body)-1] != '\n' {
			_, err = fmt.Fprintln(a.stdout)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// complainOfTasks prints why a run did not complete: its failed tasks, or else its own reason.
func (a *app) complainOfTasks(p view.Picture) {
	told := false
	for _, t := range p.Tasks {
		if t.Status != swarm.Failed && (t.Status != swarm.Cancelled || len(p.Tasks) > 1) {
			continue
		}
		told = true
		hint := "to see more: swarm show " + string(p.ID)
		if t.Hint != "" {
			hint = term.Escape(t.Hint) + "; " + hint
		}
		reason := t.Reason
		if !p.Kind.Team() { // the reason of an agent may be the words of the person
			reason = t.EndReason()
		}
		a.complain(swarm.Errorf(t.Kind, "%s %s%s", t.Name, t.Status, excerpt.Reason(term.Escape(reason))).WithHint("%s", hint))
	}
	if !told {
		a.complain(swarm.Errorf(swarm.Other, "run %s %s%s", p.ID, p.Status, excerpt.Reason(term.Escape(p.Reason))).WithHint("to see more: swarm show %s", p.ID))
	}
}

// A nextCommand is a command that a person may want to type when a run has ended.
type nextCommand struct{ command, why string }

// nextCommands returns what to type after a run.
func nextCommands(p view.Picture) (next []nextCommand) {
	add := func(why, format string, args ...any) {
		next = append(next, nextCommand{fmt.Sprintf(format, args...), why})
	}
	if p.Status == swarm.Interrupted {
		add("to resume it", "%s", p.ResumeCommand())
		return next
	}
	switch {
	case p.Status == swarm.Failed && p.Replay: // a retry would start its agents
		add("to see why", "swarm show %s", p.ID)
		add("if the plan has changed", "record the run again with --record")
	case p.Status == swarm.Failed:
		add("to see why", "swarm show %s", p.ID)
		add("to retry what failed", "swarm retry %s", p.ID)
	default:
		add("to see its turns", "swarm show %s", p.ID)
	}
	if tasks := results(p); len(tasks) > 0 && !p.Kind.Team() {
		add("to see an output", "swarm out %s %s", p.ID, tasks[len(tasks)-1].Name)
	}
	if from, to := snapshots(p); from.Hash != "" && to.Hash != "" && from.Hash != to.Hash {
		add("to see what changed", "swarm diff %s", p.ID)
	}
	return next
}

// printNext prints commands, one per line, so that none is cut and each can be copied. What a command is
// for stands in front of it, or where that does not fit, on the line above.
func (a *app) printNext(next []nextCommand) {
	width := 0
	if f, ok := a.stdout.(*os.File); ok && a.onTerminal() {
		width, _, _ = xterm.GetSize(int(f.Fd()))
	}
	for _, n := range next {
		line := n.why + ": " + n.command
		if width > 0 && len(line) > width {
			line = n.why + ":\n" + n.command
		}
		fmt.Fprintln(a.stdout, line)
	}
}
