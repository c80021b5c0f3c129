package goamqp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/wire"
)

// instant is a time that AMQP can carry: whole milliseconds.
var instant = time.UnixMilli(1234567890123).UTC()

// simple are values of every primitive type go-amqp can write, at the edges of their
// ranges and on both sides of the widths of their encodings.
var simple = map[string]any{
	"bool-true": true, "bool-false": false,
	"ubyte-0": uint8(0), "ubyte-max": uint8(math.MaxUint8),
	"ushort-0": uint16(0), "ushort-max": uint16(math.MaxUint16),
	"uint-0": uint32(0), "uint-255": uint32(255), "uint-256": uint32(256), "uint-max": uint32(math.MaxUint32),
	"ulong-0": uint64(0), "ulong-255": uint64(255), "ulong-256": uint64(256), "ulong-max": uint64(math.MaxUint64),
	"byte-min": int8(math.MinInt8), "byte-max": int8(math.MaxInt8),
	"short-min": int16(math.MinInt16), "short-max": int16(math.MaxInt16),
	"int-min": int32(math.MinInt32), "int-minus-1": int32(-1), "int-127": int32(127), "int-128": int32(128), "int-max": int32(math.MaxInt32),
	"long-min": int64(math.MinInt64), "long-minus-1": int64(-1), "long-128": int64(128), "long-max": int64(math.MaxInt64),
	"float-0": float32(0), "float-max": float32(math.MaxFloat32), "float-inf": float32(math.Inf(-1)),
	"double-pi": math.Pi, "double-max": math.MaxFloat64, "double-inf": math.Inf(1),
	"timestamp-now": instant, "timestamp-0": time.UnixMilli(0).UTC(), "timestamp-before-1970": time.UnixMilli(-1).UTC(),
	"timestamp-year-9999": time.UnixMilli(253402300799999).UTC(),
	"uuid":                amqp.UUID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255},
	"binary-255":          bytes.Repeat([]byte{0xff}, 255), "binary-256": bytes.Repeat([]byte{0}, 256),
	"string-empty": "", "string-utf8": "grüße ☃ \U0001F680", "string-255": strings.Repeat("s", 255), "string-256": strings.Repeat("s", 256),
	"symbol": amqp.Symbol("a.symbol"), "symbol-256": amqp.Symbol(strings.Repeat("y", 256)),
}

// compound are values that hold others; they may stand in bodies and annotations.
var compound = map[string]any{
	"list-empty": []any{}, "list": []any{"a", int32(1), nil, []any{true}},
	"map-empty": map[any]any{}, "map": map[any]any{amqp.Symbol("k"): []any{uint8(1)}},
	"array-of-long": []int64{1, -1, math.MaxInt64}, "array-of-symbol": []amqp.Symbol{"x", "y"},
	"array-of-string": []string{"", "é"}, "array-of-bool": []bool{true, false}, "array-of-ulong": []uint64{0, 1, math.MaxUint64},
	"array-of-double": []float64{0, math.Inf(1)}, "array-of-timestamp": []time.Time{instant}, "array-of-uuid": []amqp.UUID{{1}, {2}},
	"array-of-binary": [][]byte{{}, {1}},
}

// TestMessages sends one message of every shape and wants its bytes back.
func TestMessages(t *testing.T) {
	t.Parallel()
	messages := map[string]*amqp.Message{
		"body/data":           text("data"),
		"body/data-many":      {Data: [][]byte{[]byte("one"), {}, []byte("three")}},
		"body/data-empty":     {Data: [][]byte{{}}},
		"body/data-60-KiB":    {Data: [][]byte{bytes.Repeat([]byte("0123456789abcdef"), 60<<6)}},
		"body/sequence":       {Sequence: [][]any{{"a", int64(1), nil}}},
		"body/sequence-many":  {Sequence: [][]any{{"a"}, {}, {uint8(1), false}}},
		"body/sequence-empty": {Sequence: [][]any{{}}},
		"body/value-null":     {Value: amqp.Null{}},
		"properties/all": {Data: [][]byte{{1}}, Properties: &amqp.MessageProperties{
			MessageID: "id", UserID: []byte("user"), To: ptr("to"), Subject: ptr("subject"), ReplyTo: ptr("reply"), CorrelationID: "correlation",
			ContentType: ptr("text/plain"), ContentEncoding: ptr("gzip"), AbsoluteExpiryTime: ptr(time.UnixMilli(253402300799999).UTC()),
			CreationTime: ptr(instant), GroupID: ptr("group"), GroupSequence: ptr(uint32(math.MaxUint32)), ReplyToGroupID: ptr("other"),
		}},
		"properties/none": {Data: [][]byte{{1}}, Properties: &amqp.MessageProperties{}},
		"footer":          {Data: [][]byte{{1}}, Footer: amqp.Annotations{"x-opt-checksum": uint8(7)}},
		"every-section": {
			Header:              &amqp.MessageHeader{Durable: true, Priority: 7, TTL: time.Hour},
			DeliveryAnnotations: amqp.Annotations{"x-opt-hop": "only this far"}, Annotations: amqp.Annotations{"x-opt-kept": "all the way"},
			Properties: &amqp.MessageProperties{MessageID: uint64(1)}, ApplicationProperties: map[string]any{"p": int32(1)},
			Data: [][]byte{[]byte("x")}, Footer: amqp.Annotations{"x-opt-f": true},
		},
		"annotation/ulong-key": {Data: [][]byte{{1}}, Annotations: amqp.Annotations{int64(4711): "reserved"}},
	}
	for name, id := range map[string]any{
		"string": "an id", "ulong": uint64(math.MaxUint64), "ulong-0": uint64(0), "uuid": amqp.UUID{15: 1}, "binary": []byte{0, 1, 255},
	} {
		messages["message-id/"+name] = &amqp.Message{Data: [][]byte{{1}}, Properties: &amqp.MessageProperties{MessageID: id, CorrelationID: id}}
	}
	for name, value := range simple {
		messages["application-property/"+name] = &amqp.Message{Data: [][]byte{{1}}, ApplicationProperties: map[string]any{"p": value}}
		messages["annotation/"+name] = &amqp.Message{Data: [][]byte{{1}}, Annotations: amqp.Annotations{"x-opt-a": value}}
		messages["body/value-"+name] = &amqp.Message{Value: value}
	}
	for name, value := range compound {
		messages["annotation/"+name] = &amqp.Message{Data: [][]byte{{1}}, Annotations: amqp.Annotations{"x-opt-a": value}}
		messages["body/value-"+name] = &amqp.Message{Value: value}
	}

	s, tap := tapped(t)
	to := address(t)
	out, from := sender(t, s, to, nil), receiver(t, s, to, nil)
	done := 0
	for name, m := range messages {
		t.Run(name, func(t *testing.T) {
			send(t, out, m)
			got := accept(t, from)
			sent, err := tap.Sent()
			if err != nil {
				t.Fatal(err)
			}
			arrived, err := tap.Arrived()
			if err != nil {
				t.Fatal(err)
			}
			if done++; len(sent) != done || len(arrived) != done {
				t.Fatalf("%d messages on the wire to the broker and %d back, want %d", len(sent), len(arrived), done)
			}
			if err := wire.Intact(sent[done-1], arrived[done-1]); err != nil {
				t.Error(err)
			}
			if m.Properties != nil && (!equal(got.Properties.MessageID, m.Properties.MessageID) || !equal(got.Properties.CorrelationID, m.Properties.CorrelationID)) {
				t.Errorf("ids: got %T %v and %T %v", got.Properties.MessageID, got.Properties.MessageID, got.Properties.CorrelationID, got.Properties.CorrelationID)
			}
			if value, ok := m.ApplicationProperties["p"]; ok && !equal(got.ApplicationProperties["p"], value) {
				t.Errorf("application property: got %T %v, want %T %v", got.ApplicationProperties["p"], got.ApplicationProperties["p"], value, value)
			}
		})
	}
}

// equal compares what was sent with what go-amqp makes of it: it reads a symbol as a
// string.
func equal(got, want any) bool {
	switch want := want.(type) {
	case time.Time:
		other, ok := got.(time.Time)
		return ok && want.Equal(other)
	case amqp.Symbol:
		return got == string(want)
	}
	return reflect.DeepEqual(got, want)
}

// TestHeader checks the one section that a broker rewrites.
func TestHeader(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	m := text("x")
	m.Header = &amqp.MessageHeader{Durable: true, Priority: 7, TTL: time.Hour, FirstAcquirer: true, DeliveryCount: 3}
	send(t, sender(t, s, to, nil), m)
	got := accept(t, receiver(t, s, to, nil)).Header
	if got == nil {
		t.Fatal("header: none")
	}
	if !got.Durable || got.Priority != 7 {
		t.Errorf("header: durable %v, priority %d; want true and 7", got.Durable, got.Priority)
	}
	if got.TTL <= 0 || got.TTL > time.Hour {
		t.Errorf("header: ttl %v, want what remains of an hour", got.TTL)
	}
	if !got.FirstAcquirer || got.DeliveryCount != 0 {
		t.Errorf("header: first-acquirer %v, delivery-count %d; want true and 0", got.FirstAcquirer, got.DeliveryCount)
	}
}

func TestTenMebibytes(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	body := make([]byte, 10<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(body)
	send(t, sender(t, s, to, nil), amqp.NewMessage(body))
	got := accept(t, receiver(t, s, to, nil))
	if sha256.Sum256(got.GetData()) != sha256.Sum256(body) {
		t.Errorf("body of %d bytes arrived as %d others", len(body), len(got.GetData()))
	}
}

// TestSmallFrames has a client that takes frames of 512 bytes only.
func TestSmallFrames(t *testing.T) {
	t.Parallel()
	conn, m := dial(t, &amqp.ConnOptions{MaxFrameSize: 512})
	s, to := begin(t, conn, m), address(t)
	out, from := sender(t, s, to, nil), receiver(t, s, to, nil)
	for _, size := range []int{0, 1, 400, 430, 440, 450, 460, 470, 480, 490, 500, 511, 512, 513, 1000, 300_000} {
		body := bytes.Repeat([]byte{byte(size)}, size)
		send(t, out, amqp.NewMessage(body))
		if got := accept(t, from).GetData(); !bytes.Equal(got, body) {
			t.Errorf("body of %d bytes arrived as %d", size, len(got))
		}
	}
}

func TestThousandInOrder(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out := sender(t, s, to, nil)
	from := receiver(t, s, to, &amqp.ReceiverOptions{Credit: 100})
	sent := make(chan error, 1)
	go func() {
		var receipts []amqp.SendReceipt
		for i := range 1000 {
			receipt, err := out.SendWithReceipt(t.Context(), text("%d", i), nil)
			if err != nil {
				sent <- err
				return
			}
			receipts = append(receipts, receipt)
		}
		for i, receipt := range receipts {
			state, err := receipt.Wait(t.Context())
			if _, accepted := state.(*amqp.StateAccepted); err != nil || !accepted {
				sent <- fmt.Errorf("receipt %d: %v, %w", i, state, err)
				return
			}
		}
		sent <- nil
	}()
	for i := range 1000 {
		if got := string(accept(t, from).GetData()); got != fmt.Sprint(i) {
			t.Fatalf("message %d: got %q", i, got)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
