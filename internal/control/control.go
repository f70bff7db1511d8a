// Package control is what can be done with runs: find, begin, pause, resume, cancel and close them, answer what their agents
// ask, and look whether a plan could run before it does. Every door — commands, HTTP, A2A, MCP, the REPL — comes through here, so
// that each rule stands in one place. A door parses what it is asked and prints what comes of it.
package control

import (
	"context"
	"errors"
	"iter"
	"strings"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A Control acts on the runs of one folder, or of all folders, for one caller.
type Control struct {
	Home     *statedir.Home
	Dir      string // acts on runs that were started here
	Anywhere bool   // or in any folder
	Caller   Caller
	// GoOn has this process drive a run that no process drives. A command drives it before its eyes, a server in the background.
	GoOn func(ctx context.Context, run swarm.RunID) error
}

// Find finds the run that a person names: an id, the beginning of one, or @last.
func (c *Control) Find(ref string) (swarm.RunSummary, error) {
	return c.Home.Find(ref, c.Dir, c.Anywhere)
}

// Lookup finds the run that a program names: by its whole id, because programs do not guess, or the newest by @last.
func (c *Control) Lookup(id string) (swarm.RunSummary, error) {
	missing := swarm.Errorf(swarm.NotFound, "there is no run %s", swarm.Quote(id)).WithHint("GET /api/v1/runs lists them")
	s, err := c.Find(id)
	switch kind := swarm.KindOf(err); {
	case kind == swarm.BadInput, kind == swarm.NotFound: // the id of no run, of several, or of one that is not ours to show
		return swarm.RunSummary{}, missing
	case err != nil:
		return swarm.RunSummary{}, err
	case string(s.ID) != id && id != "@last":
		return swarm.RunSummary{}, missing
	}
	return s, nil
}

// Runs goes through the runs, newest first, from the one that is older than before on, as their logs have them now.
func (c *Control) Runs(before string) iter.Seq2[swarm.RunSummary, error] {
	return func(yield func(swarm.RunSummary, error) bool) {
		for s, err := range c.Home.Runs(c.Dir, c.Anywhere, swarm.RunID(before)) {
			if err == nil {
				s = run.Current(c.Home, s)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Open is the runs that have not ended and whose logs can be read.
func (c *Control) Open() (open []swarm.RunSummary, err error) {
	for s, err := range c.Home.Runs(c.Dir, c.Anywhere, "") {
		if err != nil {
			return nil, err
		}
		if !s.Status.Ended() && s.Problem == "" {
			open = append(open, s)
		}
	}
	return open, nil
}

// Newest is the newest run that a process drives, else the newest.
func (c *Control) Newest() (ref string, err error) {
	for s, err := range c.Home.Runs(c.Dir, c.Anywhere, "") {
		if err != nil {
			return "", err
		}
		if !s.Status.Ended() && c.Home.Driven(s.ID) {
			return string(s.ID), nil
		}
	}
	return "@last", nil // which also says what is wrong when there is none
}

// Meant is the run that a person or an agent means: the one that is named, the one inside of which this program was started, the
// newest that a process drives, or the newest.
func (c *Control) Meant(ref string) (swarm.RunSummary, error) {
	if ref == "" && c.Home.Exists(c.Caller.Run) {
		return c.Home.Summary(c.Caller.Run), nil
	}
	if ref == "" {
		var err error
		if ref, err = c.Newest(); err != nil {
			return swarm.RunSummary{}, err
		}
	}
	return c.Find(ref)
}

// OpenReader opens a run to look at it.
func (c *Control) OpenReader(id swarm.RunID) (*run.Reader, error) { return run.OpenReader(c.Home, id) }

// Picture is what a run looks like now.
func (c *Control) Picture(id swarm.RunID) (view.Picture, error) {
	l, err := c.OpenReader(id)
	if err != nil {
		return view.Picture{}, err
	}
	p, err := l.Picture()
	return p, errors.Join(err, l.Close())
}

// Driver is the process that drives a run, if one does.
func (c *Control) Driver(id swarm.RunID) (who swarm.Owner, driven bool, err error) {
	l, err := c.OpenReader(id)
	if err != nil {
		return who, false, err
	}
	who, driven = l.Driver()
	return who, driven, l.Close()
}

// Target is the task, or with an @ the agent, that a person names, if the run has it.
func (c *Control) Target(id swarm.RunID, name string) (string, error) {
	p, err := c.Picture(id)
	if err != nil {
		return "", err
	}
	var names []string
	if agent, ok := strings.CutPrefix(name, "@"); ok {
		for _, a := range p.Agents {
			if a.Name == agent {
				return agent, nil
			}
			names = append(names, "@"+a.Name)
		}
		return "", swarm.Errorf(swarm.BadInput, "the run has no agent %q", agent).WithHint("%s", swarm.DidYouMean(name, names))
	}
	for _, t := range p.Tasks {
		if t.Name == name || t.Base == name {
			return name, nil
		}
		names = append(names, t.Name)
	}
	return "", swarm.Errorf(swarm.BadInput, "the run has no task %q", name).WithHint("%s", swarm.DidYouMean(name, names))
}
