package logbase

import (
	"encoding/binary"
	"hash/crc32"
)

// Each event has a checksum over all its fields and over the checksum of the event before it. So a
// reader of consecutive events notices a changed event, a missing one, and one in the wrong place.

// Castagnoli returns the table of the checksum that processors compute in hardware. It is made at the
// first call: that takes 0.2 ms, which most commands need not spend.
func Castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Sum returns the checksum of an event that follows one with the checksum before. The fields are
// kind, agent, task, turn, receiver and key. scratch is memory that is used again.
func Sum[T string | []byte](scratch *[]byte, before uint32, seq, micros int64, fields *[6]T, data []byte) uint32 {
	b := binary.AppendUvarint((*scratch)[:0], uint64(seq))
	b = binary.AppendVarint(b, micros)
	for _, field := range fields {
		b = append(binary.AppendUvarint(b, uint64(len(field))), field...)
	}
	*scratch = b
	return crc32.Update(crc32.Update(before, Castagnoli(), b), Castagnoli(), data)
}
