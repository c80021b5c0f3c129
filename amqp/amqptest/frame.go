package amqptest

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/letomq/leto/codec"
)

// Performative is what every frame's body starts with.
type Performative interface {
	Append([]byte) []byte
	Decode([]byte) ([]byte, error)
}

// performatives by the names they have in scripts.
var performatives = map[string]struct {
	code codec.Code
	make func() Performative
}{
	"open":            {codec.CodeOpen, func() Performative { return new(codec.Open) }},
	"begin":           {codec.CodeBegin, func() Performative { return new(codec.Begin) }},
	"attach":          {codec.CodeAttach, func() Performative { return new(codec.Attach) }},
	"flow":            {codec.CodeFlow, func() Performative { return new(codec.Flow) }},
	"transfer":        {codec.CodeTransfer, func() Performative { return new(codec.Transfer) }},
	"disposition":     {codec.CodeDisposition, func() Performative { return new(codec.Disposition) }},
	"detach":          {codec.CodeDetach, func() Performative { return new(codec.Detach) }},
	"end":             {codec.CodeEnd, func() Performative { return new(codec.End) }},
	"close":           {codec.CodeClose, func() Performative { return new(codec.Close) }},
	"sasl-mechanisms": {codec.CodeSASLMechanisms, func() Performative { return new(codec.SASLMechanisms) }},
	"sasl-init":       {codec.CodeSASLInit, func() Performative { return new(codec.SASLInit) }},
	"sasl-challenge":  {codec.CodeSASLChallenge, func() Performative { return new(codec.SASLChallenge) }},
	"sasl-response":   {codec.CodeSASLResponse, func() Performative { return new(codec.SASLResponse) }},
	"sasl-outcome":    {codec.CodeSASLOutcome, func() Performative { return new(codec.SASLOutcome) }},
}

var headers = map[string]codec.ProtocolHeader{
	"amqp": codec.HeaderAMQP, "sasl": codec.HeaderSASL, "tls": codec.HeaderTLS,
}

// Frame is one thing a machine wrote: a frame, an empty one, or a protocol header.
type Frame struct {
	Name    string // of the performative; "empty"; "header"
	Channel uint16
	Body    Performative // nil for empty and header
	Payload []byte
	Header  string // amqp, sasl, tls
	Size    int
}

// ReadFrame reads the frame or protocol header at the front of b, which must be whole.
func ReadFrame(b []byte) (f Frame, rest []byte, err error) {
	if len(b) < 8 {
		return f, nil, fmt.Errorf("%d octets behind the last frame", len(b))
	}
	for name, h := range headers {
		if string(b[:8]) == string(h[:]) {
			return Frame{Name: "header", Header: name, Size: 8}, b[8:], nil
		}
	}
	h, err := codec.ReadFrameHeader(b)
	if err != nil {
		return f, nil, err
	}
	if int(h.Size) > len(b) {
		return f, nil, fmt.Errorf("frame of %d octets, %d are there", h.Size, len(b))
	}
	f = Frame{Channel: h.Channel, Size: int(h.Size)}
	body, rest := b[h.BodyOffset():h.Size], b[h.Size:]
	if len(body) == 0 {
		f.Name = "empty"
		return f, rest, nil
	}
	code, fields, err := codec.ReadDescriptor(body)
	if err != nil {
		return f, nil, err
	}
	for name, p := range performatives {
		if p.code == code {
			f.Name, f.Body = name, p.make()
		}
	}
	if f.Body == nil || strings.HasPrefix(f.Name, "sasl-") != (h.Type == codec.FrameSASL) {
		return f, nil, fmt.Errorf("performative 0x%02x in a frame of type %d", uint64(code), h.Type)
	}
	if f.Payload, err = f.Body.Decode(fields); err == nil && len(f.Payload) > 0 && f.Name != "transfer" {
		err = fmt.Errorf("%d octets behind %s", len(f.Payload), f.Name)
	}
	return f, rest, err
}

// String writes the frame as a script would.
func (f Frame) String() string {
	switch {
	case f.Name == "header":
		return "header " + f.Header
	case f.Body == nil:
		return fmt.Sprintf("%s channel=%d", f.Name, f.Channel)
	}
	s := f.Name + " "
	if f.Channel != 0 {
		s += fmt.Sprintf("channel=%d ", f.Channel)
	}
	s += showFields(f.Body)
	if len(f.Payload) > 0 {
		s += " payload=" + showOctets(f.Payload)
	}
	return strings.TrimSpace(s)
}

// match compares the fields a script names.
func (f Frame) match(fields []Field) error {
	for _, w := range fields {
		ok, got, err := false, "", error(nil)
		switch w.Name {
		case "channel":
			got = strconv.Itoa(int(f.Channel))
			ok = got == w.Text
		case "size":
			got = strconv.Itoa(f.Size)
			ok = got == w.Text
		case "payload":
			var want []byte
			want, err = octets(w.Text)
			ok, got = string(want) == string(f.Payload), showOctets(f.Payload)
		case "payload-size":
			got = strconv.Itoa(len(f.Payload))
			ok = got == w.Text
		default:
			if f.Body == nil {
				return fmt.Errorf("field %s of %s", w.Name, f.Name)
			}
			ok, got, err = matches(f.Body, w.Name, w.Text)
		}
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s is %s, not %s", w.Name, got, w.Text)
		}
	}
	return nil
}

// AppendFrame writes a frame whose body is p and the payload behind it.
func AppendFrame(dst []byte, typ byte, channel uint16, p Performative, payload []byte) []byte {
	start := len(dst)
	dst = codec.BeginFrame(dst, typ, channel)
	dst = p.Append(dst)
	dst = append(dst, payload...)
	codec.EndFrame(dst, start)
	return dst
}

// appendRaw writes a frame from its pieces, true or not.
func appendRaw(dst []byte, fields []Field) ([]byte, error) {
	var ext, body []byte
	size, doff, typ, channel := uint64(0), uint64(0), uint64(0), uint64(0)
	for _, f := range fields {
		var err error
		switch f.Name {
		case "ext":
			ext, err = octets(f.Text)
		case "body":
			body, err = octets(f.Text)
		case "size":
			size, err = strconv.ParseUint(f.Text, 0, 32)
		case "doff":
			doff, err = strconv.ParseUint(f.Text, 0, 8)
		case "type":
			typ, err = strconv.ParseUint(f.Text, 0, 8)
		case "channel":
			channel, err = strconv.ParseUint(f.Text, 0, 16)
		default:
			err = fmt.Errorf("no field %q in a frame", f.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	has := func(name string) bool {
		for _, f := range fields {
			if f.Name == name {
				return true
			}
		}
		return false
	}
	if !has("size") {
		size = uint64(8 + len(ext) + len(body))
	}
	if !has("doff") {
		doff = uint64(2 + len(ext)/4)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, byte(doff), byte(typ), byte(channel>>8), byte(channel))
	dst = append(dst, ext...)
	return append(dst, body...), nil
}
