package codec_test

import (
	"fmt"

	"github.com/letomq/leto/codec"
)

// A transfer with a message, written into a frame and read out of it.
func Example() {
	transfer := codec.Transfer{
		DeliveryID:    codec.Some[uint32](7),
		DeliveryTag:   []byte("tag"),
		MessageFormat: codec.Some[uint32](0),
		Settled:       codec.Some(false),
	}
	frame := codec.BeginFrame(nil, codec.FrameAMQP, 1)
	frame = transfer.Append(frame)
	frame = codec.AppendData(frame, []byte("hello"))
	codec.EndFrame(frame, 0)

	header, err := codec.ReadFrameHeader(frame)
	if err != nil {
		fmt.Println(err)
		return
	}
	code, fields, err := codec.ReadDescriptor(frame[header.BodyOffset():header.Size])
	if err != nil {
		fmt.Println(err)
		return
	}
	var received codec.Transfer
	payload, err := received.Decode(fields)
	if err != nil {
		fmt.Println(err)
		return
	}
	sections, err := codec.Split(payload)
	fmt.Println(header.Channel, code, received.DeliveryID.Value, string(received.DeliveryTag), err)
	fmt.Printf("%x\n", sections.Body)
	// Output:
	// 1 amqp:transfer:list 7 tag <nil>
	// 005375a00568656c6c6f
}
