package journal

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the crc32c of bytes, as Place has it.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
