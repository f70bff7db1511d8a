// Package session is a conversation with a team. A person enters one line after the other. Each
// line becomes an addition to the run's plan, and the scheduler runs it. A session is a run like
// any other: it survives its process, and every view can show it.
//
// [Start] or [Resume] makes a session, [Session.Drive] drives its run, and [Session.Enter] takes a
// line. [Session.Face] is the session for a screen.
package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"swarm"
	"swarm/internal/line"
	"swarm/internal/plan"
	"swarm/internal/repl"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A Team is the agents that a person can speak to.
type Team struct {
	swarm.Plan           // of the team's file, without tasks
	Bodies      [][]byte // the texts that it names: roles, scripts
	Sources     []string // the files that it was made from, beside the compose file
	Default     string   // the agent of lines that name none; "" = none
	WaitTimeout time.Duration
	NoRefs      bool              // $agent is plain text
	Absent      map[string]string // see [line.Team]
	OneLine     bool              // there is only one line
	Actor       swarm.Actor       // the one who enters the lines
}

func (t *Team) names() (names []string) {
	for _, a := range t.Agents {
		if a.Name != line.Notify {
			names = append(names, a.Name)
		}
	}
	return names
}

// Lang returns what the language of lines knows of the team.
func (t *Team) Lang() line.Team {
	return line.Team{Agents: t.names(), Default: t.Default, NoRefs: t.NoRefs, Absent: t.Absent}
}

// A Session is a run of kind line that this process drives.
type Session struct {
	// OpenPage opens the page of the run in a browser, and returns its address; nil = there is none.
	OpenPage func() (address string, err error)

	run  *run.Run
	team Team

	entering sync.Mutex // serializes Enter, so that each line is planned after the one before; locked before mu
	mu       sync.Mutex // guards the following fields
	view     *view.Run  // caught up with the log on demand
	lang     line.Team
	models   map[string]string // by agent, as set by /model
	lines    []entered
	resumed  int64 // the last event before the session was resumed; constant after Resume

	stop   context.CancelCauseFunc // ends the driving; set by Drive
	begun  chan struct{}           // closed when the run's loop begins; before, stop would be an error
	over   chan struct{}           // closed when the run is no longer driven; last and failed are valid then
	last   view.Picture
	failed error
}

// An entered is a line that was accepted.
type entered struct {
	text  string
	tasks []string
}

// Start makes a session. When it returns, its run is on disk. Drive drives it.
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

// Resume continues a session whose run has no owner.
func Resume(ctx context.Context, h *statedir.Home, id swarm.RunID, team Team) (*Session, error) {
	r, err := run.Open(h, id)
	if err != nil {
		return nil, err
	}
	if r.Began().Kind != swarm.LineRun {
		return nil, errors.Join(swarm.Errorf(swarm.BadInput, "run %s is no session", id).WithHint("to resume it: swarm resume %s", id), r.Close())
	}
	if err := r.Take(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	s := newSession(r, team)
	return s, s.recall()
}

func newSession(r *run.Run, team Team) *Session {
	return &Session{run: r, team: team, view: view.New(r.ID), models: map[string]string{}, begun: make(chan struct{}), over: make(chan struct{}),
		lang: team.Lang()}
}

// Drive drives the session's run in a goroutine, until Close, until Leave, or until ctx ends.
func (s *Session) Drive(ctx context.Context, o run.Options) {
	ctx, s.stop = context.WithCancelCause(ctx)
	if s.resumed > 0 { // the pause of a new run is nobody's to end
		o.Actor = s.team.Actor
	}
	o.Begun = func() { close(s.begun) }
	o.Unpause, o.AtOnce = true, true // the next line waits until the screen has shown the end of the last one
	go func() {
		defer close(s.over)
		defer s.stop(nil)
		s.last, s.failed = s.run.Drive(ctx, o)
	}()
}

// recall reads the lines that were entered before the session was resumed.
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
		if e.To == "" { // the plan that the session began with
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

// Recall returns what an event from before the resume stands for: the line that was typed, or an
// agent's output.
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
			text, _ := s.run.Log().Body(end.Output) // /out reports the error
			return "", string(text)
		}
	}
	return "", ""
}

// ID returns the run's id.
func (s *Session) ID() swarm.RunID { return s.run.ID }

// Log returns the log of the session's run.
func (s *Session) Log() swarm.RunLog { return s.run.Log() }

// Enter takes a line or a command. It does not wait for the tasks of the line. The error of a line
// that cannot be parsed is a *line.Error, which has the position.
func (s *Session) Enter(ctx context.Context, text string) (repl.Entered, error) {
	s.entering.Lock()
	defer s.entering.Unlock()
	return s.enter(ctx, text)
}

// enter is Enter for callers that hold entering already.
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
	f.Plan.Kind, f.Plan.Name, f.Plan.Budget = swarm.LineRun, text, s.team.Budget // a turn reads the budget from the plan of its own line
	f.Plan.Edges, f.Plan.Approvals, f.Plan.More = s.team.Edges, s.team.Approvals, !s.team.OneLine
	named := run.Texts(&f.Plan)
	for _, text := range s.team.Bodies { // roles: after a resume, the log may have older ones
		if slices.Contains(named, swarm.HashOf(text)) {
			f.Bodies = append(f.Bodies, text)
		}
	}
	if err := s.run.Grow(ctx, n, &f.Plan, f.Bodies); err != nil {
		return repl.Entered{}, err
	}
	s.mu.Lock()
	s.lines = append(s.lines, entered{text, f.Tasks})
	s.mu.Unlock()
	return repl.Entered{Tasks: f.Tasks, Background: l.Background, Notices: f.Notices}, nil
}

// fragment returns the addition to the plan that a line makes.
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

// Lang returns the agents in the form of the line language.
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

// Picture returns the state of the session now.
func (s *Session) Picture() (view.Picture, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(); err != nil {
		return view.Picture{}, err
	}
	return s.view.Picture(), nil
}

// catchUp folds the new events. The caller holds mu.
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
		all = errors.Join(all, s.run.Say(ctx, swarm.ControlCommand{Command: swarm.CommandCancel, Target: t, Actor: s.team.Actor}))
	}
	return all
}

// Run returns the session's run.
func (s *Session) Run() *run.Run { return s.run }

// Close ends the input: no line follows. It waits until everything that was entered has ended, and
// closes the run. A task that waits for an output that no line can make any more fails at once.
func (s *Session) Close(ctx context.Context) (view.Picture, error) {
	closeErr := s.run.Say(context.WithoutCancel(ctx), swarm.ControlCommand{Command: swarm.CommandClose})
	if closeErr == nil {
		<-s.over
	}
	return s.last, errors.Join(closeErr, s.failed, s.run.Close())
}

// Leave ends the driving, so that the session can be resumed. It waits until nothing runs any more,
// or until ctx ends. A task that waits for an output still waits for it when the session is resumed.
func (s *Session) Leave(ctx context.Context) (view.Picture, error) {
	err := s.rest(ctx)
	s.stop(swarm.Errorf(swarm.Stopped, view.SessionLeft))
	<-s.over
	return s.last, errors.Join(err, s.failed, s.run.Close())
}

// rest waits until nothing runs any more: until every task has ended, or waits for an output that
// only a later line can make. It returns early when ctx ends or the run is no longer driven.
func (s *Session) rest(ctx context.Context) error {
	wake, off := s.run.Log().Watch()
	defer off()
	begun := s.begun
	for {
		p, err := s.Picture()
		if err != nil || begun == nil && atRest(p) {
			return err
		}
		select {
		case <-wake:
		case <-begun:
			begun = nil
		case <-s.over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// atRest reports whether nothing happens in a session until the next line. Each task comes after
// those that it depends on.
func atRest(p view.Picture) bool {
	resting := map[string]bool{}
	for _, t := range p.Tasks {
		if t.Status.Ended() {
			continue
		}
		resting[t.Name] = slices.ContainsFunc(t.Waits, func(w view.Wait) bool {
			return w.For == plan.ForOutput || w.For == plan.ForDependency && resting[w.Task]
		})
		if !resting[t.Name] {
			return false
		}
	}
	return true
}

// Over returns a channel that is closed when the run is no longer driven.
func (s *Session) Over() <-chan struct{} { return s.over }
