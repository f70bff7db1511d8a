package run

import (
	"context"

	"swarm"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A Reader is a run that this process only looks at, whoever drives it.
type Reader struct {
	ID   swarm.RunID
	home *statedir.Home
	log  swarm.RunLog
}

// OpenReader opens a run to look at it. It keeps nobody from driving the run.
func OpenReader(h *statedir.Home, id swarm.RunID) (*Reader, error) {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadOnly)
	if err != nil {
		return nil, err
	}
	return &Reader{ID: id, home: h, log: log}, nil
}

// Close gives the run's log back.
func (r *Reader) Close() error { return r.log.Close() }

// Driven says whether a living process drives the run.
func (r *Reader) Driven() bool {
	_, driven := r.Driver()
	return driven
}

// Driver is the process that drives the run, if one does.
func (r *Reader) Driver() (who swarm.Owner, driven bool) {
	who, driven, err := r.log.Owner(context.Background())
	return who, driven && err == nil
}

// Read is up to limit events after a number, in order.
func (r *Reader) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	return r.log.Read(after, limit, to...)
}

// Watch gives a channel that holds a value soon after something was written, by whichever process. The function ends it.
func (r *Reader) Watch() (<-chan struct{}, func()) { return r.log.Watch() }

// Fold is the run's fold, up to now. If much had to be read for it, and no driver will, it is stored for the next reader.
func (r *Reader) Fold() (*view.Run, error) {
	v, stored, err := fold(r.log, r.ID)
	if err == nil && foldDue(v, stored) && !r.Driven() {
		if log, err := r.home.Store.Open(context.Background(), r.ID, swarm.ReadWrite); err == nil { // else it is made again
			_ = storeFold(log, v)
			_ = log.Close()
		}
	}
	return v, err
}

// Picture is what the run looks like now. One that has not ended and that nobody drives is interrupted, whatever its log says.
func (r *Reader) Picture() (view.Picture, error) {
	driven := r.Driven() // asked first: what its driver wrote before it left is in the fold
	v, err := r.Fold()
	if err != nil {
		return view.Picture{}, err
	}
	return withoutDriver(v.Picture(), driven), nil
}

func withoutDriver(p view.Picture, driven bool) view.Picture {
	if driven {
		return p
	}
	return p.Abandoned("the process that drove it is gone")
}

// Details are the run's turns, envelopes and artifacts. A turn that had not ended when the run was left is interrupted.
func (r *Reader) Details() (view.Details, error) {
	driven := r.Driven()
	d, err := view.Collect(swarm.Events(r.log, 0))
	markInterrupted(d.Turns, driven)
	return d, err
}

// Text is a text that the run's log holds, a prompt or an output.
func (r *Reader) Text(h swarm.Hash) ([]byte, error) {
	if h == "" || h == swarm.NoText {
		return nil, nil
	}
	return r.log.Body(h)
}

// Why is the path of waits that begins with a task or an agent, and the picture in which it is true.
func (r *Reader) Why(name string) (view.Chain, view.Picture, error) {
	driven := r.Driven()
	v, err := r.Fold()
	if err != nil {
		return nil, view.Picture{}, err
	}
	chain, err := v.Why(name)
	p := withoutDriver(v.Picture(), driven)
	for i := range chain { // an abandoned run is another picture than its log tells
		for _, t := range p.Tasks {
			if t.Name == chain[i].Task {
				chain[i].Status, chain[i].Waits, chain[i].Reason = t.Status, t.Waits, t.Reason
			}
		}
		if len(chain[i].Waits) == 0 { // nobody waits in a turn that was cut
			chain = chain[:i+1]
			break
		}
	}
	return chain, p, err
}

// Wait waits until the run has ended and its driver has left, until nobody drives it any more, or until ctx ends. It returns
// the last picture.
func (r *Reader) Wait(ctx context.Context) (view.Picture, error) {
	p := r.newPoller()
	defer p.stop()
	for r.Driven() {
		if err := p.wait(ctx, false); err != nil {
			return view.Picture{}, err
		}
	}
	return r.Picture()
}

// Current is the summary of a run, with what its log says by now: one is written only when a run begins and when it is left. A run
// that nobody drives stands where it was left.
func Current(h *statedir.Home, s swarm.RunSummary) swarm.RunSummary {
	if s.Status == "" || s.Status.Ended() || s.Status == swarm.Interrupted {
		return s
	}
	log, err := h.Store.Open(context.Background(), s.ID, swarm.ReadOnly)
	if err != nil {
		return s
	}
	defer log.Close()
	now, err := Summarize(log, s.ID)
	if err != nil || now.Status == "" {
		return s
	}
	return now
}

// Summarize makes the summary of a run from its log; an empty one when nothing was written yet.
func Summarize(log swarm.RunLog, run swarm.RunID) (swarm.RunSummary, error) {
	v, err := View(log, run)
	if err != nil || v.Seq == 0 {
		return swarm.RunSummary{}, err
	}
	return summarize(v.Picture()), nil
}
