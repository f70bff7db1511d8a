package telemetry

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

// OTLP as JSON would need half of this file. But some servers for traces accept only protobuf,
// Arize Phoenix among them, and answer JSON with 415.

// A message is a Protocol Buffers message being encoded. Zero values are left out, as the format
// defines.
type message []byte

// The encodings of a field.
const (
	asVarint  = 0
	asFixed64 = 1
	asBytes   = 2
	asFixed32 = 5
)

func (m *message) tag(field, as uint64) { *m = binary.AppendUvarint(*m, field<<3|as) }

func (m *message) varint(field, v uint64) {
	if v != 0 {
		m.tag(field, asVarint)
		*m = binary.AppendUvarint(*m, v)
	}
}

func (m *message) fixed64(field, v uint64) {
	if v != 0 {
		m.always64(field, v)
	}
}

// always64 writes a number even if it is 0.
func (m *message) always64(field, v uint64) {
	m.tag(field, asFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) fixed32(field uint64, v uint32) {
	if v != 0 {
		m.tag(field, asFixed32)
		*m = binary.LittleEndian.AppendUint32(*m, v)
	}
}

func (m *message) time(field uint64, t time.Time) { m.fixed64(field, uint64(t.UnixNano())) }

func (m *message) bytes(field uint64, b []byte) {
	m.tag(field, asBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *message) text(field uint64, s string) {
	if s != "" {
		m.alwaysText(field, s)
	}
}

// alwaysText encodes a text, even an empty one. Invalid UTF-8 is replaced, because the collector
// would refuse the whole message.
func (m *message) alwaysText(field uint64, s string) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	m.tag(field, asBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(s))), s...)
}

// inner encodes a message in a field. Its length stands before it but is known only after it.
func (m *message) inner(field uint64, write func(*message)) {
	m.tag(field, asBytes)
	at := len(*m)
	write(m)
	var length [binary.MaxVarintLen64]byte
	*m = slices.Insert(*m, at, length[:binary.PutUvarint(length[:], uint64(len(*m)-at))]...)
}

func (m *message) attrs(field uint64, attrs []attr) {
	for _, a := range attrs {
		m.inner(field, func(kv *message) {
			kv.text(1, a.key)
			kv.inner(2, func(v *message) { v.value(a.value) })
		})
	}
}

// value encodes an AnyValue. In a oneof, a zero value must be written too.
func (m *message) value(v any) {
	switch v := v.(type) {
	case string:
		m.alwaysText(1, v)
	case bool:
		m.tag(2, asVarint)
		*m = append(*m, map[bool]byte{true: 1}[v])
	case int64:
		m.tag(3, asVarint)
		*m = binary.AppendUvarint(*m, uint64(v))
	case float64:
		m.always64(4, math.Float64bits(v))
	case []string:
		m.inner(5, func(list *message) {
			for _, one := range v {
				list.inner(1, func(of *message) { of.value(one) })
			}
		})
	}
}

// packed encodes a list of numbers.
func (m *message) packed(field uint64, numbers []uint64) {
	m.tag(field, asBytes)
	*m = binary.AppendUvarint(*m, uint64(8*len(numbers)))
	for _, n := range numbers {
		*m = binary.LittleEndian.AppendUint64(*m, n)
	}
}

// request encodes the frame of every signal: one resource, which is this process, and one scope.
func request(c *config, things func(*message)) []byte {
	var m message
	m.inner(1, func(of *message) {
		of.inner(1, func(r *message) { r.attrs(1, c.resource) })
		of.inner(2, func(scope *message) {
			scope.inner(1, func(s *message) {
				s.text(1, "swarm")
				s.text(2, c.version)
			})
			things(scope)
			scope.text(3, schemaURL)
		})
		of.text(3, schemaURL)
	})
	return m
}

// encodeSpans makes an ExportTraceServiceRequest.
func encodeSpans(c *config, spans []span) []byte {
	return request(c, func(scope *message) {
		for i := range spans {
			scope.inner(2, spans[i].encode)
		}
	})
}

// sampledFlag says that the span was sampled. known says that the place of its parent is known, and
// is not another process.
const (
	sampledFlag = 0x1
	known       = 0x100
)

// encode writes a Span, by the field numbers of OTLP.
func (s *span) encode(m *message) {
	m.bytes(1, s.trace[:])
	m.bytes(2, s.id[:])
	if s.parent != (spanID{}) {
		m.bytes(4, s.parent[:])
	}
	m.text(5, s.name)
	m.varint(6, s.kind)
	m.time(7, s.start)
	m.time(8, s.end)
	m.attrs(9, s.attrs)
	for _, e := range s.events {
		m.inner(11, func(m *message) {
			m.time(1, e.at)
			m.text(2, e.name)
			m.attrs(3, e.attrs)
		})
	}
	m.varint(12, s.droppedEvents)
	for _, l := range s.links {
		m.inner(13, func(m *message) {
			m.bytes(1, l.trace[:])
			m.bytes(2, l.id[:])
			m.attrs(4, l.attrs)
		})
	}
	m.varint(14, s.droppedLinks)
	m.inner(15, func(m *message) {
		m.text(2, s.message)
		m.varint(3, s.status)
	})
	m.fixed32(16, sampledFlag|known)
}

// rejected reads a collector's answer: how many items it refused, and why. An answer that cannot be
// read counts as none.
func rejected(answer []byte) (n uint64, why string) {
	partial, _ := field(answer, 1)
	_, n = field(partial, 1)
	text, _ := field(partial, 2)
	return n, string(text)
}

// field finds a field of a message: its bytes, or its number.
func field(m []byte, wanted uint64) (b []byte, n uint64) {
	for len(m) > 0 {
		tag, used := binary.Uvarint(m)
		if used <= 0 {
			return nil, 0
		}
		m = m[used:]
		var length uint64
		n = 0
		switch tag & 7 {
		case asVarint:
			if n, used = binary.Uvarint(m); used <= 0 {
				return nil, 0
			}
			length = uint64(used)
		case asFixed64:
			length = 8
		case asFixed32:
			length = 4
		case asBytes:
			if length, used = binary.Uvarint(m); used <= 0 {
				return nil, 0
			}
			m = m[used:]
		default:
			return nil, 0
		}
		if length > uint64(len(m)) {
			return nil, 0
		}
		if tag>>3 == wanted {
			return m[:length], n
		}
		m = m[length:]
	}
	return nil, 0
}
