package codec

import "testing"

// What happens for every message must not allocate.
func TestNoAllocations(t *testing.T) {
	txn := Transfer{DeliveryID: Some[uint32](1), DeliveryTag: []byte{1}, State: DeliveryState{Transactional: true, TxnID: []byte{1, 2}, Outcome: Outcome{Kind: StateAccepted}}}
	modified := Disposition{Role: RoleReceiver, Settled: true, State: DeliveryState{Outcome: Outcome{Kind: StateModified, DeliveryFailed: true, Annotations: []byte{formatMap8, 1, 0}}}}
	released := Disposition{Role: RoleReceiver, Settled: true, State: DeliveryState{Outcome: Outcome{Kind: StateReleased}}}
	received := Disposition{State: DeliveryState{Outcome: Outcome{Kind: StateReceived, SectionOffset: 7}}}
	buf := make([]byte, 0, 1024)
	whole := message()
	sections, err := Split(whole)
	if err != nil {
		t.Fatal(err)
	}
	symbolic := append([]byte("\x00\xa3\x12amqp:transfer:list"), hot.transfer.Append(nil)[3:]...)
	merge := Map{{Symbol("x-opt-delivery-time"), Timestamp(1)}}

	decodes := map[string]struct {
		octets []byte
		decode func([]byte) ([]byte, error)
	}{
		"transfer":                {hot.transfer.Append(nil), new(Transfer).Decode},
		"transfer, continued":     {hot.transferOnward.Append(nil), new(Transfer).Decode},
		"transfer, transactional": {txn.Append(nil), new(Transfer).Decode},
		"transfer, symbolic":      {symbolic, new(Transfer).Decode},
		"flow":                    {hot.flow.Append(nil), new(Flow).Decode},
		"disposition, accepted":   {hot.disposition.Append(nil), new(Disposition).Decode},
		"disposition, modified":   {modified.Append(nil), new(Disposition).Decode},
		"disposition, released":   {released.Append(nil), new(Disposition).Decode},
		"disposition, received":   {received.Append(nil), new(Disposition).Decode},
	}
	for name, d := range decodes {
		if n := testing.AllocsPerRun(100, func() {
			_, fields, err := ReadDescriptor(d.octets)
			if err == nil {
				_, err = d.decode(fields)
			}
			if err != nil {
				t.Fatal(name, err)
			}
		}); n != 0 {
			t.Errorf("decoding %s: %v allocations", name, n)
		}
	}
	appends := map[string]func([]byte) []byte{
		"transfer":                hot.transfer.Append,
		"transfer, transactional": txn.Append,
		"flow":                    hot.flow.Append,
		"disposition, accepted":   hot.disposition.Append,
		"disposition, modified":   modified.Append,
		"disposition, released":   released.Append,
		"header":                  hot.header.Append,
		"frame": func(b []byte) []byte {
			b = BeginFrame(b, FrameAMQP, 1)
			EndFrame(b, 0)
			return b
		},
	}
	for name, write := range appends {
		if n := testing.AllocsPerRun(100, func() { buf = write(buf[:0]) }); n != 0 {
			t.Errorf("appending %s: %v allocations", name, n)
		}
	}
	var header Header
	others := map[string]func() error{
		"splitting a message": func() error { _, err := Split(whole); return err },
		"decoding a header":   func() error { return header.Decode(sections.Header) },
		"finding a property":  func() error { _, err := PropertiesField(sections.Properties, PropGroupID); return err },
		"reading a time": func() error {
			b, err := PropertiesField(sections.Properties, PropAbsoluteExpiryTime)
			if _, ok := ReadTimestamp(b); !ok {
				t.Fatal("no timestamp")
			}
			return err
		},
		"skipping":   func() error { _, err := Skip(whole); return err },
		"validating": func() error { _, err := Validate(sections.ApplicationProperties); return err },
		"frame header": func() error {
			_, err := ReadFrameHeader([]byte{0, 0, 0, 8, 2, 0, 0, 0})
			return err
		},
		"merging annotations": func() (err error) {
			buf, err = MergeAnnotations(buf[:0], sections.MessageAnnotations, merge)
			return err
		},
	}
	for name, f := range others {
		if n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(name, err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
