package engine

import (
	"io"
	"slices"
	"sort"

	"github.com/letomq/leto/engine/queue"
)

// Spill keeps what needn't survive and has no room in memory. It takes the records of a Store and gives back what a
// Store would, but nothing has to be on the device: after a restart it is empty.
//
// Commit and Load may be called at the same time, Commit by one goroutine only. With ErrStoreFull nothing of a Commit
// holds, and it may be tried again. After any other error of Commit the spill isn't used any more. An entry that can't
// be read is left out of what Load returns.
type Spill interface {
	Commit(records []Record) error
	Load(q QueueID, priority uint8, from uint64, n, bytes int) ([]Stored, error)
	Pick(q QueueID, priority uint8, numbers []uint64, bytes int) ([]Stored, error)
	Expiries() Expiries
	Delayed(q QueueID, after Due, until int64, n int) (due []Due, next int64, err error)
	// Size returns the bytes that it takes on the device.
	Size() int64
	// Close ends it and removes what it has.
	io.Closer
}

// SpillInfo is the spill as it was at one moment.
type SpillInfo struct {
	Pending int64 // bytes of messages that wait to be written, with 192 for each
	Written uint64
	Disk    int64 // bytes on the device
	Stopped bool  // nothing can be written at present: transient messages stay in memory
}

// spillShare of the memory limit, as a fraction, is what transient messages may take that wait in queues, before more
// of them are spilled. Together with what queues keep of the store it stays below where loading is restrained.
const spillShare = 6

// spillKey names a queue and priority in the spill.
type spillKey struct {
	queue    QueueID
	priority uint8
}

// spillWindow is what is written at once.
type spillWindow struct {
	facts  []Record              // queues that come and go, and purges: true before the entries
	levels map[spillKey][]Record // entries, in ascending order of number
	bytes  int64                 // what the entries take in memory
}

func newSpillWindow() *spillWindow { return &spillWindow{levels: map[spillKey][]Record{}} }

// spillCost is what an entry takes that is to be written.
func spillCost(r *Record) int64 {
	return cost(r.Message, 1) + int64(queue.AnnotationBytes(r.Annotations))
}

// put adds an entry where it belongs.
func (w *spillWindow) put(k spillKey, r Record) {
	all := append(w.levels[k], r)
	for i := len(all) - 1; i > 0 && all[i-1].Number > r.Number; i-- {
		all[i-1], all[i] = all[i], all[i-1]
	}
	w.levels[k] = all
	w.bytes += spillCost(&r)
}

// cut takes out the entries of a level from one number to another. Many that expire are taken out one by one, mostly in
// ascending order: those behind them don't move if there are more of them.
func (w *spillWindow) cut(k spillKey, from, last uint64, gone func(*Message)) {
	all := w.levels[k]
	i := sort.Search(len(all), func(i int) bool { return all[i].Number >= from })
	j := i + sort.Search(len(all)-i, func(n int) bool { return all[i+n].Number > last })
	if i == j {
		return
	}
	for n := i; n < j; n++ {
		w.bytes -= spillCost(&all[n])
		gone(all[n].Message)
	}
	switch {
	case j-i == len(all):
		delete(w.levels, k)
	case i < len(all)-j:
		copy(all[j-i:j], all[:i])
		clear(all[:j-i])
		w.levels[k] = all[j-i:]
	default:
		w.levels[k] = slices.Delete(all, i, j)
	}
}

// delay has an entry wait for another time, and reports whether it is there.
func (w *spillWindow) delay(k spillKey, number uint64, until int64) bool {
	all := w.levels[k]
	i := sort.Search(len(all), func(i int) bool { return all[i].Number >= number })
	if i == len(all) || all[i].Number != number {
		return false
	}
	all[i].Due = until
	return true
}

// load returns entries of a level as a Store does, with messages of their own.
func (w *spillWindow) load(k spillKey, from uint64, n, bytes int) page {
	var p page
	for _, r := range w.levels[k] {
		if r.Number < from {
			continue
		}
		if len(p.entries) == n || bytes <= 0 {
			return p
		}
		bytes -= r.Message.Size()
		p.entries = append(p.entries, r.stored())
	}
	p.whole = true
	return p
}
