package control

import (
	"context"
	"os"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/provider"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A Begin is a run that is about to begin.
type Begin struct {
	Bundle      *compose.Bundle
	File, Dir   string
	Args        []string
	Replay      string         // the recording that its agents' answers come from; "" = agents are reached
	From        swarm.RunID    // the run that this one tries again
	Origin      *swarm.Origin  // the message of another program by which it begins
	Waiting     ProgressReport // whom to tell what it waits for before it begins
	firstEvents []swarm.Event  // what it begins with beside its plan: a goal, or what is kept of another run
	cassette    *provider.Cassette
	id          swarm.RunID // "" = one is made
}

// BeginRetry is a run that tries an ended one again.
func BeginRetry(r *run.RetryPlan, args []string) *Begin {
	return &Begin{Bundle: &compose.Bundle{Plan: *r.Plan, Bodies: r.Bodies}, File: r.Start.File, Dir: r.Start.Dir, Args: args, From: r.Start.ID, firstEvents: r.CarriedOver}
}

// Options are how the run is driven. Without a recording its agents have to be there.
func (b *Begin) Options() (o run.Options, err error) {
	if b.Replay == "" {
		return o, Preflight(b.Bundle, b.Dir, b.Waiting)
	}
	if o.Replay = b.cassette; o.Replay == nil {
		o.Replay, err = OpenCassette(b.Replay)
	}
	return o, err
}

// Start makes the run. When it returns, the run is on disk.
func (b *Begin) Start(ctx context.Context, h *statedir.Home, version string) (*run.Run, error) {
	p := &b.Bundle.Plan
	return run.Start(ctx, h, swarm.RunStart{ID: b.id, Kind: p.Kind, Name: p.Name, Dir: b.Dir, File: b.File, Args: b.Args, Version: version,
		Replay: b.Replay != "", From: b.From, Origin: b.Origin, Time: time.Now()}, p, b.Bundle.Bodies, b.firstEvents...)
}

// OpenCassette reads a recorded run. Opening does not wait, should there be a pipe.
func OpenCassette(file string) (*provider.Cassette, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the recorded run %s cannot be opened: %w", file, swarm.WithoutPath(err)).WithHint("make one with --record FILE")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no recorded run, nor any file", file).WithHint("make one with --record FILE")
	}
	return provider.OpenCassette(f)
}

// Continue opens a run to drive it on. A replay needs its recording.
func Continue(h *statedir.Home, id swarm.RunID, replay string) (*run.Run, run.Options, error) {
	o := run.Options{Unpause: true}
	var err error
	if replay != "" {
		if o.Replay, err = OpenCassette(replay); err != nil {
			return nil, o, err
		}
	}
	r, err := run.Open(h, id)
	if err != nil {
		return nil, o, err
	}
	if r.Began().Replay && replay == "" {
		_ = r.Close() // nothing was written
		return nil, o, swarm.Errorf(swarm.BadInput, "the run %s was a replay", id).WithHint("name its recording: swarm resume %s --replay FILE", id)
	}
	return r, o, nil
}
