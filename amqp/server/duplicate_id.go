package server

import (
	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// Where a producer puts the id by which a message that is sent again is known: the first is Artemis's.
const (
	duplicateProperty   = "_AMQ_DUPL_ID" // of the application-properties
	duplicateAnnotation = "x-opt-dup-id" // of the message-annotations
)

// maxDuplicateID bounds an id, in encoded bytes.
const maxDuplicateID = 1024

// duplicateID returns what stands for a message's id, the zero one for a message without, or to an address that
// remembers none. Equal values of different types are different ids.
func (p *incoming) duplicateID(s *codec.Sections, m *engine.Message) (none engine.DuplicateID, refusal *amqp.Error) {
	from := duplicateProperty
	value, err := codec.MapEntry(s.ApplicationProperties, from)
	if value == nil && err == nil {
		from = duplicateAnnotation
		value, err = codec.MapEntry(s.MessageAnnotations, from)
	}
	switch {
	case err != nil:
		return none, amqp.Errorf(amqp.ConditionDecodeError, "%s: %v", from, err)
	case value == nil || !p.remembers(m.Address):
		return none, nil
	case len(value) > maxDuplicateID:
		return none, amqp.Errorf(amqp.ConditionInvalidField, "%s is an id of %d bytes, and %d are the most", from, len(value), maxDuplicateID)
	}
	var few [128]byte
	id, err := codec.AppendPlain(few[:0], value)
	switch {
	case err != nil:
		return none, amqp.Errorf(amqp.ConditionInvalidField, "%s is no primitive value: %v", from, err)
	case len(id) == 5 && id[0]&0xf0 == 0xb0: // a binary, string or symbol of no octets [1.2]
		return none, amqp.Errorf(amqp.ConditionInvalidField, "%s is empty, and no id", from)
	}
	return engine.NewDuplicateID(id), nil
}

// remembers says whether the address of a message asks for ids.
func (p *incoming) remembers(address string) bool {
	if p.anonymous {
		return p.conn.server.broker.Settings(address).IDCacheSize > 0
	}
	return p.producer.Settings().IDCacheSize > 0
}
