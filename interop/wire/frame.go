package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The protocol headers a client may begin with.
var (
	HeaderAMQP = []byte("AMQP\x00\x01\x00\x00")
	HeaderSASL = []byte("AMQP\x03\x01\x00\x00")
)

// Codes of performatives, outcomes and sections.
const (
	CodeOpen        = 0x10
	CodeBegin       = 0x11
	CodeAttach      = 0x12
	CodeFlow        = 0x13
	CodeTransfer    = 0x14
	CodeDisposition = 0x15
	CodeDetach      = 0x16
	CodeEnd         = 0x17
	CodeClose       = 0x18
	CodeError       = 0x1d
	CodeAccepted    = 0x24
	CodeRejected    = 0x25
	CodeReleased    = 0x26
	CodeModified    = 0x27

	CodeCoordinator   = 0x30
	CodeDeclare       = 0x31
	CodeDischarge     = 0x32
	CodeDeclared      = 0x33
	CodeTransactional = 0x34

	CodeMechanisms = 0x40
	CodeInit       = 0x41
	CodeOutcome    = 0x44
)

// maxFrame bounds what ReadFrame takes: more than any frame a peer of these tests
// has been allowed to send.
const maxFrame = 1 << 20

// Frame is one frame that was read. Its fields are encoded values.
type Frame struct {
	Type    byte // 0 AMQP, 1 SASL
	Channel uint16
	Code    uint64 // of the performative; 0 for an empty frame
	Fields  [][]byte
	Payload []byte // what follows the performative
}

// Field is field i of the performative, nil when it is absent or null.
func (f Frame) Field(i int) []byte {
	if i >= len(f.Fields) || f.Fields[i][0] == 0x40 {
		return nil
	}
	return f.Fields[i]
}

// Number is field i as an unsigned integer or boolean, 0 when it is neither.
func (f Frame) Number(i int) uint64 {
	n, _ := Number(f.Field(i))
	return n
}

// Condition is the condition and description of the error in field i, "" when there is none.
func (f Frame) Condition(i int) string {
	condition, description := Failure(f.Field(i))
	if description != "" {
		condition += ": " + description
	}
	return condition
}

// Failure reads an encoded error; both are empty when it is none.
func Failure(v []byte) (condition, description string) {
	_, list, err := Code(v)
	if err != nil {
		return "", ""
	}
	items, err := Items(list)
	if err != nil || len(items) == 0 {
		return "", ""
	}
	condition, _ = Text(items[0])
	if len(items) > 1 {
		description, _ = Text(items[1])
	}
	return condition, description
}

// ReadFrame reads one frame.
func ReadFrame(r io.Reader) (Frame, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	size, offset := binary.BigEndian.Uint32(head[:]), int(head[4])*4
	if size < 8 || size > maxFrame || offset < 8 || offset > int(size) {
		return Frame{}, fmt.Errorf("wire: frame header % x", head)
	}
	body := make([]byte, size-8)
	if _, err := io.ReadFull(r, body); err != nil {
		return Frame{}, err
	}
	frame := Frame{Type: head[5], Channel: binary.BigEndian.Uint16(head[6:])}
	if body = body[offset-8:]; len(body) == 0 {
		return frame, nil
	}
	performative, payload, err := Next(body)
	if err != nil {
		return Frame{}, err
	}
	var fields []byte
	if frame.Code, fields, err = Code(performative); err != nil {
		return Frame{}, err
	}
	if frame.Fields, err = Items(fields); err != nil {
		return Frame{}, err
	}
	frame.Payload = payload
	return frame, nil
}

// NewFrame is the bytes of a frame on the channel.
func NewFrame(kind byte, channel uint16, performative, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(performative)+len(payload)))
	b = append(b, 2, kind)
	b = binary.BigEndian.AppendUint16(b, channel)
	return append(append(b, performative...), payload...)
}
