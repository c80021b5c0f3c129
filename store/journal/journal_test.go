package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var storeID = [16]byte{0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

const small = journal.MinSegmentSize

func options(fs journal.FS) journal.Options {
	return journal.Inline(journal.Options{FS: fs, Dir: "journal", StoreID: storeID, SegmentSize: small, Spares: 1})
}

func segmentName(n uint64) string { return path.Join("journal", fmt.Sprintf("%016x.seg", n)) }

// begin opens a journal and begins an epoch.
func begin(t testing.TB, o journal.Options, epoch uint64) *journal.Journal {
	t.Helper()
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Begin(epoch); err != nil {
		t.Fatal(err)
	}
	return j
}

func add(t testing.TB, j *journal.Journal, kind journal.Kind, payload string) journal.Record {
	t.Helper()
	rec, err := j.Append(kind, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func flush(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
}

func closeJournal(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// replayed returns the payloads from a position on, those of windows and parts.
func replayed(t testing.TB, j *journal.Journal, from journal.Position) []string {
	t.Helper()
	var all []string
	last := uint64(0)
	err := j.Replay(from, func(rec journal.Record) error {
		if last != 0 && rec.Index <= last {
			t.Fatalf("record %d after %d", rec.Index, last)
		}
		last = rec.Index
		if rec.Kind != journal.KindEpoch {
			all = append(all, string(rec.Payload))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAppendFlushReplay(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 3)
	first := add(t, j, journal.KindPart, "part")
	window, err := j.Append(journal.KindWindow, []byte("win"), nil, []byte("dow"))
	if err != nil {
		t.Fatal(err)
	}
	if got := replayed(t, j, journal.Position{}); len(got) != 0 {
		t.Fatalf("not flushed, and read: %q", got)
	}
	flush(t, j)
	if first.Index != 2 || first.Epoch != 3 || first.Segment != 1 || window.Index != 3 || window.Length != 6 {
		t.Fatalf("%+v, %+v", first, window)
	}
	if end := j.End(); end != window.Next() {
		t.Fatalf("end %+v, want %+v", end, window.Next())
	}
	want := []string{"part", "window"}
	if got := replayed(t, j, journal.Position{}); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	if got := replayed(t, j, first.Next()); !slices.Equal(got, want[1:]) {
		t.Fatalf("%q", got)
	}
	b := make([]byte, window.Length)
	if err := j.ReadAt(window.Segment, window.Offset, b); err != nil || string(b) != "window" {
		t.Fatalf("%q: %v", b, err)
	}
	if err := j.ReadAt(9, 4096, b); !errors.Is(err, journal.ErrNoSegment) {
		t.Fatal(err)
	}
	add(t, j, journal.KindWindow, "never flushed")
	closeJournal(t, j)
	if err := j.Flush(); !errors.Is(err, journal.ErrClosed) {
		t.Fatal(err)
	}

	o := options(fs)
	o.From = first.Next()
	j = begin(t, o, 3)
	defer closeJournal(t, j)
	if got := replayed(t, j, journal.Position{}); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	if rec := add(t, j, journal.KindWindow, "more"); rec.Index != 4 || rec.Segment != 2 {
		t.Fatalf("%+v", rec)
	}
}

func TestEpochs(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 1)
	closeJournal(t, j)
	j = begin(t, options(fs), 5)
	closeJournal(t, j)
	j, err := journal.Open(options(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer closeJournal(t, j)
	if j.Epoch() != 5 {
		t.Fatalf("epoch %d", j.Epoch())
	}
	if _, err := j.Append(journal.KindWindow, []byte("x")); !errors.Is(err, journal.ErrNotBegun) {
		t.Fatal(err)
	}
	if err := j.Begin(4); !errors.Is(err, journal.ErrEpoch) {
		t.Fatal(err)
	}
	if err := j.Begin(5); err != nil {
		t.Fatal(err)
	}
	var epochs []string
	if err := j.Replay(journal.Position{}, func(rec journal.Record) error {
		epochs = append(epochs, fmt.Sprintf("%d:%d:%x", rec.Index, rec.Epoch, rec.Payload))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1:1:00010000000000000001", "2:5:00010000000000000005"}; !slices.Equal(epochs, want) {
		t.Fatalf("%q", epochs)
	}
}

// TestOneWriteOneFlush holds what a commit costs, and that nothing is written while a group isn't flushed.
func TestOneWriteOneFlush(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 1)
	defer closeJournal(t, j)
	var ops []crashfs.OpKind
	fs.Trace(func(op crashfs.Op) { ops = append(ops, op.Kind) })
	for range 3 {
		ops = nil
		add(t, j, journal.KindPart, strings.Repeat("p", 5000))
		add(t, j, journal.KindPart, strings.Repeat("q", 5000))
		add(t, j, journal.KindWindow, "w")
		if len(ops) != 0 {
			t.Fatalf("Append: %v", ops)
		}
		flush(t, j)
		if want := []crashfs.OpKind{crashfs.OpWrite, crashfs.OpSync}; !slices.Equal(ops, want) {
			t.Fatalf("Flush: %v", ops)
		}
	}
	fs.Trace(nil)
}

// TestSegmentBeforeUse holds the order in which a segment is made: filled and flushed, named, its name flushed, its
// header flushed, and only then records; and those before are flushed before that header.
func TestSegmentBeforeUse(t *testing.T) {
	fs := crashfs.New()
	var ops []string
	fs.Trace(func(op crashfs.Op) {
		ops = append(ops, fmt.Sprint(op.Kind, " ", path.Base(op.Name), " ", path.Base(op.To), " ", op.Offset, " ", op.Length))
	})
	j := begin(t, options(fs), 1)
	want := []string{
		"1 making.tmp . 0 0", "4 making.tmp . 0 65536", "2 making.tmp . 0 65536", "3 making.tmp . 0 0", "3 making.tmp . 0 0",
		"6 making.tmp 0000000000000001.seg 0 0", "8 journal . 0 0",
		"2 making.tmp . 0 4096", "3 making.tmp . 0 0", "2 making.tmp . 4096 4096", "3 making.tmp . 0 0",
	}
	// What follows is the next segment, made ahead.
	if got := ops[1:]; len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Fatalf("%q", got)
	}
	add(t, j, journal.KindWindow, strings.Repeat("a", 40000))
	flush(t, j)
	ops = nil
	add(t, j, journal.KindWindow, strings.Repeat("b", 40000))
	flush(t, j)
	fs.Trace(nil)
	want = []string{"2 making.tmp . 44176 880", "3 making.tmp . 0 0", "2 making.tmp . 0 4096", "3 making.tmp . 0 0",
		"2 making.tmp . 4096 40960", "3 making.tmp . 0 0"}
	if len(ops) < len(want) || !slices.Equal(ops[:len(want)], want) {
		t.Fatalf("%q", ops)
	}
	closeJournal(t, j)
}

func TestSegmentsAreUsedAgain(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 1)
	defer closeJournal(t, j)
	sizes := func() (n int) {
		for _, name := range fs.Names() {
			if strings.HasSuffix(name, ".seg") {
				n++
			}
		}
		return n
	}
	payload := strings.Repeat("x", 20000)
	for i := range 200 {
		add(t, j, journal.KindWindow, fmt.Sprint(i, payload))
		flush(t, j)
		for _, s := range j.Segments() {
			if s.Sealed {
				if err := j.Free(s.Number); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := sizes(); n > 3 {
		t.Fatalf("%d segments for one that is written, one ahead and a spare: %v", n, fs.Names())
	}
	creates := 0
	fs.Trace(func(op crashfs.Op) {
		if op.Kind == crashfs.OpCreate {
			creates++
		}
	})
	defer fs.Trace(nil)
	for range 20 {
		add(t, j, journal.KindWindow, payload)
		flush(t, j)
		for _, s := range j.Segments() {
			if s.Sealed {
				if err := j.Free(s.Number); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if creates != 0 {
		t.Fatalf("%d new files", creates)
	}
	segments := j.Segments()
	if err := j.Free(segments[len(segments)-1].Number); !errors.Is(err, journal.ErrInUse) {
		t.Fatal(err)
	}
	if err := j.Free(1); !errors.Is(err, journal.ErrNoSegment) {
		t.Fatal(err)
	}
}

// TestFreedSegmentsMayBeMissing reads from the beginning what is left after segments in the middle were freed.
func TestFreedSegmentsMayBeMissing(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 1)
	var want []string
	for i := range 21 {
		payload := fmt.Sprint(i, strings.Repeat("x", 40000))
		if rec := add(t, j, journal.KindWindow, payload); rec.Segment%3 != 2 {
			want = append(want, payload)
		}
		flush(t, j)
	}
	for _, s := range j.Segments() {
		if s.Number%3 == 2 && s.Sealed {
			if err := j.Free(s.Number); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeJournal(t, j)
	j, err := journal.Open(options(fs))
	if err != nil {
		t.Fatal(err)
	}
	if got := replayed(t, j, journal.Position{}); !slices.Equal(got, want) {
		t.Fatalf("%d payloads", len(got))
	}
	closeJournal(t, j)

	// From a position on, nothing may be missing.
	o := options(fs)
	s := j.Segments()[0]
	o.From = journal.Position{Index: s.FirstIndex, Segment: s.Number, Offset: 4096}
	var corrupt *journal.CorruptError
	if _, err := journal.Open(o); !errors.As(err, &corrupt) || corrupt.Segment != 1 {
		t.Fatal(err)
	}
	o.From.Segment = 2
	if _, err := journal.Open(o); !errors.As(err, &corrupt) || corrupt.Segment != 2 {
		t.Fatal(err)
	}
}

// TestFreedUpToTheEnd reads a journal whose last record lay in a segment that was freed.
func TestFreedUpToTheEnd(t *testing.T) {
	fs := crashfs.New()
	for epoch := range uint64(3) {
		j := begin(t, options(fs), min(2, epoch+1)) // the third segment has no record
		if epoch == 2 {
			if err := j.Free(2); err != nil {
				t.Fatal(err)
			}
			if got := replayed(t, j, journal.Position{}); len(got) != 0 {
				t.Fatalf("%q", got)
			}
		}
		closeJournal(t, j)
	}
}

func TestLimits(t *testing.T) {
	fs := crashfs.New()
	o := options(fs)
	for _, size := range []int64{1, 4096, small - 4096, small + 1, journal.MaxSegmentSize + 4096} {
		o.SegmentSize = size
		if _, err := journal.Open(o); err == nil {
			t.Errorf("segment size %d", size)
		}
	}
	j := begin(t, options(fs), 1)
	defer closeJournal(t, j)
	limit := int(j.MaxPayload())
	add(t, j, journal.KindWindow, "dropped")
	if _, err := j.Append(journal.KindWindow, make([]byte, limit+1)); !errors.Is(err, journal.ErrTooLarge) {
		t.Fatal(err)
	}
	add(t, j, journal.KindWindow, "dropped as well")
	if _, err := j.Append(journal.KindWindow); err == nil {
		t.Fatal("no payload")
	}
	add(t, j, journal.KindWindow, "dropped as well")
	if _, err := j.Append(journal.KindEpoch, []byte("x")); err == nil {
		t.Fatal("an epoch can be appended")
	}
	largest := strings.Repeat("x", limit)
	if rec := add(t, j, journal.KindWindow, largest); rec.Index != 2 || rec.Segment != 2 || rec.Next().Offset != small {
		t.Fatalf("%+v", rec)
	}
	flush(t, j)
	if got := replayed(t, j, journal.Position{}); len(got) != 1 || got[0] != largest {
		t.Fatalf("%d payloads", len(got))
	}
}

func TestOtherStoresAndVersions(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 1)
	closeJournal(t, j)
	o := options(fs)
	o.StoreID[0]++
	if _, err := journal.Open(o); !errors.Is(err, journal.ErrOtherStore) {
		t.Fatal(err)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	fs := crashfs.New()
	o := options(fs)
	o.OpenFiles = 3
	j := begin(t, o, 1)
	defer closeJournal(t, j)
	var all []journal.Record
	for i := range 12 {
		all = append(all, add(t, j, journal.KindWindow, fmt.Sprintf("%02d%s", i, strings.Repeat("x", 40000))))
		flush(t, j)
	}
	for range 3 {
		for i, rec := range all {
			var b [2]byte
			if err := j.ReadAt(rec.Segment, rec.Offset, b[:]); err != nil || string(b[:]) != fmt.Sprintf("%02d", i) {
				t.Fatalf("%q: %v", b, err)
			}
			if n := j.OpenFiles(); n > 3 {
				t.Fatalf("%d open files", n)
			}
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	o := options(crashfs.New())
	o.SegmentSize = 1 << 20
	j := begin(t, o, 1)
	defer closeJournal(t, j)
	facts, body := bytes.Repeat([]byte("f"), 30), bytes.Repeat([]byte("b"), 100)
	fill := func() {
		for range 100 {
			if _, err := j.Append(journal.KindWindow, facts, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 { // the buffer is as large as it will be
		fill()
	}
	flush(t, j)
	if n := testing.AllocsPerRun(2, fill); n != 0 {
		t.Fatalf("%v allocations for 100 records", n)
	}
}

// TestOpenTidies finds what a process left that ended while it made segments, and spares that are no use.
func TestOpenTidies(t *testing.T) {
	fs := crashfs.New()
	closeJournal(t, begin(t, options(fs), 1))
	for name, size := range map[string]int64{"making.tmp": 5, "spare-7.seg": 4096, "spare-8.seg": small, "spare-9.seg": small,
		"spare-x.seg": small, "notes.txt": 1} {
		f, err := fs.Open("journal/"+name, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	j, err := journal.Open(options(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer closeJournal(t, j)
	names := fs.Names()
	slices.Sort(names)
	// Close has left spare-1. What the journal doesn't know it leaves alone.
	if want := []string{segmentName(1), "journal/notes.txt", "journal/spare-1.seg", "journal/spare-x.seg"}; !slices.Equal(names, want) {
		t.Fatalf("%q", names)
	}
}

// TestBeginDoesNotWaitForZeros starts on an empty folder: the first segment is used before it is filled.
func TestBeginDoesNotWaitForZeros(t *testing.T) {
	fs := crashfs.New()
	filled := int64(0)
	fs.Trace(func(op crashfs.Op) {
		if op.Kind == crashfs.OpWrite && op.Length >= 1<<20 {
			filled++
		}
		if op.Kind == crashfs.OpRename && op.To == segmentName(1) && filled > 0 {
			t.Error("filled while the committer waits")
		}
	})
	j := begin(t, journal.Options{FS: fs, Dir: "journal", StoreID: storeID, SegmentSize: 4 << 20}, 1)
	j.Preparing()
	if filled != 4 {
		t.Errorf("%d MiB of the second are filled", filled)
	}
	closeJournal(t, j)
	fs.Trace(nil)
}
