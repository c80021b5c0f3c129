package journal_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/store/journal"
)

// bareLog is the least that a log can do: length, checksum and payload behind each other in a file that grows, one
// write and one fdatasync for a batch. It has no segments, can't tell torn from corrupt, and never gives space back.
type bareLog struct {
	file   *os.File
	buffer []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openBare(b *testing.B, name string) *bareLog {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return &bareLog{file: f}
}

func (l *bareLog) append(payload []byte) {
	l.buffer = binary.BigEndian.AppendUint32(l.buffer, uint32(len(payload)))
	l.buffer = binary.BigEndian.AppendUint32(l.buffer, crc32.Checksum(payload, castagnoli))
	l.buffer = append(l.buffer, payload...)
}

func (l *bareLog) flush() error {
	_, err := l.file.Write(l.buffer)
	l.buffer = l.buffer[:0]
	if err != nil {
		return err
	}
	return syscall.Fdatasync(int(l.file.Fd()))
}

// BenchmarkAgainstBareLog commits the same batches, in turn, to the journal and to a bare log on the same device. The
// ratio is of rates: above 1 the journal is faster. Of the journal's time everything counts, also what it takes to
// make segments; they are freed once they are full, as with a queue that is consumed as it is filled, or kept.
func BenchmarkAgainstBareLog(b *testing.B) {
	for _, free := range []bool{true, false} {
		for _, size := range []int{100, 256, 1024} {
			for _, batch := range []int{1, 16, 100, 1000} {
				b.Run(fmt.Sprintf("consumed=%v/%dB/batch=%d", free, size, batch), func(b *testing.B) {
					againstBareLog(b, free, size, batch)
				})
			}
		}
	}
}

func againstBareLog(b *testing.B, free bool, size, batch int) {
	dir := b.TempDir()
	bare := openBare(b, filepath.Join(dir, "bare"))
	j := begin(b, journal.Options{FS: journal.OS(dir), Dir: "journal", StoreID: storeID, Spares: 2}, 1)
	defer closeJournal(b, j)
	j.Preparing()
	payload := make([]byte, size)
	var times [2][]time.Duration
	segment := j.End().Segment
	for b.Loop() {
		start := time.Now()
		for range batch {
			bare.append(payload)
		}
		if err := bare.flush(); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		for range batch {
			if _, err := j.Append(journal.KindWindow, payload); err != nil {
				b.Fatal(err)
			}
		}
		if err := j.Flush(); err != nil {
			b.Fatal(err)
		}
		end := time.Now()
		times[0], times[1] = append(times[0], middle.Sub(start)), append(times[1], end.Sub(middle))
		if now := j.End().Segment; free && now != segment {
			if err := j.Free(segment); err != nil {
				b.Fatal(err)
			}
			segment = now
		}
	}
	var total, median [2]time.Duration
	for i, all := range times {
		for _, d := range all {
			total[i] += d
		}
		slices.Sort(all)
		median[i] = all[len(all)/2]
	}
	flushes := float64(len(times[0]))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(flushes*float64(batch)/total[1].Seconds(), "msg/s")
	b.ReportMetric(total[0].Seconds()/total[1].Seconds(), "ratio")
	b.ReportMetric(float64(median[0])/float64(median[1]), "ratio-p50")
	b.ReportMetric(float64(median[1])/1e6, "ms-p50")
}

// BenchmarkAppend measures what a record costs without the device.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 256, 1024, 65536} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			j := begin(b, journal.Options{FS: discard{}, StoreID: storeID, Spares: 1}, 1)
			defer closeJournal(b, j)
			payload := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := j.Append(journal.KindWindow, payload); err != nil {
					b.Fatal(err)
				}
				if i%32 == 31 {
					if err := j.Flush(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// discard is a file system that takes everything and keeps nothing.
type discard struct{}

func (discard) Open(string, bool) (journal.File, error) { return discard{}, nil }
func (discard) Rename(string, string) error             { return nil }
func (discard) Remove(string) error                     { return nil }
func (discard) List(string) ([]string, error)           { return nil, nil }
func (discard) MkdirAll(string) error                   { return nil }
func (discard) SyncDir(string) error                    { return nil }
func (discard) Free() (int64, error)                    { return 1 << 50, nil }
func (discard) ReadAt(b []byte, _ int64) (int, error)   { return len(b), nil }
func (discard) WriteAt(b []byte, _ int64) (int, error)  { return len(b), nil }
func (discard) Sync() error                             { return nil }
func (discard) Allocate(int64) error                    { return nil }
func (discard) Truncate(int64) error                    { return nil }
func (discard) Size() (int64, error)                    { return 0, nil }
func (discard) Close() error                            { return nil }
