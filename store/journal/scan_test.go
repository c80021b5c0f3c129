package journal

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
)

// image is a File that only reads, and counts how much.
type image struct {
	*bytes.Reader
	read int64
}

func (f *image) ReadAt(b []byte, offset int64) (int, error) {
	f.read += int64(len(b))
	return f.Reader.ReadAt(b, offset)
}
func (f *image) Size() (int64, error)               { return f.Reader.Size(), nil }
func (f *image) WriteAt([]byte, int64) (int, error) { return 0, io.ErrShortWrite }
func (f *image) Sync() error                        { return io.ErrShortWrite }
func (f *image) Allocate(int64) error               { return io.ErrShortWrite }
func (f *image) Truncate(int64) error               { return io.ErrShortWrite }
func (f *image) Close() error                       { return nil }

const imageSeed = 0x12345678

// records returns records with the payloads, each flushed by itself.
func records(payloads ...string) []byte {
	var all []byte
	for i, p := range payloads {
		b := append(make([]byte, recordHeader), p...)
		putRecord(b, imageSeed, KindWindow, uint64(i+1), 1, 0)
		all = append(all, b...)
		all = append(all, make([]byte, int(align(int64(len(b))))-len(b))...)
	}
	return all
}

// scanImage reads records until there is none, and looks for one behind that.
func scanImage(t testing.TB, b []byte) (found int, evidence int64, file *image) {
	file = &image{Reader: bytes.NewReader(b)}
	limit := int64(len(b)) &^ (recordAlign - 1)
	var r reader
	r.open(file, imageSeed, limit, 0, 1, 0)
	for {
		rec, why, _, err := r.next(true)
		if err != nil || why != goesOn {
			break
		}
		if int64(len(rec.Payload)) != rec.Length || rec.Offset+rec.Length > limit {
			t.Fatalf("%+v in %d bytes", rec, limit)
		}
		found++
	}
	evidence, err := search(file, r.offset, limit, sought{seed: imageSeed, low: r.index, high: 1 << 62, flushed: r.index})
	if err != nil {
		t.Fatal(err)
	}
	return found, evidence, file
}

// FuzzScan feeds the scanner any bytes: it never panics, and never takes memory on the word of a length.
func FuzzScan(f *testing.F) {
	good := records("one", "two and more", "three")
	f.Add(good)
	f.Add(append(good, make([]byte, 4096)...))
	f.Add(append([]byte{0x7f, 0xff, 0xff, 0xff}, good[4:]...))
	f.Add(append([]byte{0, 0, 0, 0}, good[4:]...))
	f.Add(good[:len(good)-9])
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		scanImage(t, b)
		runtime.ReadMemStats(&after)
		// A window of the file and a piece of it to search in, both no larger than it; the sums of its beginnings and a
		// piece to compute them from. What else runs in the process gets the rest.
		if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(4*len(b)+(1<<20)) {
			t.Fatalf("%d bytes allocated for %d", taken, len(b))
		}
	})
}

// TestLengthsAreNotBelieved reads records that say they are as long as can be.
func TestLengthsAreNotBelieved(t *testing.T) {
	b := make([]byte, 8<<20)
	copy(b, records("one", "two"))
	at := align(recordHeader + 3)
	binary.BigEndian.PutUint32(b[at:], uint32(int64(len(b))-at-recordHeader))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, evidence, _ := scanImage(t, b)
	runtime.ReadMemStats(&after)
	if found != 1 || evidence != -1 {
		t.Fatalf("%d records, evidence at %d", found, evidence)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Fatalf("%d bytes allocated", taken)
	}
}

// TestSearchTakesLinearTime searches bytes that look like records everywhere, each reaching to the end: the bytes of a
// body may be whatever a client likes.
func TestSearchTakesLinearTime(t *testing.T) {
	b := make([]byte, 4<<20)
	for at := 0; len(b)-at >= recordMinimum; at += recordHeader {
		putFake(b[at:])
	}
	whole := records("hidden")
	binary.BigEndian.PutUint64(whole[8:], 77)
	putRecord(whole[:recordHeader+6], imageSeed, KindWindow, 77, 1, 0)
	for _, hidden := range []bool{false, true} {
		want := int64(-1)
		if hidden {
			want = 3<<20 + 64
			copy(b[want:], whole)
		}
		_, evidence, file := scanImage(t, b)
		if evidence != want {
			t.Fatalf("found at %d, want %d", evidence, want)
		}
		if file.read > 5*int64(len(b)) {
			t.Fatalf("%d bytes read of %d", file.read, len(b))
		}
	}
}

func putFake(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-recordHeader))
	binary.BigEndian.PutUint64(b[8:], 77)
	binary.BigEndian.PutUint64(b[16:], 1)
	b[24], b[25] = byte(KindWindow), recordVersion
}

// TestUnknownKindsAreRefused reads a whole record that a later version has written: it must not be taken for torn.
func TestUnknownKindsAreRefused(t *testing.T) {
	for _, change := range []func(b []byte){
		func(b []byte) { b[24] = 9 },
		func(b []byte) { b[25] = 2 },
		func(b []byte) { b[26] = 1 },
	} {
		b := append(records("x"), make([]byte, 4096)...)
		change(b)
		sum := reader{room: make([]byte, 4096)}
		sum.open(&image{Reader: bytes.NewReader(b)}, imageSeed, int64(len(b)), 0, 1, 0)
		s, err := sum.sum(b[:recordHeader])
		if err != nil {
			t.Fatal(err)
		}
		binary.BigEndian.PutUint32(b[4:], s)
		if _, _, _, err := sum.next(false); err == nil {
			t.Fatal("read")
		}
	}
}

// TestMisplacedRecords reads whole records whose index or epoch doesn't follow: no crash leaves them.
func TestMisplacedRecords(t *testing.T) {
	b := append(records("x"), make([]byte, 4096)...)
	for _, c := range []struct {
		index, epoch uint64
		want         ending
	}{{1, 1, goesOn}, {1, 0, goesOn}, {1, 2, misplaced}, {2, 1, misplaced}, {0, 1, misplaced}} {
		var r reader
		r.open(&image{Reader: bytes.NewReader(b)}, imageSeed, int64(len(b)), 0, c.index, c.epoch)
		if _, why, _, err := r.next(false); err != nil || why != c.want {
			t.Errorf("%+v: %d, %v", c, why, err)
		}
	}
}
