package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// written is a journal of several segments, with what stands where.
type written struct {
	fs      *crashfs.FS
	records []journal.Record
	groups  []int // index into records where each group begins
	last    uint64
}

func write(t *testing.T, closed bool) *written {
	w := &written{fs: crashfs.New()}
	j := begin(t, options(w.fs), 1)
	rng := rand.New(rand.NewPCG(5, 5))
	for j.End().Segment < 4 || j.End().Offset < small/2 {
		w.groups = append(w.groups, len(w.records))
		for range 1 + rng.IntN(3) {
			w.records = append(w.records, add(t, j, journal.KindWindow, strings.Repeat("x", 1+rng.IntN(8000))))
		}
		flush(t, j)
	}
	w.last = j.End().Segment
	if closed {
		closeJournal(t, j)
	} else if err := abandon(j, w.fs); err != nil {
		t.Fatal(err)
	}
	return w
}

// verdict is what Open must say of a changed byte.
type verdict struct {
	corrupt bool
	segment uint64
	offset  int64
	left    int // records, if it opens
}

func (w *written) verdict(segment uint64, offset int64, closed bool) verdict {
	all := verdict{left: len(w.records)}
	if offset < 64 {
		return verdict{corrupt: true, segment: segment}
	}
	if offset >= 4096 && segment == 1 && offset < 4096+42 { // epoch begins
		return verdict{corrupt: true, segment: 1, offset: 4096}
	}
	for i, rec := range w.records {
		if rec.Segment != segment || offset < rec.Offset-32 || offset >= rec.Offset+rec.Length {
			continue
		}
		if i >= w.groups[len(w.groups)-1] && !closed {
			return verdict{left: i} // of the group written last: torn, as far as anybody can tell
		}
		return verdict{corrupt: true, segment: segment, offset: rec.Offset - 32}
	}
	return all
}

// TestFlippedBits turns single bits over, in headers, records, ends of segments and behind the end.
func TestFlippedBits(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			w := write(t, closed)
			rng := rand.New(rand.NewPCG(6, 6))
			flips := map[uint64][]int64{}
			for _, rec := range w.records { // every byte of some record headers
				if rng.IntN(8) == 0 || rec.Index == w.records[len(w.records)-1].Index {
					for i := range int64(32) {
						flips[rec.Segment] = append(flips[rec.Segment], rec.Offset-32+i)
					}
				}
			}
			for n := range w.last {
				for range seeds(80) {
					flips[n+1] = append(flips[n+1], rng.Int64N(small))
				}
				for i := range int64(64) {
					flips[n+1] = append(flips[n+1], i)
				}
			}
			verdicts := map[string]int{}
			for segment, offsets := range flips {
				for _, offset := range offsets {
					fs := w.fs.Copy()
					fs.Flip(segmentName(segment), offset, uint(rng.IntN(8)))
					want := w.verdict(segment, offset, closed)
					verdicts[fmt.Sprint("corrupt=", want.corrupt, " all=", want.left == len(w.records))]++
					w.open(t, fs, want, fmt.Sprintf("segment %d, byte %d", segment, offset))
				}
			}
			t.Log(verdicts)
		})
	}
}

func (w *written) open(t *testing.T, fs *crashfs.FS, want verdict, what string) {
	t.Helper()
	names := fs.Names()
	ops := fs.Ops()
	j, err := journal.Open(options(fs))
	if want.corrupt {
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Segment != want.segment || corrupt.Offset != want.offset {
			t.Fatalf("%s: %v, want segment %d at %d", what, err, want.segment, want.offset)
		}
		if fs.Ops() != ops || !slices.Equal(slices.Sorted(slices.Values(fs.Names())), slices.Sorted(slices.Values(names))) {
			t.Fatalf("%s: a corrupt journal was changed", what)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if left := len(replayed(t, j, journal.Position{})); left != want.left {
		t.Fatalf("%s: %d records, want %d", what, left, want.left)
	}
	closeJournal(t, j)
}

// lost is what Open must say when a page is gone.
func (w *written) lost(segment uint64, offset int64) verdict {
	want := verdict{left: len(w.records)}
	first := len(w.records)
	for b := int64(4095); b >= 0; b-- { // the first byte that matters decides
		if v := w.verdict(segment, offset+b, false); v.corrupt || v.left < len(w.records) {
			want = v
		}
	}
	for i := len(w.records) - 1; i >= 0; i-- {
		if rec := w.records[i]; rec.Segment == segment && rec.Offset-32 < offset+4096 && rec.Offset+rec.Length > offset {
			first = i
		}
	}
	if !want.corrupt || segment != w.last {
		return want
	}
	// In the last segment it takes a whole record of a later group to know.
	for _, group := range w.groups {
		if group <= first {
			continue
		}
		for _, rec := range w.records[group:] {
			if rec.Offset-32 >= offset+4096 {
				return want
			}
		}
	}
	return verdict{left: first}
}

// TestLostPages clears whole pages, and segments.
func TestLostPages(t *testing.T) {
	w := write(t, false)
	lose := func(segment uint64, offset int64) *crashfs.FS {
		fs := w.fs.Copy()
		f, err := fs.Open(segmentName(segment), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, 4096), offset); err != nil {
			t.Fatal(err)
		}
		return fs
	}
	for segment := range w.last {
		for offset := int64(4096); offset < small; offset += 4096 {
			want := w.lost(segment+1, offset)
			w.open(t, lose(segment+1, offset), want, fmt.Sprintf("segment %d, page at %d", segment+1, offset))
		}
	}
	for segment := range w.last - 1 {
		fs := w.fs.Copy()
		if err := fs.Remove(segmentName(segment + 1)); err != nil {
			t.Fatal(err)
		}
		o := options(fs)
		o.From = journal.Position{Index: 1, Segment: 1, Offset: 4096}
		var corrupt *journal.CorruptError
		if _, err := journal.Open(o); !errors.As(err, &corrupt) {
			t.Fatalf("segment %d is missing: %v", segment+1, err)
		}
	}
	// A segment that isn't as long as it was.
	fs := w.fs.Copy()
	f, err := fs.Open(segmentName(2), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(small / 2); err != nil {
		t.Fatal(err)
	}
	var corrupt *journal.CorruptError
	if _, err := journal.Open(options(fs)); !errors.As(err, &corrupt) || corrupt.Segment != 2 {
		t.Fatal(err)
	}
}

// TestBytesOfASegmentInABody sends a segment's own bytes through the journal, and tears the group that holds them: the
// records in them must not pass for evidence.
func TestBytesOfASegmentInABody(t *testing.T) {
	source := write(t, false)
	body := string(source.fs.ReadFile(segmentName(1))[4096:][:20000])
	body = strings.Repeat(body, 30)
	for shift := range 8 {
		fs := crashfs.New()
		o := options(fs)
		o.StoreID[3]++ // of another store
		o.SegmentSize = 1 << 20
		j := begin(t, o, 1)
		add(t, j, journal.KindWindow, "before")
		flush(t, j)
		rec := add(t, j, journal.KindPart, strings.Repeat("p", shift)+body)
		flush(t, j)
		if err := abandon(j, fs); err != nil {
			t.Fatal(err)
		}
		fs = fs.Copy()
		fs.Flip(segmentName(1), rec.Offset-32, 3)
		j, err := journal.Open(func() journal.Options { o.FS = fs; return o }())
		if err != nil {
			t.Fatal(err)
		}
		if got := replayed(t, j, journal.Position{}); !slices.Equal(got, []string{"before"}) {
			t.Fatalf("%d records", len(got))
		}
		// Nothing is behind the cut.
		for i, b := range fs.ReadFile(segmentName(1))[rec.Offset-32:] {
			if b != 0 {
				t.Fatalf("byte %d behind the end is %#x", i, b)
			}
		}
		closeJournal(t, j)
	}
}

// TestWrongPosition opens from positions that are none: records that are whole aren't cut off.
func TestWrongPosition(t *testing.T) {
	w := write(t, false)
	rec := w.records[len(w.records)-1]
	for _, c := range []struct {
		name string
		from journal.Position
	}{
		{"lower index", journal.Position{Index: rec.Index - 1, Segment: rec.Segment, Offset: rec.Offset - 32}},
		{"higher index", journal.Position{Index: rec.Index + 1, Segment: rec.Segment, Offset: rec.Offset - 32}},
		{"index before the segment's", journal.Position{Index: 1, Segment: rec.Segment, Offset: rec.Offset - 32}},
		{"in the header", journal.Position{Index: rec.Index, Segment: rec.Segment, Offset: 8}},
		{"odd", journal.Position{Index: rec.Index, Segment: rec.Segment, Offset: rec.Offset - 31}},
		{"behind the segment", journal.Position{Index: rec.Index, Segment: rec.Segment, Offset: small + 8}},
		{"missing segment", journal.Position{Index: rec.Index, Segment: rec.Segment + 1, Offset: 4096}},
	} {
		fs := w.fs.Copy()
		o := options(fs)
		o.From = c.from
		var corrupt *journal.CorruptError
		if _, err := journal.Open(o); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", c.name, err)
		}
		if fs.Ops() != 0 {
			t.Errorf("%s: something was changed", c.name)
		}
	}
}
