// Package session is a conversation with a team: lines are entered one after the other, each becomes part of the run's plan, and
// the one scheduler runs it. A session is a run like any other. It survives its process, and every view can look at it.
package session

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"swarm"
	"swarm/internal/line"
	"swarm/internal/repl"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A Team is who can be spoken to.
type Team struct {
	swarm.Plan           // of the team's file, without tasks
	Bodies      [][]byte // the texts that it names: roles, scripts
	Default     string   // who is spoken to when nobody is named; "" = nobody
	WaitTimeout time.Duration
	NoRefs      bool // $agent is text
}

func (t *Team) names() (names []string) {
	for _, a := range t.Agents {
		if a.Name != line.Notify {
			names = append(names, a.Name)
		}
	}
	return names
}

// A Session is a run of kind line that this process drives.
type Session struct {
	run  *run.Run
	team Team

	entering sync.Mutex // one line at a time
	mu       sync.Mutex // guards what follows
	view     *view.Run  // up to date when somebody asks
	lang     line.Team
	models   map[string]string // by agent, as /model has set them
	lines    []entered
	resumed  int64 // the last event that was there when the session was resumed

	over   chan struct{} // the run is no longer driven
	last   view.Picture
	failed error
}

// entered is a line that was taken.
type entered struct {
	text  string
	tasks []string
}

// Start makes a session. Its run is on disk when it returns; Drive drives it.
func Start(ctx context.Context, h *statedir.Home, start swarm.RunStart, team Team) (*Session, error) {
	start.Kind = swarm.LineRun
	p := team.Plan
	p.Kind, p.Name, p.Open = swarm.LineRun, start.Name, true
	r, err := run.Start(ctx, h, start, &p, team.Bodies)
	if err != nil {
		return nil, err
	}
	return newSession(r, team), nil
}

// Resume goes on with a session that nobody drives.
func Resume(ctx context.Context, h *statedir.Home, id swarm.RunID, team Team) (*Session, error) {
	r, err := run.Open(h, id)
	if err != nil {
		return nil, err
	}
	if r.Began().Kind != swarm.LineRun {
		return nil, errors.Join(swarm.Errorf(swarm.BadInput, "run %s is no session", id).WithHint("to go on with it: swarm resume %s", id), r.Close())
	}
	if err := r.Take(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	s := newSession(r, team)
	return s, s.recall()
}

func newSession(r *run.Run, team Team) *Session {
	return &Session{run: r, team: team, view: view.New(r.ID), models: map[string]string{}, over: make(chan struct{}),
		lang: line.Team{Agents: team.names(), Default: team.Default, NoRefs: team.NoRefs}}
}

// Drive drives the session's run, beside everything else, until Close, or until ctx ends.
func (s *Session) Drive(ctx context.Context, o run.Options) {
	o.Unpause, o.AtOnce = true, true // the next line waits until the face has seen that the last one ended
	go func() {
		defer close(s.over)
		s.last, s.failed = s.run.Drive(ctx, o)
	}()
}

// recall reads the lines of the session that were entered before.
func (s *Session) recall() error {
	for e, err := range swarm.Events(s.run.Log(), 0) {
		if err != nil {
			return err
		}
		s.resumed = e.Seq
		if e.Kind != swarm.PlanAdded {
			continue
		}
		p, err := swarm.Body[swarm.Plan](e)
		if err != nil {
			return err
		}
		if e.To == "" { // the session's own
			s.team.Budget = p.Budget
			continue
		}
		one := entered{text: p.Name}
		for _, t := range p.Tasks {
			one.tasks = append(one.tasks, t.Name)
		}
		s.lines = append(s.lines, one)
	}
	return nil
}

// Recall is, of an event that was there before the session was resumed, the line that was entered or what an agent said.
func (s *Session) Recall(e *swarm.Event) (typed, said string) {
	switch {
	case e.Seq > s.resumed:
	case e.Kind == swarm.PlanAdded && e.To != "":
		p, err := swarm.Body[swarm.Plan](e)
		if err == nil {
			return p.Name, ""
		}
	case e.Kind == swarm.TurnEnded:
		end, err := swarm.Body[swarm.CallEnd](e)
		if err == nil && end.Output != "" {
			text, _ := s.run.Log().Body(end.Output) // /out says why it is not there
			return "", string(text)
		}
	}
	return "", ""
}

// ID is the run's.
func (s *Session) ID() swarm.RunID { return s.run.ID }

// Enter takes a line or a command. It does not wait for what the line begins. The error of a line that cannot be understood is a
// *line.Error, which knows the place.
func (s *Session) Enter(ctx context.Context, text string) (repl.Entered, error) {
	s.entering.Lock()
	defer s.entering.Unlock()
	return s.enter(ctx, text)
}

func (s *Session) enter(ctx context.Context, text string) (repl.Entered, error) {
	l, err := line.Parse(text, s.Lang())
	if err != nil {
		return repl.Entered{}, err
	}
	switch {
	case l.Command != nil:
		return s.command(ctx, l.Command)
	case l.Comment:
		return repl.Entered{}, nil
	}
	f, err := s.fragment(l)
	if err != nil {
		return repl.Entered{}, err
	}
	s.mu.Lock()
	n := len(s.lines) + 1
	s.mu.Unlock()
	f.Plan.Kind, f.Plan.Name, f.Plan.Budget = swarm.LineRun, text, s.team.Budget // who makes a turn knows only the plan that it is of
	f.Plan.Edges, f.Plan.Approvals = s.team.Edges, s.team.Approvals
	if err := s.run.Grow(ctx, n, &f.Plan, f.Bodies); err != nil {
		return repl.Entered{}, err
	}
	s.mu.Lock()
	s.lines = append(s.lines, entered{text, f.Tasks})
	s.mu.Unlock()
	return repl.Entered{Tasks: f.Tasks, Background: l.Background, Notices: f.Notices}, nil
}

// fragment is what the plan would grow by.
func (s *Session) fragment(l *line.Line) (*line.Fragment, error) {
	p, err := s.Picture()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	models := maps.Clone(s.models)
	s.mu.Unlock()
	return l.Plan(standingOf(p), line.PlanOptions{Agents: s.agents(), Providers: s.team.Providers, Models: models, WaitTimeout: s.team.WaitTimeout})
}

// Lang is who can be spoken to, as the line language knows them.
func (s *Session) Lang() line.Team {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lang
}

func (s *Session) agents() map[string]swarm.Agent {
	all := make(map[string]swarm.Agent, len(s.team.Agents))
	for _, a := range s.team.Agents {
		all[a.Name] = a
	}
	return all
}

// Picture is what the session looks like now.
func (s *Session) Picture() (view.Picture, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(); err != nil {
		return view.Picture{}, err
	}
	return s.view.Picture(), nil
}

// catchUp folds what has been written since.
func (s *Session) catchUp() error {
	for e, err := range swarm.Events(s.run.Log(), s.view.Seq) {
		if err == nil {
			err = s.view.Apply(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Cancel ends tasks for good.
func (s *Session) Cancel(ctx context.Context, tasks ...string) error {
	var all error
	for _, t := range tasks {
		all = errors.Join(all, s.run.Say(ctx, swarm.CommandCancel, t))
	}
	return all
}

// Run is the session's run.
func (s *Session) Run() *run.Run { return s.run }

// Close says that no line will come any more, waits until everything that was entered has ended, and gives the run back. A wait
// that nothing can end any more fails at once.
func (s *Session) Close(ctx context.Context) (view.Picture, error) {
	said := s.run.Say(context.WithoutCancel(ctx), swarm.CommandClose, "")
	if said == nil {
		<-s.over
	}
	return s.last, errors.Join(said, s.failed, s.run.Close())
}

// Leave gives the run back as it is: it can be resumed. The context that it was started with must have ended.
func (s *Session) Leave() (view.Picture, error) {
	<-s.over
	return s.last, errors.Join(s.failed, s.run.Close())
}

// Over is closed when the run is no longer driven.
func (s *Session) Over() <-chan struct{} { return s.over }
