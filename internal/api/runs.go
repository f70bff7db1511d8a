package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
	"swarm/internal/view"
)

type runList struct {
	Runs []swarm.RunSummary `json:"runs"`
	Next swarm.RunID        `json:"next,omitempty"` // the value of before for the next page
}

// listRuns lists runs, the newest first.
func (a *API) listRuns(r *http.Request) (reply, error) {
	q := ask(r, "before", "limit", "status", "q")
	before, limit, status, words := q.text("before"), q.limit(), q.runStatus(), strings.Fields(q.text("q"))
	if q.err != nil {
		return reply{}, q.err
	}
	list := runList{Runs: []swarm.RunSummary{}}
	for s, err := range a.Control.Runs(before) {
		if err != nil {
			return reply{}, err
		}
		if status != "" && s.Status != status || !s.Matches(words) {
			continue
		}
		if len(list.Runs) == limit {
			list.Next = list.Runs[limit-1].ID
			break
		}
		list.Runs = append(list.Runs, s)
	}
	return ok(list)
}

type begun struct {
	Run string `json:"run"`
}

// startRun starts a run. The reply is sent when the run is on disk.
func (a *API) startRun(r *http.Request) (reply, error) {
	var w control.Request
	if err := readBody(r, &w, "dir", "file", "pipeline", "tasks", "only", "set", "provider", "jobs", "stdin", "goal", "to", "done", "done_command", "mode", "phase",
		"line", "query", "agents", "iterations", "strategy", "approve_plan"); err != nil {
		return reply{}, err
	}
	ofTasks := w.Pipeline != "" || len(w.Tasks) > 0 || w.Only || w.Stdin != ""
	switch {
	case several(w.Goal != "", w.Line != "", w.Query != ""), (w.Line != "" || w.Query != "") && ofTasks:
		return reply{}, swarm.Errorf(swarm.BadInput, "a run is of tasks, of a goal, of a line or of a query").WithHint("name one of them")
	case w.Query == "" && (w.Agents != nil || w.Iterations != nil || w.Strategy != "" || w.ApprovePlan):
		return reply{}, swarm.Errorf(swarm.BadInput, "agents, iterations, strategy and approve_plan need a query").WithHint("add query, or leave them out")
	case w.Line != "" && w.Jobs != 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "a line has no jobs").WithHint("leave out jobs")
	case w.Pipeline != "" && len(w.Tasks) > 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "a run is of a pipeline or of some tasks, not of both").WithHint("leave out pipeline or tasks")
	case w.Goal != "" && ofTasks:
		return reply{}, swarm.Errorf(swarm.BadInput, "a team has a goal, and no pipeline or tasks").WithHint("leave out goal, or pipeline, tasks, only and stdin")
	case w.Goal == "" && (w.To != "" || len(w.Done) > 0 || w.DoneCommand != "" || w.Mode != "" || w.Phase != ""):
		return reply{}, swarm.Errorf(swarm.BadInput, "to, done, done_command, mode and phase need a goal").WithHint("add goal, or leave them out")
	case w.Jobs < 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "jobs cannot be %d", w.Jobs).WithHint("write a whole number from 1 on, or leave it out")
	}
	if err := a.place(&w); err != nil {
		return reply{}, err
	}
	if w.Line != "" {
		return started(a.StartLine(r.Context(), w, w.Line))
	}
	return started(a.Start(r.Context(), w))
}

// started makes the reply to a request that starts a run.
func started(id string, err error) (reply, error) {
	return reply{http.StatusCreated, begun{id}}, notStarted(err)
}

// several reports whether more than one is true.
func several(all ...bool) bool {
	n := 0
	for _, one := range all {
		if one {
			n++
		}
	}
	return n > 1
}

// retryRun retries what failed in a run that has ended, as a new run. In a run that has not ended, it
// retries a task that waits for a person.
func (a *API) retryRun(r *http.Request) (reply, error) {
	var body struct {
		From string `json:"from"`
	}
	if err := errors.Join(ask(r).err, readBody(r, &body, "from")); err != nil {
		return reply{}, err
	}
	s, err := a.Control.Lookup(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	if s = run.Current(a.Control.Home, s); !s.Status.Ended() {
		result, err := a.Control.RetryTask(r.Context(), s.ID, body.From)
		return reply{http.StatusAccepted, result}, err
	}
	b, err := a.Control.Retry(s.ID, body.From)
	if err != nil {
		return reply{}, err
	}
	return started(a.Begin(r.Context(), b))
}

// forkRun starts a new run that begins where a turn of this one began.
func (a *API) forkRun(r *http.Request) (reply, error) {
	var body struct {
		At      string  `json:"at"`
		Edit    *string `json:"edit"`
		Message string  `json:"message"`
	}
	if err := errors.Join(ask(r).err, readBody(r, &body, "at", "edit", "message")); err != nil {
		return reply{}, err
	}
	if body.At == "" {
		return reply{}, swarm.Errorf(swarm.BadInput, "no turn is named").WithHint(`write {"at": "TASK/ITERATION/ATTEMPT"}`)
	}
	s, err := a.Control.Lookup(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	b, err := a.Control.Fork(s.ID, body.At, body.Edit, body.Message)
	if err != nil {
		return reply{}, err
	}
	return started(a.Begin(r.Context(), b))
}

// showProject returns what the compose file of the server's folder has.
func (a *API) showProject(r *http.Request) (reply, error) {
	q := ask(r, "dir", "file")
	w := control.Request{Dir: q.text("dir"), File: q.text("file")}
	if q.err != nil {
		return reply{}, q.err
	}
	if err := a.place(&w); err != nil {
		return reply{}, err
	}
	p, err := a.Control.Project(w)
	if err != nil {
		return reply{}, err
	}
	return ok(p)
}

// place finds the folder of a run that is to be started. It stays in the server's own folder, unless
// the server acts everywhere.
func (a *API) place(w *control.Request) error {
	if !filepath.IsAbs(w.Dir) {
		w.Dir = filepath.Join(a.Control.Dir, w.Dir)
	}
	w.Dir = filepath.Clean(w.Dir)
	if !a.Control.Anywhere {
		w.Within = a.Control.Dir
		file := w.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(w.Dir, file)
		}
		if rel, err := filepath.Rel(w.Within, file); w.Dir != w.Within || err != nil || !filepath.IsLocal(rel) {
			return swarm.Errorf(swarm.Denied, "this server acts in %s only", a.Control.Dir).WithHint("start it with -g for every folder")
		}
	}
	if info, err := os.Stat(w.Dir); err != nil || !info.IsDir() {
		return swarm.Errorf(swarm.BadInput, "there is no folder %s", swarm.Quote(w.Dir)).WithHint("dir is where the run is started: the folder of swarm/swarm.yaml")
	}
	return nil
}

// notStarted returns the error of a run that could not be started. A missing file or program is no
// missing resource of the API.
func notStarted(err error) error {
	if swarm.KindOf(err) == swarm.NotFound {
		return refusal{http.StatusBadRequest, err}
	}
	return err
}

// A shownRun is a report whose lists may have their newest entries only.
type shownRun struct {
	view.Report
	Older *view.Older `json:"older,omitempty"` // what was left out of them
}

// showRun returns what `swarm show --json` prints. The lists of a long run are large: a client asks
// for none of them, or for their newest entries.
func (a *API) showRun(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "at", "lists", "last")
	at, last := q.number("at", 0, 1, math.MaxInt64), q.number("last", 0, 1, math.MaxInt32)
	lists := q.text("lists") == "" && (at == 0 || last > 0) || q.yes("lists")
	if q.err != nil {
		return reply{}, q.err
	}
	if lists && at > 0 && last == 0 {
		return reply{}, swarm.Errorf(swarm.BadInput, "a past moment has no whole lists").WithHint("write last=500 instead: the newest entries that the lists had then")
	}
	if !lists {
		p, err := pictureAt(l, at)
		if err != nil {
			return reply{}, err
		}
		return ok(view.Report{Picture: p, Details: view.NewCollector().Details})
	}
	report, err := l.ReportAt(at)
	if err != nil {
		return reply{}, err
	}
	shown := shownRun{Report: report}
	if last > 0 {
		shown.Older = shown.Details.Trim(int(last))
	}
	return ok(shown)
}

// pictureAt returns the run as it was after an event; 0 = as it is now.
func pictureAt(l *run.Reader, at int64) (view.Picture, error) {
	if at == 0 {
		return l.Living()
	}
	return l.PictureAt(at)
}

// showDiff returns what a run, or one of its turns, changed in files.
func (a *API) showDiff(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "turn")
	turn := q.text("turn")
	if q.err != nil {
		return reply{}, q.err
	}
	d, err := l.Diff(r.Context(), turn)
	if swarm.KindOf(err) == swarm.BadInput {
		err = refusal{http.StatusNotFound, err} // there is no such turn
	}
	if err != nil {
		return reply{}, err
	}
	return ok(d)
}

// steer makes the handler of a command to a run that has not ended. The reply is sent when the
// command is on disk.
func (a *API) steer(do func(ctx context.Context, id swarm.RunID) (control.CommandResult, error)) func(*http.Request) (reply, error) {
	return func(r *http.Request) (reply, error) {
		result, err := a.command(r, a.Control.Lookup, do)
		return reply{http.StatusAccepted, result}, err
	}
}

// command does something to a run that has not ended.
func (a *API) command(r *http.Request, find func(id string) (swarm.RunSummary, error), do func(ctx context.Context, id swarm.RunID) (control.CommandResult, error)) (control.CommandResult, error) {
	if err := errors.Join(ask(r).err, readBody(r, &struct{}{})); err != nil {
		return control.CommandResult{}, err
	}
	id, err := a.steerable(r, find)
	if err != nil {
		return control.CommandResult{}, err
	}
	return do(r.Context(), id)
}

// steerable finds a run that has not ended.
func (a *API) steerable(r *http.Request, find func(id string) (swarm.RunSummary, error)) (swarm.RunID, error) {
	s, err := find(r.PathValue("id"))
	if err == nil {
		err = a.Control.Steerable(s)
	}
	return s.ID, err
}

func (a *API) cancelRun(ctx context.Context, id swarm.RunID) (control.CommandResult, error) {
	return a.Control.Cancel(ctx, id, "")
}

// runStatus reads the status that runs of a list must have; "" = any.
func (q *question) runStatus() swarm.Status {
	status := swarm.Status(q.text("status"))
	if status != "" && !slices.Contains(swarm.RunStatuses, status) {
		q.fail(swarm.Errorf(swarm.BadInput, "no run is ever %s", swarm.Quote(string(status))).WithHint("choose one of %s", each(swarm.RunStatuses)))
	}
	return status
}
