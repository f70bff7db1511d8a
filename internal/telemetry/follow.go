package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// maxWaiting is the number of spans that wait for the collector. The others stay in the log.
const maxWaiting = 2048

// maxContent is the number of bytes of a text that are exported.
const maxContent = 64 << 10

// A follower exports one run. Its goroutine owns it, except for the fields whose comments name a
// lock.
type follower struct {
	exporter *Exporter
	log      swarm.RunLog
	fold     *fold
	notice   func(reason, hint string)
	reported bool
	exported int64    // the last event whose spans the collector has
	saved    progress // the stored progress

	counted int64        // the last event whose measures are in the meter; guarded by the meter's lock
	metered atomic.Int64 // the last event whose measures the collector has

	ctx  context.Context
	stop context.CancelFunc
	quit chan struct{} // closed when the run is left
	done chan struct{} // closed when everything is sent, or given up
}

func newFollower(x *Exporter, run swarm.RunID, log swarm.RunLog, notice func(reason, hint string)) *follower {
	f := &follower{
		exporter: x,
		log:      log,
		notice:   notice,
		saved:    loadProgress(log),
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.exported = f.saved.Spans
	f.metered.Store(f.saved.Metrics)
	f.fold = newFold(run, f.saved)
	f.fold.outer = x.config.outer
	if x.config.content {
		f.fold.body = f.body
	}
	return f
}

// body returns a stored text, which has no secrets.
func (f *follower) body(h swarm.Hash) string {
	b, err := f.log.Body(h)
	if err != nil {
		return ""
	}
	return excerpt.Head(string(b), maxContent)
}

// run exports at intervals, and the rest at the end.
func (f *follower) run() {
	defer close(f.done)
	defer f.stop()
	c := f.exporter.config
	tick, meter := time.NewTicker(c.every), time.NewTicker(c.metricsEvery)
	defer tick.Stop()
	defer meter.Stop()
	for {
		select {
		case <-tick.C:
			_ = f.exportSpans() // the error is reported already, and the next tick retries
		case <-meter.C:
			f.exportMetrics()
		case <-f.quit:
			f.finish()
			return
		}
	}
}

// finish exports the rest, as long as the collector accepts it.
func (f *follower) finish() {
	if f.exportSpans() == nil {
		f.exportMetrics()
	}
}

func (f *follower) exportMetrics() {
	f.report(
		"metrics", f.exporter.sendMetrics(f.ctx),
		"runs go on without it; OTEL_METRICS_EXPORTER=none leaves metrics out")
	f.save()
}

// exportSpans reads the log on and sends the spans that have ended. An error means that there is
// more, which the collector does not accept now.
func (f *follower) exportSpans() error {
	for {
		more, err := f.read()
		if err != nil {
			f.report("spans", err, "the log could not be read")
			return err
		}
		if err := f.sendSpans(); err != nil || !more {
			f.save()
			return err
		}
	}
}

// read folds the events of the log, up to the limit of waiting spans.
func (f *follower) read() (more bool, err error) {
	// Measures go to the meter together with the event up to which they count.
	defer func() {
		f.exporter.meter.add(f.fold.measures, func() { f.counted = f.fold.seq })
		f.fold.measures = nil
	}()
	for len(f.fold.spans) < maxWaiting {
		events, err := f.log.Read(f.fold.seq, 256)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for i := range events {
			f.fold.apply(&events[i])
		}
	}
	return true, nil
}

// sendSpans sends the waiting spans. Spans that the collector refuses for good are dropped, and
// reported.
func (f *follower) sendSpans() error {
	c := f.exporter.config
	if c.traces == nil || !c.sampled(f.fold.trace) {
		f.fold.spans = nil
	}
	for len(f.fold.spans) > 0 {
		batch := f.fold.spans[:min(c.batch, len(f.fold.spans))]
		err := c.traces.sendSpans(f.ctx, c, batch)
		f.report("spans", err, unreached)
		if errors.Is(err, errLater) {
			return err
		}
		f.exported = batch[len(batch)-1].seq
		f.fold.spans = f.fold.spans[len(batch):]
	}
	f.exported = f.fold.seq
	return nil
}

// report reports the first problem to people.
func (f *follower) report(what string, err error, hint string) {
	if err == nil || f.reported {
		return
	}
	f.reported = true
	why := err.Error()
	if f.ctx.Err() != nil {
		why = "the end of the run has waited " + f.exporter.config.patience.String() + " for an answer"
	}
	f.notice(what+" of this run could not be told to OpenTelemetry: "+why, hint)
}

// save stores the progress, so that a process which takes the run over does not export it again.
func (f *follower) save() {
	now := progress{f.exported, f.metered.Load()}
	if now != f.saved && now.save(f.log, f.fold.seq) == nil { // without it, spans may be sent twice
		f.saved = now
	}
}
