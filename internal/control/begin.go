package control

import (
	"context"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/recording"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A Begin is a run that is about to begin.
type Begin struct {
	Bundle      *compose.Bundle
	File, Dir   string
	Args        []string
	Replay      string         // the recording that replaces its agents; "" = agents are reached
	From        swarm.RunID    // the run that this one retries
	Origin      *swarm.Origin  // the message of another program that begins it
	Parent      *swarm.TurnRef // the turn in which an agent begins it; nil = a person does
	Waiting     ProgressReport // reports slow preflight checks
	firstEvents []swarm.Event  // events after its plan: a goal, or the events carried over from another run
	recording   *recording.Recording
	id          swarm.RunID // "" = a new one is made
}

// BeginRetry returns a run that retries an ended one.
func BeginRetry(r *run.RetryPlan, args []string) *Begin {
	return &Begin{Bundle: &compose.Bundle{Plan: *r.Plan, Bodies: r.Bodies, Sources: r.Start.Sources}, File: r.Start.File, Dir: r.Start.Dir,
		Args: args, From: r.Start.ID, firstEvents: r.CarriedOver}
}

// Ready reports whether the run can begin: its agents pass the preflight check, or its recording
// can be read.
func (b *Begin) Ready() error {
	if b.Replay == "" {
		return Preflight(b.Bundle, b.Dir, b.Waiting)
	}
	_, err := b.Recording()
	return err
}

// Recording returns the recording that the run replays; nil = its agents are reached.
func (b *Begin) Recording() (_ *recording.Recording, err error) {
	if b.recording == nil && b.Replay != "" {
		b.recording, err = recording.Open(b.Replay)
	}
	return b.recording, err
}

// Start makes the run. When it returns, the run is on disk.
func (b *Begin) Start(ctx context.Context, h *statedir.Home, version string) (*run.Run, error) {
	p := &b.Bundle.Plan
	return run.Start(ctx, h, swarm.RunStart{ID: b.id, Kind: p.Kind, Name: p.Name, Dir: b.Dir, File: b.File, Sources: b.Bundle.Sources, Args: b.Args, Version: version,
		Replay: b.Replay != "", From: b.From, Parent: b.Parent, Origin: b.Origin, Time: time.Now()}, p, b.Bundle.Bodies, b.firstEvents...)
}

// Continue opens a run to drive it on. A replay needs its recording, unless it is cancelled, and no
// other run takes one.
func Continue(h *statedir.Home, id swarm.RunID, recorded bool) (*run.Run, run.Options, error) {
	o := run.Options{Unpause: true}
	r, err := run.Open(h, id)
	if err != nil {
		return nil, o, err
	}
	replay := r.Began().Replay
	o.Unpause = !replay // A replay obeys the recorded commands only.
	cancelled, err := r.Cancelled()
	switch {
	case err != nil:
	case replay && !recorded && !cancelled:
		err = swarm.Errorf(swarm.BadInput, "the run %s was a replay", id).WithHint("name its recording: swarm resume %s --replay FILE", id)
	case recorded && !replay:
		err = swarm.Errorf(swarm.BadInput, "the run %s is no replay: its agents were reached", id).WithHint("leave out --replay: swarm resume %s", id)
	default:
		return r, o, nil
	}
	_ = r.Close() // nothing was written
	return nil, o, err
}
