package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Options say how an index is opened.
type Options struct {
	Dir      string
	MemTable int64        // bytes that Badger gathers before it writes a table; 0: 4 MiB
	Alarm    func(string) // told of what Badger only logs; called from any goroutine; may be nil

	Unflushed bool // Checkpoint doesn't wait for the device: nothing is opened again
}

const (
	defaultMemTable = 4 << 20
	minMemTable     = 512 << 10
	valueThreshold  = 64 << 10 // bytes; no value reaches it, so that the value log stays empty
	valueLogSize    = 1 << 20
)

// ErrTooLarge says that a value would go to Badger's value log.
var ErrTooLarge = errors.New("index: value too large")

// Index is an open index.
type Index struct {
	db     *badger.DB
	dir    string
	loose  bool            // nothing needs to be on the device
	ts     uint64          // of the last commit
	synced map[string]bool // tables that have been flushed: they don't change
	alarms atomic.Int64

	mu       sync.Mutex // guards what follows against readers; only the owner changes it
	queues   map[uint64]*Summary
	live     map[uint64]Live
	counters Counters
	view     uint64             // what readers see
	ahead    bool               // queues are those of a later view
	soonest  int64              // nothing expires before, in unix milliseconds; never: nothing does
	timed    uint64             // when an expiry was written last
	floors   map[uint64]Delayed // of queues with entries that have a due time, where it is known: none is due before
}

// Open opens the index of a folder, or a new one if there is none, as it was at a checkpoint: ts is what Checkpoint
// returned. Whatever is newer is taken back. With 0 there must be nothing: see Empty.
func Open(o Options, ts uint64) (*Index, error) {
	if o.MemTable <= 0 {
		o.MemTable = defaultMemTable
	}
	o.MemTable = max(o.MemTable, minMemTable)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	if err := clean(o.Dir); err != nil {
		return nil, err
	}
	x := &Index{dir: o.Dir, loose: o.Unflushed, synced: map[string]bool{}}
	db, err := badger.OpenManaged(x.badger(o))
	if err != nil {
		return nil, fmt.Errorf("index: open: %w", err)
	}
	x.db = db
	if err := x.begin(ts); err != nil {
		db.Close()
		return nil, err
	}
	return x, nil
}

func (x *Index) badger(o Options) badger.Options {
	raise := func(what string) {
		x.alarms.Add(1)
		if o.Alarm != nil {
			o.Alarm(what)
		}
	}
	return badger.DefaultOptions(o.Dir).
		WithLogger(alarm{raise}).
		WithSyncWrites(false).
		WithDetectConflicts(false).
		WithCompression(options.None).
		WithNumVersionsToKeep(1).
		WithMemTableSize(o.MemTable).
		WithNumMemtables(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(10).
		WithNumCompactors(2).
		WithBaseTableSize(2 << 20).
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(valueLogSize).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithChecksumVerificationMode(options.OnBlockRead)
}

// begin takes the index back to ts and reads what is kept in memory.
func (x *Index) begin(ts uint64) error {
	x.ts = x.db.MaxVersion()
	if ts > x.ts {
		return fmt.Errorf("index: it ends at %d, before the checkpoint at %d", x.ts, ts)
	}
	if ts < x.ts {
		if err := x.rollBack(ts); err != nil {
			return fmt.Errorf("index: take back to checkpoint: %w", err)
		}
	}
	x.db.SetDiscardTs(ts)
	return x.read()
}

// read fills what is kept in memory.
func (x *Index) read() error {
	x.queues, x.live, x.view = map[uint64]*Summary{}, map[uint64]Live{}, x.ts
	x.floors = map[uint64]Delayed{}
	if err := x.scan(tableQueue, func(key, _ []byte) error {
		x.queues[binary.BigEndian.Uint64(key[1:])] = &Summary{}
		return nil
	}); err != nil {
		return err
	}
	if err := x.scan(tableSummary, func(key, value []byte) error {
		s, err := decodeSummary(value)
		if err == nil {
			x.queues[binary.BigEndian.Uint64(key[1:])] = s
		}
		return err
	}); err != nil {
		return err
	}
	if err := x.scan(tableSegment, func(key, value []byte) error {
		r := reader{b: value}
		x.live[binary.BigEndian.Uint64(key[1:])] = Live{Bytes: int64(r.uvarint()), Entries: int64(r.uvarint())}
		if r.failed {
			return errMalformed
		}
		return nil
	}); err != nil {
		return err
	}
	if err := x.readSoonest(); err != nil {
		return err
	}
	counters, err := x.countersAt(x.ts)
	x.counters = counters
	return err
}

// scan calls f with all keys of a table and their values, which are valid during the call.
func (x *Index) scan(table byte, f func(key, value []byte) error) error {
	return x.scanAt(x.View(), []byte{table}, f)
}

func (x *Index) scanAt(view uint64, prefix []byte, f func(key, value []byte) error) error {
	txn := x.db.NewTransactionAt(view, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if err := item.Value(func(value []byte) error { return f(item.Key(), value) }); err != nil {
			return fmt.Errorf("index: table %q: %w", prefix[0], err)
		}
	}
	return nil
}

// Close ends the index.
func (x *Index) Close() error {
	if err := x.db.Close(); err != nil {
		return fmt.Errorf("index: close: %w", err)
	}
	return nil
}

// View names the state that the last Apply has left. It can be read until the second Keep after it.
func (x *Index) View() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.view
}

// Counters returns the numbers that must never be given again.
func (x *Index) Counters() Counters {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.counters
}

// Summary returns that of a queue, and whether there is one. It doesn't change.
func (x *Index) Summary(queue uint64) (*Summary, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, defined := x.queues[queue]
	return s, defined
}

// Live returns what each segment holds that is needed; segments that hold nothing are left out.
func (x *Index) Live() map[uint64]Live {
	x.mu.Lock()
	defer x.mu.Unlock()
	live := make(map[uint64]Live, len(x.live))
	for segment, l := range x.live {
		live[segment] = l
	}
	return live
}

// Definitions calls f with all queues, in ascending order. The value is valid during the call.
func (x *Index) Definitions(f func(queue uint64, value []byte) error) error {
	return x.scan(tableQueue, func(key, value []byte) error {
		return f(binary.BigEndian.Uint64(key[1:]), value)
	})
}

// Cells calls f with all cells. Keys and values are valid during the call.
func (x *Index) Cells(f func(space uint64, key, value []byte) error) error {
	return x.scan(tableCell, func(key, value []byte) error {
		return f(binary.BigEndian.Uint64(key[1:]), key[9:], value)
	})
}

// Alarms returns how often Badger has told of a fault.
func (x *Index) Alarms() int64 { return x.alarms.Load() }
