// Package telemetry tells an OpenTelemetry collector what happens in a run, by the conventions for generative AI. It is a fold of
// the log like any other view: beside the run, never in its way. The log is its queue: when the collector is slow it reads on later,
// and what was told is noted with the run, so that a process which takes the run over goes on where the other one stopped.
//
// A run is one trace. Ids are made from the run's and the turns' own, so whoever tells of a turn tells of the same span. Envelopes are
// links from the turn that read them to the turn that sent them.
//
// OTLP is written here and not by OpenTelemetry's own exporters: those bring a gRPC stack along, which every call of the program
// would pay for, whether it exports anything or not.
package telemetry

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"swarm"
)

// An Exporter tells what happens in the runs of this process.
type Exporter struct {
	config  *config
	problem error // what is wrong with the settings: nothing is exported then
	meter   *meter

	posting   chan struct{} // holds a value while metrics are on their way: one after the other
	mu        sync.Mutex
	following map[*follower]bool
}

// Open makes an Exporter as the environment asks for it; nil when it asks for none. What is wrong with the settings is said in the
// runs, and hinders none of them.
func Open(getenv func(string) string, version string) *Exporter {
	c, err := read(getenv, version)
	if c == nil && err == nil {
		return nil
	}
	x := &Exporter{config: c, problem: err, posting: make(chan struct{}, 1), following: map[*follower]bool{}}
	if c != nil {
		x.meter = newMeter(time.Now())
	}
	return x
}

// Trace is what a program of a turn is told it belongs to, in the form of W3C's traceparent.
func (x *Exporter) Trace(run, turn string) string {
	if x.config == nil || x.config.traces == nil {
		return ""
	}
	t := traceOf(run)
	return traceparent(t, spanOf(t, "turn", turn), x.config.sampled(t))
}

// Join follows a run until it is left. A notice is said at most once.
func (x *Exporter) Join(run string, log swarm.RunLog, notice func(reason, hint string)) (leave func()) {
	if x.problem != nil {
		notice("nothing is told to OpenTelemetry: "+x.problem.Error(), swarm.HintOf(x.problem))
		return func() {}
	}
	f := newFollower(x, run, log, notice)
	x.mu.Lock()
	x.following[f] = true
	x.mu.Unlock()
	go f.live()
	return func() {
		close(f.quit)
		select {
		case <-f.gone:
		case <-time.After(x.config.patience):
			f.stop()
			<-f.gone
		}
		x.mu.Lock()
		delete(x.following, f)
		x.mu.Unlock()
	}
}

// sendMetrics tells the collector what was counted, and notes with every run how much of it that is.
func (x *Exporter) sendMetrics(ctx context.Context) error {
	to := x.config.metrics
	if to == nil {
		return nil
	}
	select {
	case x.posting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.posting }()
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

// foldName and foldVersion are what is noted with a run: up to which event its spans were told, and its metrics.
const (
	foldName    = "telemetry"
	foldVersion = "1"
)

// progress is how far the collector was told.
type progress struct {
	Spans   int64 `json:"spans"`
	Metrics int64 `json:"metrics"`
}

func loadProgress(log swarm.RunLog) (t progress) {
	if _, data, ok := log.LoadFold(foldName, foldVersion); ok {
		_ = json.Unmarshal(data, &t) // what cannot be read is told again
	}
	return t
}

func (t progress) save(log swarm.RunLog, seq int64) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return log.SaveFold(foldName, foldVersion, seq, data)
}
