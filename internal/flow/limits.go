package flow

import (
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A provider's limit ends a turn that is no failed attempt. All turns of that provider wait until the
// provider says that the limit resets, and no others. That time is a time of day: unlike other timers
// it does not stand still while the run is paused or no process drives it.

// reachLimit tells that a turn ended with a limit and runs again. route is its agent's.
func (r *runState) reachLimit(agent, task string, route plan.Route, end Result) error {
	r.usage = r.usage.Plus(end.Usage)
	limit := *end.Limit
	limit.Reason = end.Reason
	if other, held := r.machine.Reached().With(limit).Choose(route); held == nil {
		limit.Use = other
	}
	return r.tell(Fact{Kind: swarm.LimitReached, Key: "limit:" + end.ID, Task: task, Agent: agent, Turn: swarm.TurnID(end.ID), Body: limit})
}

// checkLimits ends the limits whose time has come.
func (r *runState) checkLimits() error {
	var over []string
	for _, l := range r.machine.Reached() {
		if !r.fx.Now().Before(l.Until) {
			over = append(over, l.Provider)
		}
	}
	return r.endLimits(over, false)
}

// endLimits lets the turns of providers start again.
func (r *runState) endLimits(providers []string, early bool) error {
	for _, name := range providers {
		var until time.Time
		for _, l := range r.machine.Reached() {
			if l.Provider == name {
				until = l.Until
			}
		}
		if err := r.tell(Fact{Kind: swarm.LimitEnded, Key: string(swarm.LimitEnded) + r.keySuffix(name),
			Body: swarm.Limit{Provider: name, Until: until, Early: early}}); err != nil {
			return err
		}
	}
	return nil
}
