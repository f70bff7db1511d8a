// Package control is what can be done with runs: find, begin, pause, resume, cancel and close them,
// answer approvals, and check before a run starts whether its plan can run. Every door — commands,
// HTTP, A2A, MCP, the REPL — goes through this package, so that each rule is in one place. A door
// parses the request and prints the result.
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
	Dir      string // acts on the runs that were started in this folder
	Anywhere bool   // acts on the runs of all folders
	Caller   Caller
	Steering bool // finds only runs that the caller may steer
	// GoOn makes this process drive a run that has no owner. A command drives it in the foreground,
	// a server in the background.
	GoOn func(ctx context.Context, run swarm.RunID) error
	// DrivesNone says why this process drives no run that has no owner; nil = it does. GoOn returns it.
	DrivesNone error
}

// Find returns the run that a person names: an id, the beginning of one, or @last.
func (c *Control) Find(ref string) (swarm.RunSummary, error) {
	s, err := c.Home.Find(ref, c.Dir, c.Anywhere)
	if err == nil && c.Steering {
		err = c.maySteer(s.ID)
	}
	return s, err
}

// Lookup returns the run that a program names. It takes only a whole id, because programs do not
// guess, or @last for the newest.
func (c *Control) Lookup(id string) (swarm.RunSummary, error) {
	missing := swarm.Errorf(swarm.NotFound, "there is no run %s", swarm.Quote(id)).WithHint("GET /api/v1/runs lists them")
	s, err := c.Find(id)
	switch kind := swarm.KindOf(err); {
	case kind == swarm.BadInput, kind == swarm.NotFound: // no run, several runs, or a run of another folder
		return swarm.RunSummary{}, missing
	case err != nil:
		return swarm.RunSummary{}, err
	case string(s.ID) != id && id != "@last":
		return swarm.RunSummary{}, missing
	}
	return s, nil
}

// Runs iterates over the runs, newest first, with the current state of their logs. With before it
// starts at the first run that is older.
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

// Open returns the runs that have not ended and whose logs can be read.
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

// Newest returns the newest run that a process drives, else the newest. When the caller steers and is
// an agent, only the runs that its turn began count: the newest run is often another team's.
func (c *Control) Newest() (ref string, err error) {
	for s, err := range c.Home.Runs(c.Dir, c.Anywhere, "") {
		if err != nil {
			return "", err
		}
		if c.Steering && c.maySteer(s.ID) != nil {
			continue
		}
		if !s.Status.Ended() && c.Home.Driven(s.ID) {
			return string(s.ID), nil
		}
	}
	return "@last", nil // its error explains what is wrong if there is no run
}

// Meant returns the run that a person or an agent means. It is the named run, else the run whose
// agent started this program, else the newest run that a process drives, else the newest.
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

// OpenReader opens a run for reading.
func (c *Control) OpenReader(id swarm.RunID) (*run.Reader, error) { return run.OpenReader(c.Home, id) }

// Picture returns the state of a run now.
func (c *Control) Picture(id swarm.RunID) (view.Picture, error) {
	l, err := c.OpenReader(id)
	if err != nil {
		return view.Picture{}, err
	}
	p, err := l.Picture()
	return p, errors.Join(err, l.Close())
}

// Driver returns the process that drives a run, if there is one.
func (c *Control) Driver(id swarm.RunID) (who swarm.Owner, driven bool, err error) {
	l, err := c.OpenReader(id)
	if err != nil {
		return who, false, err
	}
	who, driven = l.Driver()
	return who, driven, l.Close()
}

// Target checks that the run has the task, or with an @ the agent, that a person names. It returns
// the name without the @.
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
