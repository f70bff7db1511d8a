package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// maxWaiting is how many spans wait for the collector at most. The others stay in the log.
const maxWaiting = 2048

// maxContent is how much of a text is told.
const maxContent = 64 << 10

// A follower tells of one run.
type follower struct {
	exporter *Exporter
	log      swarm.RunLog
	fold     *fold
	notice   func(reason, hint string)
	said     bool
	exported int64    // the last event whose spans the collector has
	saved    progress // what is noted of it

	counted int64        // the last event whose measures are in the meter; the meter's lock guards it
	metered atomic.Int64 // the last event whose measures the collector has

	ctx  context.Context
	stop context.CancelFunc
	quit chan struct{} // closed when the run was left
	gone chan struct{} // closed when all is told, or given up
}

func newFollower(x *Exporter, run string, log swarm.RunLog, notice func(reason, hint string)) *follower {
	f := &follower{exporter: x, log: log, notice: notice, saved: loadProgress(log), quit: make(chan struct{}), gone: make(chan struct{})}
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

// body is a text as it is stored: without secrets.
func (f *follower) body(h swarm.Hash) string {
	b, err := f.log.Body(h)
	if err != nil {
		return ""
	}
	return excerpt.Head(string(b), maxContent)
}

// live tells what there is now and then, and all of it at the end.
func (f *follower) live() {
	defer close(f.gone)
	defer f.stop()
	c := f.exporter.config
	tick, meter := time.NewTicker(c.every), time.NewTicker(c.metricsEvery)
	defer tick.Stop()
	defer meter.Stop()
	for {
		select {
		case <-tick.C:
			_ = f.tell() // it is said already, and tried again
		case <-meter.C:
			f.tellMetrics()
		case <-f.quit:
			f.finish()
			return
		}
	}
}

// finish tells what is left, as long as the collector takes it.
func (f *follower) finish() {
	if f.tell() == nil {
		f.tellMetrics()
	}
}

func (f *follower) tellMetrics() {
	f.trouble("metrics", f.exporter.sendMetrics(f.ctx), "runs go on without it; OTEL_METRICS_EXPORTER=none leaves metrics out")
	f.save()
}

// tell reads the log on and tells the spans that have ended. Its error says that there is more, which the collector does not take now.
func (f *follower) tell() error {
	for {
		more, err := f.read()
		if err != nil {
			f.trouble("spans", err, "the log could not be read")
			return err
		}
		if err := f.sendSpans(); err != nil || !more {
			f.save()
			return err
		}
	}
}

// read folds what the log has, up to what may wait.
func (f *follower) read() (more bool, err error) {
	defer func() {
		f.exporter.meter.take(f.fold.measures, func() { f.counted = f.fold.seq })
		f.fold.measures = nil
	}()
	for len(f.fold.spans) < maxWaiting {
		events, err := f.log.Read(f.fold.seq, 256)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for i := range events {
			f.fold.take(&events[i])
		}
	}
	return true, nil
}

// sendSpans tells the spans that wait. What the collector refuses for good is gone, and said.
func (f *follower) sendSpans() error {
	c := f.exporter.config
	if c.traces == nil || !c.sampled(f.fold.trace) {
		f.fold.spans = nil
	}
	for len(f.fold.spans) > 0 {
		batch := f.fold.spans[:min(c.batch, len(f.fold.spans))]
		err := c.traces.sendSpans(f.ctx, c, batch)
		f.trouble("spans", err, unreached)
		if errors.Is(err, errLater) {
			return err
		}
		f.exported = batch[len(batch)-1].seq
		f.fold.spans = f.fold.spans[len(batch):]
	}
	f.exported = f.fold.seq
	return nil
}

// trouble tells people once that something is not told.
func (f *follower) trouble(what string, err error, hint string) {
	if err == nil || f.said {
		return
	}
	f.said = true
	why := err.Error()
	if f.ctx.Err() != nil {
		why = "the end of the run has waited " + f.exporter.config.patience.String() + " for an answer"
	}
	f.notice(what+" of this run could not be told to OpenTelemetry: "+why, hint)
}

// save notes how far the collector was told, so that a process that takes the run over does not tell it again.
func (f *follower) save() {
	now := progress{f.exported, f.metered.Load()}
	if now != f.saved && now.save(f.log, f.fold.seq) == nil { // what is not noted may be told twice
		f.saved = now
	}
}
