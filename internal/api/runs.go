package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
)

type runList struct {
	Runs []swarm.RunSummary `json:"runs"`
	Next swarm.RunID        `json:"next,omitempty"` // the value of before for the next page
}

// listRuns lists runs, the newest first.
func (a *API) listRuns(r *http.Request) (reply, error) {
	q := ask(r, "before", "limit", "status")
	before, limit, status := q.text("before"), q.limit(), q.runStatus()
	if q.err != nil {
		return reply{}, q.err
	}
	list := runList{Runs: []swarm.RunSummary{}}
	for s, err := range a.Control.Runs(before) {
		if err != nil {
			return reply{}, err
		}
		if status != "" && s.Status != status {
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
	if err := readBody(r, &w, "dir", "file", "pipeline", "tasks", "only", "set", "provider", "jobs", "stdin", "goal", "to", "done", "done_command", "mode", "phase"); err != nil {
		return reply{}, err
	}
	switch {
	case w.Pipeline != "" && len(w.Tasks) > 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "a run is of a pipeline or of some tasks, not of both").WithHint("leave out pipeline or tasks")
	case w.Goal != "" && (w.Pipeline != "" || len(w.Tasks) > 0 || w.Only || w.Stdin != ""):
		return reply{}, swarm.Errorf(swarm.BadInput, "a team has a goal, and no pipeline or tasks").WithHint("leave out goal, or pipeline, tasks, only and stdin")
	case w.Goal == "" && (w.To != "" || len(w.Done) > 0 || w.DoneCommand != "" || w.Mode != "" || w.Phase != ""):
		return reply{}, swarm.Errorf(swarm.BadInput, "to, done, done_command, mode and phase need a goal").WithHint("add goal, or leave them out")
	case w.Jobs < 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "jobs cannot be %d", w.Jobs).WithHint("write a whole number from 1 on, or leave it out")
	}
	if err := a.place(&w); err != nil {
		return reply{}, err
	}
	id, err := a.Start(r.Context(), w)
	if err != nil {
		return reply{}, notStarted(err)
	}
	return reply{http.StatusCreated, begun{id}}, nil
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

// showRun returns what `swarm show --json` prints.
func (a *API) showRun(r *http.Request, l *run.Reader) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	report, err := l.Report()
	if err != nil {
		return reply{}, err
	}
	return ok(report)
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
