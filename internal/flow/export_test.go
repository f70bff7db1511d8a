package flow

import (
	"time"

	"swarm/internal/plan"
)

// WatchedTeam is Team for tests. It calls watch with the loop's model whenever the loop has taken
// all its steps.
func WatchedTeam(fx Fx, c Call, watch func(*plan.Team)) (Result, error) {
	watched := &watchedFx{Fx: fx}
	t := newTeam(watched)
	watched.rest = func() { watch(t.Team) }
	return t.run(c)
}

// A watchedFx reports when a loop waits for the next record.
type watchedFx struct {
	Fx
	rest func()
}

func (w *watchedFx) Next(most time.Duration) (Signal, error) {
	w.rest()
	return w.Fx.Next(most)
}
