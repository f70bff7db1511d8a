package telemetry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"

	"swarm"
)

type (
	traceID [16]byte
	spanID  [8]byte
)

func (t traceID) String() string { return hex.EncodeToString(t[:]) }
func (s spanID) String() string  { return hex.EncodeToString(s[:]) }

// traceOf returns the trace of a run, which is the same in every process.
func traceOf(run swarm.RunID) (t traceID) {
	h := sha256.Sum256([]byte("swarm run " + string(run)))
	copy(t[:], h[:])
	return t
}

// spanOf returns the span of a thing in a trace, by its kind and its id in the log.
func spanOf(t traceID, what, id string) (s spanID) {
	h := sha256.Sum256([]byte(t.String() + " " + what + " " + id))
	copy(s[:], h[:])
	return s
}

// traceparent encodes a span as W3C defines it.
func traceparent(t traceID, s spanID, sampled bool) string {
	flags := "00"
	if sampled {
		flags = "01"
	}
	return "00-" + t.String() + "-" + s.String() + "-" + flags
}

// readTraceparent decodes such a text. ok is false if it is none.
func readTraceparent(text string) (t traceID, s spanID, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 ||
		len(parts[3]) != 2 ||
		text != strings.ToLower(text) {
		return t, s, false
	}
	for _, p := range parts[:4] {
		if _, err := hex.DecodeString(p); err != nil {
			return t, s, false
		}
	}
	if len(parts[1]) != 2*len(t) || len(parts[2]) != 2*len(s) {
		return t, s, false
	}
	_, _ = hex.Decode(t[:], []byte(parts[1]))
	_, _ = hex.Decode(s[:], []byte(parts[2]))
	return t, s, t != traceID{} && s != spanID{}
}

// below says whether a trace is in the sampled part, as other OpenTelemetry programs decide it.
func (t traceID) below(ratio float64) bool {
	switch {
	case ratio >= 1:
		return true
	case ratio <= 0:
		return false
	}
	return binary.BigEndian.Uint64(t[8:])>>1 < uint64(ratio*math.MaxInt64)
}
