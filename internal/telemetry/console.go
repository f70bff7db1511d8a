package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
)

func (t *target) sendSpans(ctx context.Context, c *config, spans []span) error {
	if t.console == nil {
		return t.send(ctx, encodeSpans(c, spans))
	}
	for i := range spans {
		s := &spans[i]
		line := map[string]any{
			"trace":      s.trace.String(),
			"span":       s.id.String(),
			"name":       s.name,
			"start":      s.start,
			"end":        s.end,
			"attributes": named(s.attrs),
			"events":     len(s.events),
			"links":      len(s.links),
		}
		if s.parent != (spanID{}) {
			line["parent"] = s.parent.String()
		}
		if err := printLine(t.console, line); err != nil {
			return err
		}
	}
	return nil
}

func (t *target) sendMetrics(ctx context.Context, c *config, points snapshot) error {
	if t.console == nil {
		return t.send(ctx, points.encode(c))
	}
	for _, key := range slices.Sorted(maps.Keys(points.series)) {
		s := points.series[key]
		if err := printLine(t.console, map[string]any{"metric": s.of.name, "unit": s.of.unit, "count": s.count, "sum": s.sum, "attributes": named(s.attrs)}); err != nil {
			return err
		}
	}
	return nil
}

// printLine writes a line of JSON for a person to read.
func printLine(w io.Writer, line map[string]any) error { return json.NewEncoder(w).Encode(line) }

func named(attrs []attr) map[string]any {
	all := map[string]any{}
	for _, a := range attrs {
		all[a.key] = a.value
	}
	return all
}
