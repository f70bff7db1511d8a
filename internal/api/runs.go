package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// statuses are the words for how a run stands.
var statuses = []swarm.Status{swarm.Running, swarm.Pausing, swarm.Paused, swarm.Completed, swarm.Failed, swarm.Cancelled, swarm.Interrupted}

type runList struct {
	Runs []swarm.RunSummary `json:"runs"`
	Next string             `json:"next,omitempty"` // what to ask before for the older ones
}

// listRuns lists runs, the newest first.
func (a *API) listRuns(r *http.Request) (reply, error) {
	q := ask(r, "before", "limit", "status")
	before, limit, status := q.text("before"), q.limit(), swarm.Status(q.text("status"))
	known := status == ""
	for _, s := range statuses {
		known = known || s == status
	}
	if !known {
		q.fail(swarm.Errorf(swarm.BadInput, "no run is ever %s", swarm.Quote(string(status))).WithHint("choose one of %s", each(statuses)))
	}
	if q.err != nil {
		return reply{}, q.err
	}
	list := runList{Runs: []swarm.RunSummary{}}
	for s, err := range a.Home.Runs(a.Dir, a.Anywhere, before) {
		if err != nil {
			return reply{}, err
		}
		if s = run.Current(a.Home, s); status != "" && s.Status != status {
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

// startRun begins a run. It is answered when the run is on disk.
func (a *API) startRun(r *http.Request) (reply, error) {
	var w Wanted
	if err := readBody(r, &w, "dir", "file", "pipeline", "tasks", "only", "set", "provider", "jobs", "stdin", "goal", "to", "done", "mode", "phase"); err != nil {
		return reply{}, err
	}
	switch {
	case w.Pipeline != "" && len(w.Tasks) > 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "a run is of a pipeline or of some tasks, not of both").WithHint("leave out pipeline or tasks")
	case w.Goal != "" && (w.Pipeline != "" || len(w.Tasks) > 0 || w.Only || w.Stdin != ""):
		return reply{}, swarm.Errorf(swarm.BadInput, "a team has a goal, and no pipeline or tasks").WithHint("leave out goal, or pipeline, tasks, only and stdin")
	case w.Goal == "" && (w.To != "" || len(w.Done) > 0 || w.Mode != "" || w.Phase != ""):
		return reply{}, swarm.Errorf(swarm.BadInput, "to, done, mode and phase are of a team, and there is no goal").WithHint("add goal, or leave them out")
	case w.Jobs < 0:
		return reply{}, swarm.Errorf(swarm.BadInput, "jobs cannot be %d", w.Jobs).WithHint("write a whole number from 1 on, or leave it out")
	}
	if !filepath.IsAbs(w.Dir) {
		w.Dir = filepath.Join(a.Dir, w.Dir)
	}
	w.Dir = filepath.Clean(w.Dir)
	if w.Dir != a.Dir && !a.Anywhere {
		return reply{}, swarm.Errorf(swarm.Denied, "this server acts in %s only", a.Dir).WithHint("start it with -g for every folder")
	}
	if info, err := os.Stat(w.Dir); err != nil || !info.IsDir() {
		return reply{}, swarm.Errorf(swarm.BadInput, "there is no folder %s", swarm.Quote(w.Dir)).WithHint("dir is where the run is started: the folder of swarm/swarm.yaml")
	}
	id, err := a.Driver.Start(r.Context(), w)
	if err != nil {
		if swarm.KindOf(err) == swarm.NotFound { // a file or a program, not what was asked for
			err = refusal{http.StatusBadRequest, err}
		}
		return reply{}, err
	}
	return reply{http.StatusCreated, begun{id}}, nil
}

// showRun is what `swarm show --json` prints.
func (a *API) showRun(r *http.Request, l *run.Look) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	p, err := l.Living()
	if err != nil {
		return reply{}, err
	}
	d, err := l.Details()
	if err != nil {
		return reply{}, err
	}
	return ok(view.Report{Picture: p, Details: d})
}

// noted is what was said to a run, and is on disk.
type noted struct {
	Run    string `json:"run"`
	Word   string `json:"word"`
	Target string `json:"target,omitempty"`
}

// say says something to a run that has not ended.
func (a *API) say(ctx context.Context, id string, word swarm.Word, target string) (reply, error) {
	if err := run.Control(ctx, a.Home, id, word, target); err != nil {
		return reply{}, err
	}
	return reply{http.StatusAccepted, noted{id, string(word), target}}, nil
}

// live finds a run that has not ended.
func (a *API) live(r *http.Request) (string, error) {
	if err := errors.Join(ask(r).err, readBody(r, &struct{}{})); err != nil {
		return "", err
	}
	return a.alive(r)
}

func (a *API) alive(r *http.Request) (string, error) {
	s, err := a.find(r.PathValue("id"))
	if err != nil {
		return "", err
	}
	if s = run.Current(a.Home, s); s.Status.Ended() {
		return "", conflict("to run what failed again: swarm retry "+s.ID, "run %s has ended (%s)", s.ID, s.Status)
	}
	return s.ID, nil
}

func (a *API) pauseRun(r *http.Request) (reply, error) {
	id, err := a.live(r)
	if err != nil {
		return reply{}, err
	}
	return a.say(r.Context(), id, swarm.WordPause, "")
}

// resumeRun lets a paused run go on, or drives one that nobody drives.
func (a *API) resumeRun(r *http.Request) (reply, error) {
	id, err := a.live(r)
	if err != nil {
		return reply{}, err
	}
	driven, err := a.driven(id)
	if err != nil {
		return reply{}, err
	}
	if !driven {
		return a.goOn(r.Context(), id, swarm.WordResume)
	}
	paused, err := run.PauseWanted(a.Home, id)
	if err != nil {
		return reply{}, err
	}
	if !paused {
		return reply{}, conflict("POST /api/v1/runs/"+id+"/pause pauses it", "run %s is not paused", id)
	}
	return a.say(r.Context(), id, swarm.WordResume, "")
}

// closeRun ends a team when the turns that it has now are through.
func (a *API) closeRun(r *http.Request) (reply, error) {
	id, err := a.live(r)
	if err != nil {
		return reply{}, err
	}
	if err := run.CloseTeam(r.Context(), a.Home, id); err != nil {
		if swarm.KindOf(err) == swarm.BadInput {
			err = refusal{http.StatusConflict, err}
		}
		return reply{}, err
	}
	return reply{http.StatusAccepted, noted{id, string(swarm.WordClose), ""}}, nil
}

// cancelRun ends a run for good. One that nobody drives is ended here.
func (a *API) cancelRun(r *http.Request) (reply, error) {
	id, err := a.live(r)
	if err != nil {
		return reply{}, err
	}
	return a.cancel(r.Context(), id)
}

func (a *API) cancel(ctx context.Context, id string) (reply, error) {
	if got, err := a.say(ctx, id, swarm.WordCancel, ""); err != nil {
		return got, err
	}
	driven, err := a.driven(id)
	if err != nil {
		return reply{}, err
	}
	if !driven {
		return a.goOn(ctx, id, swarm.WordCancel)
	}
	return reply{http.StatusAccepted, noted{Run: id, Word: string(swarm.WordCancel)}}, nil
}

func (a *API) driven(id string) (bool, error) {
	l, err := run.LookAt(a.Home, id)
	if err != nil {
		return false, err
	}
	defer l.Close()
	return l.Driven(), nil
}

// goOn drives a run that nobody drives. If somebody takes it in between, he obeys.
func (a *API) goOn(ctx context.Context, id string, word swarm.Word) (reply, error) {
	var owned *swarm.OwnedError
	if err := a.Driver.Resume(ctx, id); err != nil && !errors.As(err, &owned) {
		return reply{}, err
	}
	return reply{http.StatusAccepted, noted{Run: id, Word: string(word)}}, nil
}
