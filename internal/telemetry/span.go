package telemetry

import "time"

// An attr is a named value: a string, an int64, a float64, a bool or a list of strings.
type attr struct {
	key   string
	value any
}

// text adds a text attribute, if the text is not empty.
func text(attrs []attr, key, value string) []attr {
	if value == "" {
		return attrs
	}
	return append(attrs, attr{key, value})
}

// A span is a stretch of time in a trace, as OTLP defines it.
type span struct {
	seq           int64 // of the event that ended it
	trace         traceID
	id, parent    spanID
	name          string
	kind          uint64
	start, end    time.Time
	attrs         []attr
	events        []spanEvent
	links         []link
	droppedEvents uint64
	droppedLinks  uint64
	status        uint64
	message       string
}

// The kinds of spans and their status, by OTLP's numbers.
const (
	kindInternal = 1
	kindClient   = 3

	statusOK    = 1
	statusError = 2
)

// maxEvents and maxLinks are OpenTelemetry's own limits. The number of dropped ones is reported.
const (
	maxEvents = 128
	maxLinks  = 128
)

type spanEvent struct {
	at    time.Time
	name  string
	attrs []attr
}

type link struct {
	trace traceID
	id    spanID
	attrs []attr
}

func (s *span) addEvent(at time.Time, name string, attrs ...attr) {
	if len(s.events) == maxEvents {
		s.droppedEvents++
		return
	}
	s.events = append(s.events, spanEvent{at, name, attrs})
}

func (s *span) addLink(l link) {
	if len(s.links) == maxLinks {
		s.droppedLinks++
		return
	}
	s.links = append(s.links, l)
}
