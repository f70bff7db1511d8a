package run

import (
	"context"

	"swarm"
)

// Telemetry follows the runs that this process drives. It reads their logs and never blocks a run.
type Telemetry interface {
	// Join is called when this process begins to drive a run, and leave when it stops. leave may
	// take a moment. notice appends a notice for people to the log.
	Join(run swarm.RunID, log swarm.RunLog, notice func(reason, hint string)) (leave func())
	// Trace returns the W3C traceparent for the programs of a turn, or "".
	Trace(run swarm.RunID, turn swarm.TurnID) string
}

// startTelemetry lets telemetry join the run, and returns the function that ends it.
func (d *driver) startTelemetry(ctx context.Context) (stop func()) {
	if d.options.Telemetry == nil {
		return func() {}
	}
	return d.options.Telemetry.Join(d.ID, d.log, func(reason, hint string) {
		// It may be the run's last event, so it waits for the disk. If another process owns the run
		// by now, the append is refused, which is right.
		_ = d.append(context.WithoutCancel(ctx), false, noticeOf(reason, hint))
	})
}

func (d *driver) trace(turn swarm.TurnID) string {
	if d.options.Telemetry == nil {
		return ""
	}
	return d.options.Telemetry.Trace(d.ID, turn)
}
