package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A parentScreen also shows the swarms that do tasks of the run. Each is a run of its own, whose log
// and streams it follows, so it makes no difference which process drives it.
type parentScreen struct {
	term.ParentScreen
	home  *statedir.Home
	run   swarm.RunID
	began time.Time

	mu    sync.Mutex              // guards the fields below
	turns map[string]swarm.TurnID // by task: its turn
	kids  map[string]*childReader // by task
}

// A childReader follows a swarm that does a task.
type childReader struct {
	reader   *run.Reader
	timeline *run.Timeline
	show     func(run.Entry) error
	stop     context.CancelFunc
	done     chan struct{}
}

// withChildren makes a screen show the swarms that do tasks of a run, from where its fold stands.
func withChildren(s term.ParentScreen, h *statedir.Home, v *view.Run) term.Screen {
	p := &parentScreen{ParentScreen: s, home: h, run: v.ID, began: time.Now(), turns: map[string]swarm.TurnID{}, kids: map[string]*childReader{}}
	for i := range v.Len() {
		if t := v.At(i); t.InTurn() {
			p.turns[t.Name] = t.Turn
		}
	}
	return p
}

// Event shows an event. All lines of a swarm come before the end of the turn that began it.
func (p *parentScreen) Event(e *swarm.Event) {
	p.mu.Lock()
	switch e.Kind {
	case swarm.TurnStarted:
		p.turns[e.Task] = e.Turn
	case swarm.TurnEnded:
		p.leave(e.Task)
		delete(p.turns, e.Task)
	}
	p.mu.Unlock()
	p.ParentScreen.Event(e)
}

// Delta shows what a task's turn does. The first delta of a task that a swarm does names the swarm.
func (p *parentScreen) Delta(task string, d swarm.Delta) {
	if d.Kind == swarm.DeltaTool && d.Tool != nil && strings.HasPrefix(d.Tool.Name, run.ChildTool) && p.follow(task) {
		return
	}
	p.ParentScreen.Delta(task, d)
}

// follow begins to show the swarm that does a task, and reports whether there is one.
func (p *parentScreen) follow(task string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kids[task] != nil {
		return true
	}
	id := run.ChildID(p.run, p.turns[task])
	if !p.home.Exists(id) { // a tool of an agent has this name
		return false
	}
	r, err := run.OpenReader(p.home, id)
	if err != nil {
		return false
	}
	k := &childReader{reader: r, timeline: r.Timeline(), done: make(chan struct{})}
	v := view.New(id)
	if past, err := r.Fold(); err == nil && past.Started.Before(p.began) { // what was before, this screen does not show
		if timeline, err := r.TimelineFrom(past); err == nil {
			v, k.timeline = past, timeline
		}
	}
	screen := p.ParentScreen.Child(task, v)
	k.show = func(e run.Entry) error {
		if e.Event != nil {
			screen.Event(e.Event)
		} else {
			screen.Delta(e.Task, e.Delta())
		}
		return nil
	}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	go func() {
		defer close(k.done)
		_ = k.timeline.Follow(ctx, k.show) // an error ends only this part of the screen
	}()
	p.kids[task] = k
	return true
}

// leave shows the rest of the swarm that did a task. The caller holds the mutex.
func (p *parentScreen) leave(task string) {
	k := p.kids[task]
	if k == nil {
		return
	}
	delete(p.kids, task)
	k.stop()
	<-k.done
	_ = k.timeline.ReadNew(k.show)
	_ = k.reader.Close() // nothing was written
}

// Close shows the rest of all runs.
func (p *parentScreen) Close() error {
	p.mu.Lock()
	for task := range p.kids {
		p.leave(task)
	}
	p.mu.Unlock()
	return p.ParentScreen.Close()
}
