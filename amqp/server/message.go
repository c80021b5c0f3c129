package server

import (
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// message makes the engine's message of an encoded one. Header and delivery
// annotations are for this hop only and left out; the rest stays as it is [3.2]. With it comes its id, if it has one.
func (p *incoming) message(now time.Time, ev *amqp.Event, encoded []byte, owned bool) (*engine.Message, engine.DuplicateID, *amqp.Error) {
	var id engine.DuplicateID
	s, err := codec.Split(encoded)
	if err != nil {
		return nil, id, amqp.Errorf(amqp.ConditionDecodeError, "message: %v", err)
	}
	m := &engine.Message{Format: ev.MessageFormat, Priority: 4, Arrived: now.UnixMilli(), Address: p.producer.Address()}
	if p.anonymous {
		to, ok := addressOf(s.Properties)
		if !ok {
			return nil, id, amqp.Errorf(amqp.ConditionPreconditionFailed, "properties.to is missing on a link without a target address")
		}
		m.Address = to
	}
	if s.Header != nil {
		var h codec.Header
		if err := h.Decode(s.Header); err != nil {
			return nil, id, amqp.Errorf(amqp.ConditionDecodeError, "message header: %v", err)
		}
		m.HeaderDurable, m.DurableValue = h.Durable.Set, h.Durable.Value
		m.HeaderPriority = h.Priority.Set
		if h.Priority.Set {
			m.Priority = min(h.Priority.Value, 9)
		}
		m.HeaderTTL, m.TTL = h.TTL.Set, h.TTL.Value
	}
	switch {
	case m.HeaderDurable:
		m.Durable = m.DurableValue
	case p.anonymous:
		m.Durable = p.conn.server.broker.Settings(m.Address).DefaultDurable
	default:
		m.Durable = p.producer.Settings().DefaultDurable // it may change while the link is there
	}
	var absolute codec.Timestamp
	if s.Properties != nil {
		value, err := codec.PropertiesField(s.Properties, codec.PropAbsoluteExpiryTime)
		if err != nil {
			return nil, id, amqp.Errorf(amqp.ConditionDecodeError, "message properties: %v", err)
		}
		if value != nil {
			absolute, _ = codec.ReadTimestamp(value)
		}
	}
	m.Expiry = queue.ExpiryAt(m.Arrived, m.TTL, int64(absolute))
	var refusal *amqp.Error
	if m.Due, refusal = dueOf(s.MessageAnnotations, m.Arrived); refusal != nil {
		return nil, id, refusal
	}
	if s.ApplicationProperties != nil || s.MessageAnnotations != nil {
		if id, refusal = p.duplicateID(&s, m); refusal != nil {
			return nil, id, refusal
		}
	}
	m.Payload = s.Stored
	if !owned || cap(encoded)-len(s.Stored) > len(s.Stored)/4 {
		m.Payload = make([]byte, len(s.Stored))
		copy(m.Payload, s.Stored)
	}
	return m, id, nil
}

// addressOf returns properties.to, when it is a string.
func addressOf(properties []byte) (string, bool) {
	if properties == nil {
		return "", false
	}
	value, err := codec.PropertiesField(properties, codec.PropTo)
	if err != nil || value == nil {
		return "", false
	}
	to, ok := codec.ReadString(value)
	return to, ok && to != ""
}

// headerOf returns the header section that goes with a delivery: what the
// sender set, with the time to live that is left, and what this broker knows.
func headerOf(now time.Time, d *engine.Delivery) codec.Header {
	m := d.Message
	h := codec.Header{DeliveryCount: d.Count}
	if m.HeaderDurable {
		h.Durable = codec.Some(m.DurableValue)
	}
	if m.HeaderPriority {
		h.Priority = codec.Some(m.Priority)
	}
	if m.HeaderTTL {
		left := int64(m.TTL)
		if left > 0 {
			left = max(left-(now.UnixMilli()-m.Arrived), 1)
		}
		h.TTL = codec.Some(uint32(left))
	}
	if d.FirstAcquirer {
		h.FirstAcquirer = codec.Some(true)
	}
	return h
}

// annotate returns the message-annotations section with what the broker adds
// to it, and the rest of the message.
func annotate(payload []byte, add []engine.Annotation) (head, rest []byte, err error) {
	s, err := codec.Split(payload)
	if err != nil {
		return nil, nil, err
	}
	more := make(codec.Map, 0, len(add))
	for _, a := range add {
		value := a.Value
		switch v := value.(type) {
		case queue.Millis:
			value = codec.Timestamp(v)
		case queue.Encoded:
			value = codec.Raw(v)
		}
		more = append(more, codec.Pair{Key: codec.Symbol(a.Key), Value: value})
	}
	head, err = codec.MergeAnnotations(nil, s.MessageAnnotations, more)
	return head, payload[len(s.MessageAnnotations):], err
}
