package run

import (
	"context"

	"swarm"
)

// Telemetry follows the runs that this process drives. It reads their logs and never blocks a run.
type Telemetry interface {
	// Join is called when a run is driven from here on, and leave when it was left. Leave may take a moment. What is said by
	// notice is told to people.
	Join(run swarm.RunID, log swarm.RunLog, notice func(reason, hint string)) (leave func())
	// Trace is what the programs of a turn are told they belong to, as W3C's traceparent; "" = nothing.
	Trace(run swarm.RunID, turn swarm.TurnID) string
}

// startTelemetry has telemetry join the run, and returns the function that ends that.
func (d *driver) startTelemetry(ctx context.Context) (part func()) {
	if d.options.Telemetry == nil {
		return func() {}
	}
	return d.options.Telemetry.Join(d.ID, d.log, func(reason, hint string) {
		// It may be the last thing that happens, and is to be seen by those who look at the end. It is told in vain when the run is another's.
		_ = d.append(context.WithoutCancel(ctx), false, noticeOf(reason, hint))
	})
}

func (d *driver) trace(turn swarm.TurnID) string {
	if d.options.Telemetry == nil {
		return ""
	}
	return d.options.Telemetry.Trace(d.ID, turn)
}
