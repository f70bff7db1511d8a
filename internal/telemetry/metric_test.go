package telemetry

import (
	"slices"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

func TestMetricsAreToldAsAllOrAsDifferences(t *testing.T) {
	for _, delta := range []bool{false, true} {
		began := time.Unix(100, 0)
		m := newMeter(began)
		c := &config{delta: delta}
		tell := func(at time.Time) map[string]*metrics.Metric {
			s := m.snapshot(at, func() {})
			var told metricspb.ExportMetricsServiceRequest
			if err := proto.Unmarshal(s.encode(c), &told); err != nil {
				t.Fatal(err)
			}
			m.sent(s)
			all := map[string]*metrics.Metric{}
			for _, x := range told.ResourceMetrics[0].ScopeMetrics[0].Metrics {
				all[x.Name] = x
			}
			return all
		}
		m.add([]measure{{tokens, 4, nil}, {tokens, 5, nil}, {runs, 1, nil}}, func() {})
		tell(began.Add(time.Minute))
		m.add([]measure{{tokens, 100_000_000, nil}}, func() {})
		told := tell(began.Add(2 * time.Minute))

		h := told[metricTokens].GetHistogram()
		p := h.DataPoints[0]
		buckets := make([]uint64, len(tokens.bounds)+1)
		buckets[len(tokens.bounds)] = 1
		count, sum, from, how := uint64(1), 100_000_000.0, began.Add(time.Minute), metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
		if !delta {
			buckets[1], buckets[2] = 1, 1 // a bound belongs to what is below it
			count, sum, from, how = 3, 100_000_009, began, metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
			if p.GetMin() != 4 || p.GetMax() != 100_000_000 {
				t.Errorf("from %v to %v", p.GetMin(), p.GetMax())
			}
		}
		if p.Count != count || p.GetSum() != sum || !slices.Equal(p.BucketCounts, buckets) || !slices.Equal(p.ExplicitBounds, tokens.bounds) {
			t.Errorf("delta %v: %v", delta, p)
		}
		if h.AggregationTemporality != how || p.StartTimeUnixNano != uint64(from.UnixNano()) || p.TimeUnixNano != uint64(began.Add(2*time.Minute).UnixNano()) {
			t.Errorf("delta %v: %v from %v", delta, h.AggregationTemporality, p.StartTimeUnixNano)
		}
		if _, again := told[metricRuns]; again == delta {
			t.Errorf("delta %v: the runs, which are as before, are told: %v", delta, again)
		}
	}
}
