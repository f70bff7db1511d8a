package control

import (
	"context"
	"sync"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/view"
)

// Drivers drive runs in the background of this process until its context ends. Then the runs are
// interrupted and can be resumed. The mutex guards driving and closed. Each run has a goroutine of
// its own.
type Drivers struct {
	Control *Control
	Context context.Context
	Version string
	Options run.Options                                       // of every run: its engine, its tool server, its telemetry
	Follow  func(id swarm.RunID, log swarm.Log) (stop func()) // called when driving begins, stop when it ends; nil = not at all
	Ended   func(p view.Picture, err error)                   // called when this process no longer drives a run

	all     sync.WaitGroup
	mu      sync.Mutex
	driving map[swarm.RunID]bool
	closed  bool
}

// Start begins a run. When it returns, the run is on disk.
func (d *Drivers) Start(ctx context.Context, r Request) (id string, err error) {
	unlock, err := d.Control.allot(ctx, &r)
	if err != nil {
		return "", err
	}
	defer unlock()
	b, err := d.Control.Plan(r)
	if err != nil {
		return "", err
	}
	return d.Begin(ctx, b)
}

// Begin begins a run that is planned. When it returns, the run is on disk.
func (d *Drivers) Begin(ctx context.Context, b *Begin) (id string, err error) {
	if err := b.Ready(d.Control.Home); err != nil {
		return "", err
	}
	if err := d.enter(); err != nil {
		return "", err
	}
	started, err := b.Start(ctx, d.Control.Home, d.Version)
	if err != nil {
		d.all.Done()
		return "", err
	}
	if b.Engine != "" { // a worker drives it
		d.all.Done()
		return string(started.ID), started.Close()
	}
	go d.drive(started, run.Options{})
	return string(started.ID), nil
}

// Resume drives a run that has no owner. When it returns, this process owns the run.
func (d *Drivers) Resume(ctx context.Context, id swarm.RunID) error {
	lock, err := d.Control.allotAgain(ctx, id)
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Unlock()
	}
	r, o, err := Continue(d.Control.Home, id, false, nil)
	if err != nil {
		return err
	}
	if err = d.enter(); err == nil {
		if err = r.Take(ctx); err == nil {
			err = held(ctx, lock)
		}
		if err != nil {
			d.all.Done()
		}
	}
	if err != nil {
		_ = r.Close() // no loop has begun
		return err
	}
	o.Actor = d.Control.Caller.Actor()
	go d.drive(r, o)
	return nil
}

// StartBy begins a run that start makes and begins to drive, such as a conversation. The request
// gets its part of the budget. wait returns when the run is no longer driven.
func (d *Drivers) StartBy(ctx context.Context, r Request, start func(Request) (id swarm.RunID, wait func() (view.Picture, error), err error)) (string, error) {
	unlock, err := d.Control.allot(ctx, &r)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := d.enter(); err != nil {
		return "", err
	}
	id, wait, err := start(r)
	if err != nil {
		d.all.Done()
		return "", err
	}
	d.note(id, true)
	go func() {
		defer d.all.Done()
		defer d.note(id, false)
		d.Ended(wait())
	}()
	return string(id), nil
}

// ResumeFromPrograms resumes the interrupted teams of this folder that other programs' messages
// began, because those programs cannot resume them. The programs that begin tasks can. Paused runs
// stay paused. report gets the errors.
func (d *Drivers) ResumeFromPrograms(ctx context.Context, report func(error)) error {
	for s, err := range d.Control.Runs("") {
		if err != nil {
			return err
		}
		if s.Origin == nil || s.Kind == swarm.SwarmRun || s.Status != swarm.Interrupted || s.Dir != d.Control.Dir {
			continue
		}
		if paused, err := run.PauseWanted(d.Control.Home, s.ID); err != nil || paused {
			continue
		}
		if err := d.Resume(ctx, s.ID); err != nil {
			report(err)
		}
	}
	return nil
}

// enter counts a run in, unless this process is about to end. It holds the mutex, so that no run is
// added after Wait has begun.
func (d *Drivers) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.Context.Err() != nil {
		return swarm.Errorf(swarm.Stopped, "this server is ending").WithHint("start it again")
	}
	d.all.Add(1)
	return nil
}

// drive drives a run to its end.
func (d *Drivers) drive(r *run.Run, o run.Options) {
	defer d.all.Done()
	defer r.Close()
	o.Engine, o.Server, o.Serve, o.Telemetry = d.Options.Engine, d.Options.Server, d.Options.Serve, d.Options.Telemetry
	d.note(r.ID, true)
	defer d.note(r.ID, false)
	if d.Follow != nil {
		defer d.Follow(r.ID, r.Log())()
	}
	d.Ended(r.Drive(d.Context, o))
}

func (d *Drivers) note(id swarm.RunID, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.driving == nil {
		d.driving = map[swarm.RunID]bool{}
	}
	d.driving[id] = on
}

// Wait waits until no run is driven. No run begins after that.
func (d *Drivers) Wait() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.all.Wait()
}

// Kill ends the processes of the runs' agents, before this program is killed.
func (d *Drivers) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, on := range d.driving {
		if on {
			process.Kill(id)
		}
	}
}
