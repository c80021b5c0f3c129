package index

import "encoding/binary"

// Tables: the first byte of a key.
const (
	tableQueue    = 'q'
	tableRun      = 'r' // queue, level, last number, runEntries or runGone
	tableOverride = 'o' // queue, level, number
	tableExpiry   = 'e' // time, queue, level, last number of a run
	tableDue      = 'd' // queue, time, level, number
	tableSummary  = 's'
	tableIDs      = 'u' // address, number of the last one
	tableAddress  = 'a' // address
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

// appendTimeKey appends the key of a run in a table that is in order of times, which are above 0.
func appendTimeKey(dst []byte, table byte, at int64, queue uint64, priority uint8, last uint64) []byte {
	dst = append(dst, table)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	dst = binary.BigEndian.AppendUint64(dst, queue)
	dst = append(dst, Priorities-1-priority)
	return binary.BigEndian.AppendUint64(dst, last)
}

// splitTimeKey returns what appendTimeKey was given.
func splitTimeKey(key []byte) (at int64, queue uint64, priority uint8, last uint64) {
	return int64(binary.BigEndian.Uint64(key[1:])), binary.BigEndian.Uint64(key[9:]), Priorities - 1 - key[17],
		binary.BigEndian.Uint64(key[18:])
}

// appendDueKey appends the key of an entry that has a due time, which is above 0.
func appendDueKey(dst []byte, queue uint64, at int64, priority uint8, number uint64) []byte {
	dst = append(dst, tableDue)
	dst = binary.BigEndian.AppendUint64(dst, queue)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	dst = append(dst, Priorities-1-priority)
	return binary.BigEndian.AppendUint64(dst, number)
}

// splitDueKey returns what appendDueKey was given, besides the queue.
func splitDueKey(key []byte) (at int64, priority uint8, number uint64) {
	return int64(binary.BigEndian.Uint64(key[9:])), Priorities - 1 - key[17], binary.BigEndian.Uint64(key[18:])
}

func cellKey(space uint64, key []byte) []byte {
	return append(queueKey(tableCell, space), key...)
}
