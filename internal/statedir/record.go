package statedir

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Record is a piece of a turn's output.
type Record struct {
	Time time.Time
	Kind string // as written, or Gap
	Text string
	Gap  int64 // for the kind Gap: bytes of text that are missing here
}

// Gap is the kind of a record that stands for output that was not kept.
const Gap = "gap"

// A line is a record, {"t":1763217125123456,"k":"text","s":"…","c":3735928559} with the time in
// microseconds and a checksum of everything before "c", or a position, {"at":1048576}, which tells
// how many bytes of text precede the next record. Older builds wrote no checksums.
type line struct {
	Time  int64  `json:"t"`
	Kind  string `json:"k"`
	Text  string `json:"s"`
	Bytes int    `json:"n"` // length of the original text, if it was not UTF-8 and was replaced
	At    *int64 `json:"at"`
}

// appendHeader begins a group of records of one turn with the name of its stream.
func appendHeader(b []byte, name string) []byte {
	return append(appendJSON(append(b, `{"turn":`...), name), "}\n"...)
}

func appendAt(b []byte, at int64) []byte {
	return append(strconv.AppendInt(append(b, `{"at":`...), at, 10), "}\n"...)
}

func appendRecord(b []byte, t time.Time, kind, text string) []byte {
	start := len(b)
	b = strconv.AppendInt(append(b, `{"t":`...), t.UnixMicro(), 10)
	b = appendJSON(append(b, `,"k":`...), kind)
	if !utf8.ValidString(text) { // streams are for people, so they are always UTF-8
		b = strconv.AppendInt(append(b, `,"n":`...), int64(len(text)), 10)
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	b = appendJSON(append(b, `,"s":`...), text)
	sum := crc32.Checksum(b[start:], castagnoli())
	return append(strconv.AppendUint(append(b, sumKey...), uint64(sum), 10), "}\n"...)
}

const sumKey = `,"c":`

// castagnoli returns the table of the checksum. It is made at the first call, see package sqlite.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// unchanged reports whether a line has no checksum, or the right one.
func unchanged(b []byte) bool {
	at := bytes.LastIndex(b, []byte(sumKey))
	if at < 0 {
		return true
	}
	sum, err := strconv.ParseUint(string(bytes.TrimSuffix(b[at+len(sumKey):], []byte{'}'})), 10, 32)
	return err != nil || uint32(sum) == crc32.Checksum(b[:at], castagnoli()) // A text may end in what looks like a checksum.
}

// appendJSON appends s, which is UTF-8, as a JSON string.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// parseLine parses a line. ok is false for a damaged line.
func parseLine(b []byte) (l line, ok bool) {
	err := json.Unmarshal(b, &l)
	return l, err == nil && (l.At != nil || l.Kind != "") && unchanged(b)
}
