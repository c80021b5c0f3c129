package store

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// vectors are facts as FORMAT.md has them, byte by byte. They never change.
var vectors = []struct {
	name  string
	write func(*windowWriter)
	want  string // behind the version
}{
	{"define", func(w *windowWriter) {
		w.define(&engine.Definition{
			ID: 300, Address: "a", Name: "q", Routing: engine.Multicast, Auto: true, Container: "c", Link: "ln",
		})
	}, "01 ac02 03 0161 0171 0163 026c6e"},
	{"delete", func(w *windowWriter) { w.delete(7) }, "02 07"},
	{"body", func(w *windowWriter) {
		w.body(&queue.Message{
			Payload: []byte("xyz"), Format: 1, Durable: true, HeaderTTL: true, Priority: 4, TTL: 200, Expiry: 128, Arrived: 5, Address: "a",
		}, nil)
	}, "03 12 01 01 11 04 c801 8001 05 0161 00 03 78797a"},
	{"body in parts", func(w *windowWriter) {
		w.body(&queue.Message{
			Payload: []byte("xyz"), HeaderDurable: true, DurableValue: true, HeaderPriority: true, Priority: 9,
		}, []journal.Place{{Segment: 2, Offset: 200, Length: 1, CRC: 0x01020304}, {Segment: 3, Offset: 4128, Length: 2, CRC: 0xfffefdfc}})
	}, "03 1c 01 00 0e 09 00 00 00 00 02 02c8010101020304 03a02002fffefdfc 03"},
	{"enqueue", func(w *windowWriter) {
		w.enqueue(factEnqueue, 1, 1000, 4, 1, 2, 1)
		w.annotations([]queue.Annotation{{Key: "k", Value: "v"}, {Key: "n", Value: int64(-2)}, {Key: "t", Value: queue.Millis(3)}, {Key: "e", Value: queue.Encoded{0x40}}})
	}, "04 01 e807 04 01 02 01 04 016b 01 0176 016e 02 03 0174 03 06 0165 04 0140"},
	{"remove", func(w *windowWriter) { w.remove(1, 128, 9) }, "05 01 8001 09"},
	{"count", func(w *windowWriter) { w.count(1, 2, 0, 300, 4); w.annotations(nil) }, "06 01 02 00 ac02 04 00"},
	{"move", func(w *windowWriter) { w.move(2, 9, 1, 8, 4, 1, 5, 5); w.annotations(nil) }, "07 02 09 01 08 04 01 05 05 00"},
	{"cell", func(w *windowWriter) { w.cell(3, []byte("k"), []byte("val")) }, "08 03 016b 0376616c"},
	{"due", func(w *windowWriter) { w.due(1, 2, 4, 128) }, "09 01 02 04 8001"},
	{"purge", func(w *windowWriter) { w.purge(1, 4, index.Span{First: 3, Last: 5}, index.Span{First: 9, Last: 9}) }, "0a 01 04 02 03 02 04 00"},
	{"counters", func(w *windowWriter) { w.counters(128, 2) }, "0b 8001 02"},
	{"relocate", func(w *windowWriter) { w.enqueue(factRelocate, 1, 2, 4, 1, 0, 0); w.annotations(nil) }, "0c 01 02 04 01 00 00 00"},
	{"restated", func(w *windowWriter) { w.restated(128) }, "0d 8001"},
	{"deleted", func(w *windowWriter) { w.deleted([]index.Span{{First: 0, Last: 1}}) }, "0e 01 00 01"},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		want, err := hex.DecodeString("01" + strings.ReplaceAll(v.want, " ", ""))
		if err != nil {
			t.Fatal(v.name, err)
		}
		var w windowWriter
		w.reset()
		v.write(&w)
		if !bytes.Equal(w.b, want) {
			t.Errorf("%s = %x, want %x", v.name, w.b, want)
		}
		r := readWindow(want)
		if !r.next() || r.next() || r.err != nil {
			t.Errorf("%s: doesn't read as one fact: %v", v.name, r.err)
		}
		for n := 2; n < len(want); n++ { // cut off anywhere
			r := readWindow(want[:n])
			for r.next() {
				if r.fact.kind == factBody {
					if _, err := readBody(r.fact.bytes, nil); err != nil {
						r.err = err
					}
				}
			}
			if r.err == nil {
				t.Errorf("%s: its first %d bytes read well", v.name, n)
			}
		}
	}
}

// TestDueBehind: a due fact belongs to what stands right before it if that is about the same entry, and else stands alone.
func TestDueBehind(t *testing.T) {
	var w windowWriter
	w.reset()
	w.count(1, 2, 4, 3, 0)
	w.annotations(nil)
	w.due(1, 2, 4, 500)
	w.due(1, 2, 4, 600)
	w.enqueue(factEnqueue, 1, 7, 4, 1, 0, 0)
	w.annotations(nil)
	w.due(1, 8, 4, 700)
	w.move(1, 9, 2, 5, 9, 1, 0, 0)
	w.annotations(nil)
	w.due(1, 9, 9, 800)
	w.remove(1, 9, 9)
	w.due(1, 9, 9, 900)
	w.enqueue(factRelocate, 3, 7, 4, 1, 0, 0)
	w.annotations(nil)
	var got [][3]uint64
	r := readWindow(w.b)
	for r.next() {
		got = append(got, [3]uint64{uint64(r.fact.kind), r.fact.number, uint64(r.fact.due)})
	}
	want := [][3]uint64{
		{uint64(factCount), 2, 500}, {uint64(factDue), 2, 600}, {uint64(factEnqueue), 7, 0}, {uint64(factDue), 8, 700},
		{uint64(factMove), 9, 800}, {uint64(factRemove), 9, 0}, {uint64(factDue), 9, 900}, {uint64(factRelocate), 7, 0},
	}
	if r.err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("facts = %v, %v, want %v", got, r.err, want)
	}
}

func TestWindowVersion(t *testing.T) {
	for _, b := range [][]byte{nil, {2, 2, 7}, {0x80}} {
		if r := readWindow(b); r.next() || r.err == nil {
			t.Errorf("window %x reads well", b)
		}
	}
}

// TestBodyRoundTrip reads what was written, of any size: the length of a body includes its own.
func TestBodyRoundTrip(t *testing.T) {
	for size := range 20_000 {
		if size > 200 && size < 16_200 {
			continue
		}
		m := &queue.Message{Payload: make([]byte, size), Priority: 4}
		if b := appendBody(nil, m, nil); len(b) > 0 {
			if h, err := readBody(b, nil); err != nil || len(h.payload) != size {
				t.Fatalf("payload of %d bytes: %v", size, err)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.Bool()
		m := &queue.Message{
			Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload"), Format: rapid.Uint32().Draw(t, "format"),
			Durable: flag.Draw(t, "durable"), HeaderDurable: flag.Draw(t, "header durable"), HeaderPriority: flag.Draw(t, "header priority"),
			HeaderTTL: flag.Draw(t, "header ttl"), DurableValue: flag.Draw(t, "durable value"), Priority: rapid.Byte().Draw(t, "priority"),
			TTL: rapid.Uint32().Draw(t, "ttl"), Expiry: rapid.Int64().Draw(t, "expiry"), Arrived: rapid.Int64().Draw(t, "arrived"),
			Address: rapid.String().Draw(t, "address"),
		}
		if m.Payload == nil {
			m.Payload = []byte{}
		}
		h, err := readBody(appendBody([]byte("before"), m, nil)[6:], nil)
		if err != nil {
			t.Fatal(err)
		}
		got := h.message
		got.Address, got.Payload = string(h.address), h.payload
		if !reflect.DeepEqual(&got, m) || h.size != uint64(len(m.Payload)) {
			t.Fatalf("got %+v, want %+v", &got, m)
		}
	})
}

func TestAnnotationsRoundTrip(t *testing.T) {
	value := rapid.OneOf(
		rapid.String().AsAny(), rapid.Int64().AsAny(),
		rapid.Map(rapid.Int64(), func(n int64) queue.Millis { return queue.Millis(n) }).AsAny(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 9), func(b []byte) queue.Encoded { return b }).AsAny(),
	)
	rapid.Check(t, func(t *rapid.T) {
		var all []queue.Annotation
		for n := range rapid.IntRange(0, 5).Draw(t, "n") {
			all = append(all, queue.Annotation{Key: rapid.String().Draw(t, fmt.Sprint("key", n)), Value: value.Draw(t, fmt.Sprint("value", n))})
		}
		r := reader{b: append(appendAnnotations(nil, all), 0xaa)}
		b := r.skipAnnotations()
		if r.failed || len(r.b) != 1 {
			t.Fatalf("%d bytes left", len(r.b))
		}
		got, err := readAnnotations(b)
		if err != nil || !reflect.DeepEqual(got, all) {
			t.Fatalf("got %v, %v, want %v", got, err, all)
		}
	})
}

func TestPositionRoundTrip(t *testing.T) {
	p := position{
		window: 1, next: journal.Position{Index: math.MaxUint64, Segment: 3, Offset: 4096}, epoch: 4, time: 5, storeID: [16]byte{6, 15: 7},
	}
	b := p.encode()
	want := "4c45544f504f534e 0002 0000000000000001 ffffffffffffffff 0000000000000003 0000000000001000 0000000000000004" +
		"0000000000000005 06000000000000000000000000000007"
	if got := hex.EncodeToString(b[:len(b)-4]); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("position = %s, want %s", got, want)
	}
	var got position
	if !got.decode(b) || got != p {
		t.Errorf("got %+v, want %+v", got, p)
	}
	for i := range b {
		b[i] ^= 1
		if got.decode(b) {
			t.Errorf("a position with byte %d changed reads well", i)
		}
		b[i] ^= 1
	}
	if got.decode(b[:len(b)-1]) || got.decode(nil) {
		t.Error("a position that is cut off reads well")
	}
}

// FuzzWindow reads anything: it must neither panic nor take more memory than the input is worth.
func FuzzWindow(f *testing.F) {
	for _, v := range vectors {
		b, _ := hex.DecodeString("01" + strings.ReplaceAll(v.want, " ", ""))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := readWindow(b)
		facts := 0
		for r.next() {
			if facts++; facts > len(b) {
				t.Fatal("more facts than bytes")
			}
			switch r.fact.kind {
			case factBody:
				if h, err := readBody(r.fact.bytes, nil); err == nil && h.payload != nil && uint64(len(h.payload)) != h.size {
					t.Fatal("payload of another size")
				}
			case factEnqueue, factCount, factMove, factRelocate:
				if all, err := readAnnotations(r.fact.annotations); err != nil || len(all) > len(b) {
					t.Fatalf("annotations that were skipped don't read: %v", err)
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	m := &queue.Message{Payload: make([]byte, 256), Durable: true, HeaderDurable: true, Priority: 4, Arrived: 1_700_000_000_000, Address: "orders"}
	var w windowWriter
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%100 == 0 {
			w.reset()
		}
		w.last = nil
		w.body(m, nil)
		w.enqueue(factEnqueue, 1, uint64(n), 4, w.bodies, 0, 0)
		w.annotations(nil)
	}
}
