package store

import (
	"time"

	"github.com/letomq/leto/store/journal"
)

// Options say how a store is opened. What is zero gets the default that is named.
type Options struct {
	Dir string     // folder of the store; it is made if it isn't there
	FS  journal.FS // where the journal and the position are; nil: Dir

	SegmentSize int64 // bytes of a segment of the journal; 64 MiB
	Spares      int   // free segments that are kept; 2

	ApplyMax   int64         // bytes that may be committed and not applied to the index, beyond which Commit waits; 32 MiB
	ApplyAge   time.Duration // how long a window waits for its entries to be gone before it is applied; 1 s
	Checkpoint time.Duration // the longest time between checkpoints while something changes; 2 s
	MemTable   int64         // bytes of the index that are kept in memory before they are written; 4 MiB
	Inline     int           // payloads above it, in bytes, are written in parts; 256 KiB

	Reserve  int64   // bytes free on the device below which messages are refused; 2 GiB or what is free at the start / 8, if that is less
	Relocate float64 // a segment of which less than that part is needed is emptied; 0.25

	Gate  Gate         // what a window must pass to hold; nil: the flush alone
	Alarm func(string) // told of faults that no call returns; called from any goroutine; may be nil

	volatile bool // nothing needs to survive the process
}

const (
	defaultSpares     = 2
	defaultApplyMax   = 32 << 20
	defaultApplyAge   = time.Second
	defaultCheckpoint = 2 * time.Second
	defaultInline     = 256 << 10
	defaultReserve    = 2 << 30
	defaultRelocate   = 0.25
)

func (o *Options) complete() {
	if o.FS == nil {
		o.FS = journal.OS(o.Dir)
	}
	if o.SegmentSize <= 0 {
		o.SegmentSize = journal.DefaultSegmentSize
	}
	if o.Spares <= 0 {
		o.Spares = defaultSpares
	}
	if o.ApplyMax <= 0 {
		o.ApplyMax = defaultApplyMax
	}
	if o.ApplyAge <= 0 {
		o.ApplyAge = defaultApplyAge
	}
	if o.Checkpoint <= 0 {
		o.Checkpoint = defaultCheckpoint
	}
	if o.Inline <= 0 {
		o.Inline = defaultInline
	}
	// A window of small messages has to fit into a segment as well.
	o.Inline = min(o.Inline, int(o.SegmentSize/8))
	if o.Relocate <= 0 {
		o.Relocate = defaultRelocate
	}
}
