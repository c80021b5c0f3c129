package bench

import (
	"encoding/binary"
	"time"
)

// stampSize is what a body starts with: who sent it in which run, its number, and when.
const stampSize = 28

type stamp struct {
	run      uint64
	producer uint32
	sequence uint64
	sent     int64 // nanoseconds since the run's start
}

func (s stamp) put(b []byte) {
	binary.BigEndian.PutUint64(b, s.run)
	binary.BigEndian.PutUint32(b[8:], s.producer)
	binary.BigEndian.PutUint64(b[12:], s.sequence)
	binary.BigEndian.PutUint64(b[20:], uint64(s.sent))
}

func readStamp(b []byte) (s stamp, ok bool) {
	if len(b) < stampSize {
		return s, false
	}
	return stamp{
		run:      binary.BigEndian.Uint64(b),
		producer: binary.BigEndian.Uint32(b[8:]),
		sequence: binary.BigEndian.Uint64(b[12:]),
		sent:     int64(binary.BigEndian.Uint64(b[20:])),
	}, true
}

// clock is the run's own time.
type clock struct{ start time.Time }

func (c clock) now() int64 { return int64(time.Since(c.start)) }
