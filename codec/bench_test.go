package codec

import "testing"

// hot holds what crosses the wire for every message.
var hot = struct {
	transfer, transferOnward Transfer
	flow                     Flow
	disposition              Disposition
	header                   Header
}{
	transfer: Transfer{
		Handle: 3, DeliveryID: Some[uint32](70000), DeliveryTag: []byte{0, 1, 2, 3, 4, 5, 6, 7},
		MessageFormat: Some[uint32](0), Settled: Some(false),
	},
	transferOnward: Transfer{Handle: 3, More: true},
	flow: Flow{
		NextIncomingID: Some[uint32](70000), IncomingWindow: 2048, NextOutgoingID: 70001, OutgoingWindow: 2048,
		Handle: Some[uint32](3), DeliveryCount: Some[uint32](70000), LinkCredit: Some[uint32](1000), Available: Some[uint32](0),
	},
	disposition: Disposition{
		Role: RoleReceiver, First: 70000, Last: Some[uint32](70063), Settled: true,
		State: DeliveryState{Outcome: Outcome{Kind: StateAccepted}},
	},
	header: Header{Durable: Some(true), Priority: Some[uint8](4), TTL: Some[uint32](60000)},
}

// message is one as clients send it, with every section but the footer.
func message() []byte {
	header := hot.header
	b := header.Append(nil)
	b, _ = AppendMessageAnnotations(b, Map{{Symbol("x-opt-jms-msg-type"), int8(5)}, {Symbol("x-opt-jms-dest"), int8(0)}})
	p := Properties{
		MessageID: "ID:5b1c8e0a-8d2a-4f0b:1:1:1-1", To: Some("orders.europe"), ReplyTo: Some("answers"),
		ContentType: Some[Symbol]("text/plain"), CreationTime: Some[Timestamp](1730000000000),
		AbsoluteExpiryTime: Some[Timestamp](1730000060000), GroupID: Some("g"), GroupSequence: Some[uint32](7),
	}
	b = p.Append(b)
	b, _ = AppendApplicationProperties(b, Map{{"region", "eu"}, {"amount", int64(12345)}, {"paid", true}})
	return AppendData(b, make([]byte, 256))
}

func decodeBench(b *testing.B, encoded []byte, decode func([]byte) ([]byte, error)) {
	b.ReportAllocs()
	for b.Loop() {
		_, fields, err := ReadDescriptor(encoded)
		if err != nil {
			b.Fatal(err)
		}
		if _, err = decode(fields); err != nil {
			b.Fatal(err)
		}
	}
}

func appendBench(b *testing.B, write func([]byte) []byte) {
	b.ReportAllocs()
	buf := make([]byte, 0, 512)
	for b.Loop() {
		buf = write(buf[:0])
	}
}

func BenchmarkTransferDecode(b *testing.B) {
	decodeBench(b, hot.transfer.Append(nil), new(Transfer).Decode)
}

func BenchmarkTransferDecodeOnward(b *testing.B) {
	decodeBench(b, hot.transferOnward.Append(nil), new(Transfer).Decode)
}
func BenchmarkTransferAppend(b *testing.B)    { appendBench(b, hot.transfer.Append) }
func BenchmarkFlowDecode(b *testing.B)        { decodeBench(b, hot.flow.Append(nil), new(Flow).Decode) }
func BenchmarkFlowAppend(b *testing.B)        { appendBench(b, hot.flow.Append) }
func BenchmarkDispositionAppend(b *testing.B) { appendBench(b, hot.disposition.Append) }
func BenchmarkDispositionDecode(b *testing.B) {
	decodeBench(b, hot.disposition.Append(nil), new(Disposition).Decode)
}
func BenchmarkHeaderAppend(b *testing.B) { appendBench(b, hot.header.Append) }
func BenchmarkHeaderDecode(b *testing.B) {
	b.ReportAllocs()
	encoded := hot.header.Append(nil)
	var h Header
	for b.Loop() {
		if err := h.Decode(encoded); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFrameHeader(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 16)
	for b.Loop() {
		buf = BeginFrame(buf[:0], FrameAMQP, 1)
		EndFrame(buf, 0)
		if _, err := ReadFrameHeader(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	b.ReportAllocs()
	m := message()
	for b.Loop() {
		if _, err := Split(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPropertiesField(b *testing.B) {
	b.ReportAllocs()
	s, _ := Split(message())
	for b.Loop() {
		if _, err := PropertiesField(s.Properties, PropAbsoluteExpiryTime); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMergeAnnotations(b *testing.B) {
	b.ReportAllocs()
	s, _ := Split(message())
	buf := make([]byte, 0, 512)
	add := Map{{Symbol("x-opt-delivery-time"), Timestamp(1730000000000)}}
	for b.Loop() {
		var err error
		if buf, err = MergeAnnotations(buf[:0], s.MessageAnnotations, add); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	b.ReportAllocs()
	s, _ := Split(message())
	for b.Loop() {
		if _, err := Validate(s.ApplicationProperties); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadValue(b *testing.B) {
	b.ReportAllocs()
	s, _ := Split(message())
	for b.Loop() {
		if _, _, err := ReadValue(s.ApplicationProperties); err != nil {
			b.Fatal(err)
		}
	}
}
