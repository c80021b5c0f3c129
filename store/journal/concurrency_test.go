package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// TestReadersBesideTheCommitter reads, replays and frees while groups are appended and segments are made in the
// background.
func TestReadersBesideTheCommitter(t *testing.T) {
	for name, fs := range map[string]journal.FS{"memory": crashfs.New(), "device": journal.OS(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			j := begin(t, journal.Options{FS: fs, Dir: "a/journal", StoreID: storeID, SegmentSize: small, Spares: 2, OpenFiles: 2}, 1)
			var (
				mu      sync.Mutex
				records []journal.Record // of segments that are not freed
				readers sync.WaitGroup
				done    = make(chan struct{})
			)
			for reader := range 3 {
				readers.Go(func() {
					b := make([]byte, 8)
					for n := reader; ; n += 7 {
						select {
						case <-done:
							return
						default:
						}
						// Held while reading: what is read must not be freed.
						mu.Lock()
						if len(records) > 0 {
							rec := records[n%len(records)]
							if err := j.ReadAt(rec.Segment, rec.Offset, b); err != nil || string(b) != fmt.Sprintf("%08d", rec.Index) {
								t.Errorf("record %d: %q: %v", rec.Index, b, err)
							}
						}
						mu.Unlock()
						_, _ = j.End(), j.Segments()
						if reader == 0 {
							// Beside Free a replay may lose its segments, and may not do anything else.
							err := j.Replay(journal.Position{}, func(rec journal.Record) error {
								if rec.Kind == journal.KindWindow && string(rec.Payload[:8]) != fmt.Sprintf("%08d", rec.Index) {
									return wrongf("record %d: %q", rec.Index, rec.Payload[:8])
								}
								return nil
							})
							var w wrong
							if errors.As(err, &w) {
								t.Error(err)
							}
						}
					}
				})
			}
			index := j.End().Index
			for i := range 400 {
				var group []journal.Record
				for range 1 + i%3 {
					group = append(group, add(t, j, journal.KindWindow, fmt.Sprintf("%08d%s", index, strings.Repeat("x", i*37%9000))))
					index++
				}
				flush(t, j)
				mu.Lock()
				records = append(records, group...)
				mu.Unlock()
				if i%10 != 9 {
					continue
				}
				for _, s := range j.Segments() {
					if !s.Sealed || s.Number%5 == 0 {
						continue
					}
					mu.Lock()
					var left []journal.Record
					for _, rec := range records {
						if rec.Segment != s.Number {
							left = append(left, rec)
						}
					}
					records = left
					if err := j.Free(s.Number); err != nil {
						t.Error(err)
					}
					mu.Unlock()
				}
			}
			close(done)
			readers.Wait()
			closeJournal(t, j)
			j, err := journal.Open(journal.Options{FS: fs, Dir: "a/journal", StoreID: storeID, SegmentSize: small})
			if err != nil {
				t.Fatal(err)
			}
			if end := j.End(); end.Index != index {
				t.Fatalf("end %+v, want %d", end, index)
			}
			closeJournal(t, j)
		})
	}
}
