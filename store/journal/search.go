package journal

import "io"

// sought is what search looks for: a whole record of a segment.
type sought struct {
	seed    uint32
	low     uint64 // least index
	high    uint64 // greatest
	epoch   uint64 // least
	flushed uint64 // index up to which the record says, at least, that everything had been flushed
}

const searchSize = 64 << 10

// search looks for a record at every multiple of 8 in part of a segment, and returns where the first one is, or -1.
// It takes memory for half of that part at most, and time in proportion to it, whatever the bytes are.
func search(file io.ReaderAt, from, to int64, want sought) (int64, error) {
	if to-from < recordMinimum {
		return -1, nil
	}
	to -= (to - from) % recordAlign
	buf := make([]byte, min(searchSize, to-from))
	var all *sums
	for start := from; to-start >= recordMinimum; {
		piece := buf[:min(int64(len(buf)), to-start)]
		if err := readFull(file, piece, start); err != nil {
			return -1, err
		}
		i := 0
		for ; len(piece)-i >= recordHeader; i += recordAlign {
			if piece[i]|piece[i+1]|piece[i+2]|piece[i+3] == 0 {
				continue // no length
			}
			f, at := readFields(piece[i:]), start+int64(i)
			if f.length > to-at-recordHeader || f.zero != 0 || f.index < want.low || f.index > want.high ||
				f.epoch < want.epoch || f.flushed() < want.flushed {
				continue
			}
			if all == nil {
				// A buffer of its own: piece is still being read.
				var err error
				if all, err = newSums(file, from, to, make([]byte, len(buf))); err != nil {
					return -1, err
				}
			}
			switch sum, err := all.of(want.seed, at+8, recordHeader-8+f.length); {
			case err != nil:
				return -1, err
			case sum == f.sum:
				return at, nil
			}
		}
		start += int64(i)
	}
	return -1, nil
}
