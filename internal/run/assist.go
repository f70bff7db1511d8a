package run

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/process"
	"swarm/internal/statedir"
)

// An Assistant makes calls of a run that another process drives, for the run's owner. It has the
// owner's fence, and neither renews the lease nor notifies people. Its agents use their tools by a
// server of this process.
type Assistant struct {
	Adapters *engine.Adapters
	driver   *driver
	release  func()
}

// Assist prepares this process for calls of a run, under the fence of its owner. Of the options, those
// that concern turns count. A run that has another owner is refused with ErrFenced.
func Assist(ctx context.Context, h *statedir.Home, id swarm.RunID, fence int64, o Options) (*Assistant, error) {
	r, err := Open(h, id)
	if err != nil {
		return nil, err
	}
	a, err := r.assist(ctx, fence, o)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return a, nil
}

func (r *Run) assist(ctx context.Context, fence int64, o Options) (*Assistant, error) {
	p, err := r.Plan()
	if err != nil {
		return nil, err
	}
	owner, _, err := r.log.Owner(ctx)
	if err == nil && owner.Fence != fence {
		err = swarm.ErrFenced
	}
	if err != nil {
		return nil, err
	}
	r.fence = fence
	folder, release := process.Contain(r.ID)
	unmark, err := r.home.MarkLive(r.ID, fence, process.Self().Started, folder)
	if err != nil {
		release()
		return nil, err
	}
	a := &Assistant{driver: &driver{Run: r, options: o, follower: newFollower(r.ID, r.log, o)}, release: func() {
		release()
		unmark()
	}}
	if err := a.driver.makeAdapters(ctx, p); err != nil {
		a.release()
		return nil, err
	}
	a.Adapters = &engine.Adapters{Log: r.log, Turn: a.driver.runner, Mailer: a.driver.runner.AgentAPI}
	return a, nil
}

// Log returns the run's log.
func (a *Assistant) Log() swarm.RunLog { return a.driver.log }

// Close ends everything that the turns of this process used. No call may be running.
func (a *Assistant) Close() error {
	d := a.driver
	err := d.runner.Close()
	if d.toolServer != nil {
		err = errors.Join(err, d.toolServer.close(), d.servers.Close())
		process.Clear(d.ID)
	}
	err = errors.Join(err, d.streams.close())
	a.release()
	return errors.Join(err, d.log.Close())
}
