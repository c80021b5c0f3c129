package journal_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// TestAgainstAModel runs any commands against a journal and against a list.
func TestAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := crashfs.New()
		o := options(fs)
		o.OpenFiles = rapid.IntRange(1, 4).Draw(t, "open files")
		o.Spares = rapid.IntRange(0, 3).Draw(t, "spares")
		var (
			flushed, group []kept
			freed          = map[uint64]bool{}
			epoch          uint64
		)
		start := func() *journal.Journal {
			j, err := journal.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			epoch += uint64(rapid.IntRange(0, 1).Draw(t, "new epoch"))
			if err := j.Begin(max(1, epoch)); err != nil {
				t.Fatal(err)
			}
			epoch = j.Epoch()
			group = nil
			return j
		}
		j := start()
		defer func() { _ = j.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 3).Draw(t, "pieces")
				if rapid.IntRange(0, 3).Draw(t, "large") == 0 {
					pieces = append(pieces, make([]byte, rapid.IntRange(1, small).Draw(t, "size")))
				}
				var payload []byte
				for _, p := range pieces {
					payload = append(payload, p...)
				}
				kind := rapid.SampledFrom([]journal.Kind{journal.KindWindow, journal.KindPart}).Draw(t, "kind")
				rec, err := j.Append(kind, pieces...)
				if fits := len(payload) > 0 && int64(len(payload)) <= j.MaxPayload(); fits != (err == nil) {
					t.Fatalf("%d bytes: %v", len(payload), err)
				}
				if err != nil {
					group = nil
					return
				}
				if rec.Epoch != epoch || rec.Kind != kind {
					t.Fatalf("%+v", rec)
				}
				group = append(group, kept{rec, string(payload)})
			},
			"flush": func(t *rapid.T) {
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
				flushed, group = append(flushed, group...), nil
			},
			"read": func(t *rapid.T) {
				if len(flushed) == 0 {
					t.Skip()
				}
				k := rapid.SampledFrom(flushed).Draw(t, "record")
				b := make([]byte, k.Length)
				err := j.ReadAt(k.Segment, k.Offset, b)
				if freed[k.Segment] {
					if !errors.Is(err, journal.ErrNoSegment) {
						t.Fatalf("freed, and read: %v", err)
					}
				} else if err != nil || string(b) != k.payload {
					t.Fatalf("record %d: %v", k.Index, err)
				}
			},
			"free": func(t *rapid.T) {
				s := rapid.SampledFrom(j.Segments()).Draw(t, "segment")
				err := j.Free(s.Number)
				if s.Sealed != (err == nil) {
					t.Fatalf("%+v: %v", s, err)
				}
				if err == nil {
					freed[s.Number] = true
				}
			},
			"replay": func(t *rapid.T) {
				var from journal.Position
				if len(flushed) > 0 && rapid.Bool().Draw(t, "somewhere") {
					at := rapid.IntRange(0, len(flushed)-1).Draw(t, "from")
					from = flushed[at].Next()
					for number := range freed {
						if number >= from.Segment {
							t.Skip() // from a position on, nothing may be missing
						}
					}
				}
				var want []kept
				for _, k := range flushed {
					if k.Index >= from.Index && !freed[k.Segment] {
						want = append(want, k)
					}
				}
				got := 0
				err := j.Replay(from, func(rec journal.Record) error {
					if rec.Kind == journal.KindEpoch {
						return nil
					}
					if got == len(want) {
						t.Fatalf("record %d is one too many", rec.Index)
					}
					got++
					return want[got-1].matches(rec)
				})
				if err != nil || got != len(want) {
					t.Fatalf("%d of %d records: %v", got, len(want), err)
				}
			},
			"reopen": func(t *rapid.T) {
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				j = start()
			},
			"kill": func(t *rapid.T) {
				next := fs.Kill()
				_ = j.Close()
				fs, o.FS = next, next
				j = start()
			},
		})
	})
}
