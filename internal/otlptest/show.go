package otlptest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	traces "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// Tree is the spans as text: each below its parent, turns in the order in which they began, with its events, and the links by the turns
// that they lead to. Ids, times and numbers of events and tokens are left out; what is told twice stands there twice.
func (s *Server) Tree() string {
	spans := s.Spans()
	t := tree{names: map[string]string{}, below: map[string][]*traces.Span{}, run: "?"}
	for _, x := range spans {
		t.names[string(x.SpanId)] = x.Name
		for _, a := range x.Attributes {
			switch a.Key {
			case "swarm.run":
				t.run = a.Value.GetStringValue()
			case "swarm.turn":
				t.names[string(x.SpanId)] = a.Value.GetStringValue()
			}
		}
	}
	var tops []*traces.Span
	for _, x := range spans {
		if _, ok := t.names[string(x.ParentSpanId)]; ok {
			t.below[string(x.ParentSpanId)] = append(t.below[string(x.ParentSpanId)], x)
		} else {
			tops = append(tops, x)
		}
	}
	seen := map[string]bool{}
	for _, x := range tops {
		if !seen[string(x.TraceId)] {
			seen[string(x.TraceId)] = true
			fmt.Fprintf(&t.b, "trace %d\n", len(seen))
		}
		t.write(x, 1)
	}
	return number.ReplaceAllString(strings.ReplaceAll(t.b.String(), t.run, "RUN"), "${1}N")
}

// number is a value that depends on how events and prompts are written.
var number = regexp.MustCompile(`((?:swarm\.seq|_tokens)=)\d+`)

type tree struct {
	b     strings.Builder
	names map[string]string
	below map[string][]*traces.Span
	run   string
}

func (t *tree) write(x *traces.Span, depth int) {
	in := strings.Repeat("  ", depth)
	kind := strings.ToLower(strings.TrimPrefix(x.Kind.String(), "SPAN_KIND_"))
	status := strings.ToLower(strings.TrimPrefix(x.Status.GetCode().String(), "STATUS_CODE_"))
	fmt.Fprintf(&t.b, "%s%s (%s, %s)\n", in, x.Name, kind, strings.TrimSpace(status+" "+x.Status.GetMessage()))
	for _, p := range pairs(x.Attributes) {
		fmt.Fprintf(&t.b, "%s    %s\n", in, p)
	}
	for _, e := range x.Events {
		fmt.Fprintf(&t.b, "%s  * %s %s\n", in, e.Name, strings.Join(pairs(e.Attributes), " "))
	}
	for _, l := range x.Links {
		fmt.Fprintf(&t.b, "%s  <- %s %s\n", in, t.names[string(l.SpanId)], strings.Join(pairs(l.Attributes), " "))
	}
	below := t.below[string(x.SpanId)]
	if depth == 1 { // turns may overlap; what one of them does is told as it was done
		slices.SortStableFunc(below, func(a, b *traces.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	}
	for _, child := range below {
		t.write(child, depth+1)
	}
}

// Counts is the metrics as text, as they were told last: how many values each has, by its attributes.
func (s *Server) Counts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := map[string]string{}
	for _, m := range s.metrics {
		for _, p := range m.GetSum().GetDataPoints() {
			last[m.Name+" "+strings.Join(pairs(p.Attributes), " ")] = strconv.FormatInt(p.GetAsInt(), 10)
		}
		for _, p := range m.GetHistogram().GetDataPoints() {
			last[m.Name+" "+strings.Join(pairs(p.Attributes), " ")] = strconv.FormatUint(p.GetCount(), 10) + " values"
		}
	}
	var lines []string
	for what, value := range last {
		lines = append(lines, strings.TrimSpace(what)+": "+value+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// pairs are attributes as key=value.
func pairs(attrs []*commonpb.KeyValue) (all []string) {
	for _, a := range attrs {
		text := ""
		switch v := a.Value.GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			text = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			text = strconv.FormatBool(v.BoolValue)
		case *commonpb.AnyValue_IntValue:
			text = strconv.FormatInt(v.IntValue, 10)
		case *commonpb.AnyValue_DoubleValue:
			text = strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
		case *commonpb.AnyValue_ArrayValue:
			for _, one := range v.ArrayValue.GetValues() {
				text += "[" + one.GetStringValue() + "]"
			}
		}
		all = append(all, a.Key+"="+text)
	}
	return all
}
