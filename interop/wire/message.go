package wire

import (
	"bytes"
	"fmt"
)

// Codes of the sections of a message.
const (
	SectionHeader                = 0x70
	SectionDeliveryAnnotations   = 0x71
	SectionMessageAnnotations    = 0x72
	SectionProperties            = 0x73
	SectionApplicationProperties = 0x74
	SectionData                  = 0x75
	SectionSequence              = 0x76
	SectionValue                 = 0x77
	SectionFooter                = 0x78
)

// Message is a message taken apart. Every section keeps its descriptor and shares
// the memory of the message.
type Message struct {
	Header              []byte
	DeliveryAnnotations []byte
	MessageAnnotations  []byte
	Bare                []byte // properties, application-properties and body
	Footer              []byte
}

// symbolic are the other names of the sections.
var symbolic = map[string]uint64{
	"amqp:header:list":                SectionHeader,
	"amqp:delivery-annotations:map":   SectionDeliveryAnnotations,
	"amqp:message-annotations:map":    SectionMessageAnnotations,
	"amqp:properties:list":            SectionProperties,
	"amqp:application-properties:map": SectionApplicationProperties,
	"amqp:data:binary":                SectionData,
	"amqp:amqp-sequence:list":         SectionSequence,
	"amqp:amqp-value:*":               SectionValue,
	"amqp:footer:map":                 SectionFooter,
}

// Split takes an encoded message apart.
func Split(message []byte) (Message, error) {
	var m Message
	start := -1
	for rest := message; len(rest) > 0; {
		section, after, err := Next(rest)
		if err != nil {
			return Message{}, err
		}
		code, err := sectionCode(section)
		if err != nil {
			return Message{}, err
		}
		at := len(message) - len(rest)
		switch code {
		case SectionHeader:
			m.Header = section
		case SectionDeliveryAnnotations:
			m.DeliveryAnnotations = section
		case SectionMessageAnnotations:
			m.MessageAnnotations = section
		case SectionFooter:
			m.Footer = section
		default:
			if start < 0 {
				start = at
			}
			m.Bare = message[start : at+len(section)]
		}
		rest = after
	}
	return m, nil
}

func sectionCode(section []byte) (uint64, error) {
	code, _, err := Code(section)
	if err != nil {
		descriptor, _, cut := Next(section[1:])
		if cut != nil {
			return 0, err
		}
		name, _ := Text(descriptor)
		code = symbolic[name]
	}
	if code < SectionHeader || code > SectionFooter {
		return 0, fmt.Errorf("wire: no such section % x", section[:min(len(section), 12)])
	}
	return code, nil
}

// Intact compares what was sent with what arrived by the rules for an intermediary
// [3.2]: the bare message, its footer and its message annotations as they were, the
// delivery annotations gone.
func Intact(sent, arrived []byte) error {
	s, err := Split(sent)
	if err != nil {
		return fmt.Errorf("sent message: %w", err)
	}
	a, err := Split(arrived)
	if err != nil {
		return fmt.Errorf("arrived message: %w", err)
	}
	for _, part := range []struct {
		name          string
		sent, arrived []byte
	}{
		{"bare message", s.Bare, a.Bare},
		{"footer", s.Footer, a.Footer},
		{"message annotations", s.MessageAnnotations, a.MessageAnnotations},
		{"delivery annotations", nil, a.DeliveryAnnotations},
	} {
		if !bytes.Equal(part.sent, part.arrived) {
			return fmt.Errorf("%s differ:\n   sent %s\narrived %s", part.name, brief(part.sent), brief(part.arrived))
		}
	}
	return nil
}

func brief(b []byte) string {
	if len(b) <= 512 {
		return fmt.Sprintf("(%d bytes) % x", len(b), b)
	}
	return fmt.Sprintf("(%d bytes) % x …", len(b), b[:512])
}
