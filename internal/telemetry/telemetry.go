// Package telemetry exports runs to an OpenTelemetry collector, by the conventions for generative
// AI. It is a fold of the log like any other view, and never delays the run.
//
// The log is its queue: if the collector is slow, the exporter reads the log later. The progress is
// stored with the run, so that a process which takes the run over continues where the other one
// stopped. After a crash the same spans may be sent again. They have the same ids, because ids are
// made from those of the run and its turns.
//
// A run is one trace. An envelope is a link from the turn that read it to the turn that sent it.
//
// OTLP is encoded here and not by OpenTelemetry's own exporters. Those bring a gRPC stack along,
// which would slow down the start of every command, even if nothing is exported.
package telemetry

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"swarm"
)

// An Exporter exports the runs of this process.
type Exporter struct {
	config  *config
	problem error // an error in the settings: then nothing is exported
	meter   *meter

	sending   chan struct{} // holds a value while metrics are being sent, so that requests do not overlap
	mu        sync.Mutex
	following map[*follower]bool
}

// Open makes an Exporter as the environment configures it, or nil if it configures none. An error
// in the settings becomes a notice in each run, and stops no run.
func Open(getenv func(string) string, version string) *Exporter {
	c, err := read(getenv, version)
	if c == nil && err == nil {
		return nil
	}
	x := &Exporter{config: c, problem: err, sending: make(chan struct{}, 1), following: map[*follower]bool{}}
	if c != nil {
		x.meter = newMeter(time.Now())
	}
	return x
}

// Trace returns the W3C traceparent of a turn, for its program.
func (x *Exporter) Trace(run swarm.RunID, turn swarm.TurnID) string {
	if x.config == nil || x.config.traces == nil {
		return ""
	}
	t := traceOf(run)
	return traceparent(t, spanOf(t, "turn", string(turn)), x.config.sampled(t))
}

// Join follows a run until leave is called. notice is called at most once.
func (x *Exporter) Join(run swarm.RunID, log swarm.RunLog, notice func(reason, hint string)) (leave func()) {
	if x.problem != nil {
		notice("nothing is told to OpenTelemetry: "+x.problem.Error(), swarm.HintOf(x.problem))
		return func() {}
	}
	f := newFollower(x, run, log, notice)
	x.mu.Lock()
	x.following[f] = true
	x.mu.Unlock()
	go f.run()
	return func() {
		close(f.quit)
		select {
		case <-f.done:
		case <-time.After(x.config.patience):
			f.stop()
			<-f.done
		}
		x.mu.Lock()
		delete(x.following, f)
		x.mu.Unlock()
	}
}

// sendMetrics sends the metrics to the collector, and notes for every run how much of it they
// cover.
func (x *Exporter) sendMetrics(ctx context.Context) error {
	to := x.config.metrics
	if to == nil {
		return nil
	}
	select {
	case x.sending <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.sending }()
	// The snapshot and the counted events are taken under the same locks, so that the stored
	// progress covers exactly what is sent.
	x.mu.Lock()
	counted := map[*follower]int64{}
	points := x.meter.snapshot(time.Now(), func() {
		for f := range x.following {
			counted[f] = f.counted
		}
	})
	x.mu.Unlock()
	if len(points.series) == 0 {
		return nil
	}
	if err := to.sendMetrics(ctx, x.config, points); err != nil {
		return err
	}
	x.meter.sent(points)
	for f, seq := range counted {
		f.metered.Store(max(seq, f.metered.Load()))
	}
	return nil
}

// foldName and foldVersion name the stored progress: the last events whose spans and whose metrics
// were sent.
const (
	foldName    = "telemetry"
	foldVersion = "1"
)

// A progress is how much of a run the collector has.
type progress struct {
	Spans   int64 `json:"spans"`
	Metrics int64 `json:"metrics"`
}

func loadProgress(log swarm.RunLog) (t progress) {
	if _, data, ok := log.LoadFold(foldName, foldVersion); ok {
		_ = json.Unmarshal(data, &t) // progress that cannot be read is exported again
	}
	return t
}

func (t progress) save(log swarm.RunLog, seq int64) error {
	return log.SaveFold(foldName, foldVersion, seq, swarm.Encode(t))
}
