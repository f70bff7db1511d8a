package main

import (
	"time"

	"swarm/internal/otlptest"
)

// telemetry measures the chain with a collector to which it is exported. The floor is the same
// without one: what the export costs a turn.
func (l *lab) telemetry() error {
	const tasks = 100
	dir, err := l.project("telemetry", chainFile(tasks, "true"))
	if err != nil {
		return err
	}
	collector := otlptest.Start()
	defer collector.Close()
	got, err := inTurn(21,
		func() (cost, error) {
			return l.measure(dir, "env", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, l.swarm, "up")
		},
		func() (cost, error) { return l.measure(dir, "env", l.swarm, "up") })
	if err != nil {
		return err
	}
	for _, what := range []struct {
		name string
		of   func(cost) time.Duration
	}{{"wall", wall}, {"CPU", cpu}} {
		with, without := p50(got[0], what.of), p50(got[1], what.of)
		r := ratio(with, without)
		l.add(row{
			"the chain, told to OpenTelemetry, per task: " + what.name, short(with / tasks),
			short(without/tasks) + " told to nobody", times(r), "≤ 1.1×", r <= 1.1})
	}
	return nil
}
