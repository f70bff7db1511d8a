package telemetry

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// An instrument is something that is measured. Without bounds it is only counted.
type instrument struct {
	name, unit, about string
	bounds            []float64
}

// The bounds of the first two come from the conventions.
var (
	tokens = &instrument{metricTokens, "{token}", "Tokens that a turn has used.",
		[]float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}}
	duration = &instrument{metricDuration, "s", "How long a turn took.",
		[]float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}}
	delivery = &instrument{metricMail, "s", "From an envelope's acceptance until it is in a turn of its receiver.",
		[]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600}}
	turns = &instrument{metricTurns, "{turn}", "Turns that have ended.", nil}
	runs  = &instrument{metricRuns, "{run}", "Runs that have ended.", nil}
)

// A meter collects the measures of this process.
type meter struct {
	began time.Time

	mu     sync.Mutex
	series map[string]series // by instrument and attributes
	last   map[string]series // as the collector has them
	lastAt time.Time
}

// A series is the measures with one instrument and the same attributes.
type series struct {
	of       *instrument
	attrs    []attr
	count    uint64
	sum      float64
	min, max float64
	buckets  []uint64
}

func newMeter(now time.Time) *meter {
	return &meter{began: now, lastAt: now, series: map[string]series{}, last: map[string]series{}}
}

// A measure is one value.
type measure struct {
	of    *instrument
	value float64
	attrs []attr
}

// add adds measures, and calls then under the same lock, so that the counted event and the series
// always match.
func (m *meter) add(all []measure, then func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range all {
		key := x.key()
		s, ok := m.series[key]
		if !ok {
			s = series{
				of:      x.of,
				attrs:   x.attrs,
				min:     math.Inf(1),
				max:     math.Inf(-1),
				buckets: make([]uint64, len(x.of.bounds)+1),
			}
		}
		s.count++
		s.sum += x.value
		s.min, s.max = min(s.min, x.value), max(s.max, x.value)
		at, _ := slices.BinarySearch(x.of.bounds, x.value) // a bound belongs to the bucket below it
		s.buckets[at]++
		m.series[key] = s
	}
	then()
}

// key identifies the series of a measure.
func (x measure) key() string {
	b := append(make([]byte, 0, 256), x.of.name...)
	for _, a := range x.attrs {
		b = fmt.Append(append(append(append(b, 0), a.key...), 0), a.value)
	}
	return string(b)
}

// A snapshot is the state of the meter at some time.
type snapshot struct {
	at, began, since time.Time
	series, last     map[string]series
}

// snapshot copies the series. with is called under the same lock.
func (m *meter) snapshot(now time.Time, with func()) snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	with()
	s := snapshot{now, m.began, m.lastAt, maps.Clone(m.series), m.last}
	for key, one := range s.series {
		one.buckets = slices.Clone(one.buckets)
		s.series[key] = one
	}
	return s
}

// sent notes that the collector has a snapshot.
func (m *meter) sent(s snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.lastAt = s.series, s.at
}

// The temporalities, by OTLP's numbers: values since the last time, or all.
const (
	asDelta      = 1
	asCumulative = 2
)

// encode makes an ExportMetricsServiceRequest.
func (s snapshot) encode(c *config) []byte {
	byInstrument := map[*instrument][]series{}
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		one := s.series[key]
		if c.delta {
			one = one.since(s.last[key])
		}
		if one.count > 0 {
			byInstrument[one.of] = append(byInstrument[one.of], one)
		}
	}
	from, how := s.began, uint64(asCumulative)
	if c.delta {
		from, how = s.since, asDelta
	}
	return request(c, func(scope *message) {
		for _, of := range []*instrument{tokens, duration, delivery, turns, runs} {
			if len(byInstrument[of]) > 0 {
				scope.inner(2, func(m *message) { of.encode(m, byInstrument[of], from, s.at, how) })
			}
		}
	})
}

func (of *instrument) encode(m *message, all []series, from, to time.Time, how uint64) {
	m.text(1, of.name)
	m.text(2, of.about)
	m.text(3, of.unit)
	if of.bounds == nil {
		m.inner(7, func(sum *message) {
			for _, s := range all {
				sum.inner(1, func(p *message) {
					p.time(2, from)
					p.time(3, to)
					p.always64(6, s.count)
					p.attrs(7, s.attrs)
				})
			}
			sum.varint(2, how)
			sum.varint(3, 1) // it only grows
		})
		return
	}
	m.inner(9, func(h *message) {
		for _, s := range all {
			h.inner(1, func(p *message) { s.encode(p, from, to, how) })
		}
		h.varint(2, how)
	})
}

func (s series) encode(p *message, from, to time.Time, how uint64) {
	p.time(2, from)
	p.time(3, to)
	p.fixed64(4, s.count)
	p.always64(5, math.Float64bits(s.sum))
	p.packed(6, s.buckets)
	bounds := make([]uint64, len(s.of.bounds))
	for i, b := range s.of.bounds {
		bounds[i] = math.Float64bits(b)
	}
	p.packed(7, bounds)
	p.attrs(9, s.attrs)
	if how == asCumulative { // they are unknown for a difference
		p.always64(11, math.Float64bits(s.min))
		p.always64(12, math.Float64bits(s.max))
	}
}

// since returns the difference to an earlier state.
func (s series) since(before series) series {
	s.count -= before.count
	s.sum -= before.sum
	for i, n := range before.buckets {
		s.buckets[i] -= n
	}
	return s
}
