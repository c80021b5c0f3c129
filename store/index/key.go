package index

import "encoding/binary"

// Tables: the first byte of a key.
const (
	tableQueue    = 'q'
	tableRun      = 'r' // queue, level, last number, runEntries or runGone
	tableOverride = 'o' // queue, level, number
	tableSummary  = 's'
	tableCell     = 'c'
	tableSegment  = 'b'
	tableCounters = 'x'
)

// What of a run a key holds.
const (
	runEntries = 0
	runGone    = 1
)

const runKeySize = 1 + 8 + 1 + 8 + 1

func queueKey(table byte, queue uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{table}, queue)
}

func appendLevelKey(dst []byte, table byte, queue uint64, priority uint8) []byte {
	dst = append(dst, table)
	dst = binary.BigEndian.AppendUint64(dst, queue)
	return append(dst, Priorities-1-priority)
}

func appendRunKey(dst []byte, queue uint64, priority uint8, last uint64, what byte) []byte {
	dst = appendLevelKey(dst, tableRun, queue, priority)
	dst = binary.BigEndian.AppendUint64(dst, last)
	return append(dst, what)
}

func appendOverrideKey(dst []byte, queue uint64, priority uint8, number uint64) []byte {
	dst = appendLevelKey(dst, tableOverride, queue, priority)
	return binary.BigEndian.AppendUint64(dst, number)
}

// runLast returns the last number in a run's key, and what of the run it holds.
func runLast(key []byte) (last uint64, what byte) {
	return binary.BigEndian.Uint64(key[10:]), key[runKeySize-1]
}

func cellKey(space uint64, key []byte) []byte {
	return append(queueKey(tableCell, space), key...)
}
