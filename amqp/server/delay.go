package server

import (
	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// The annotations by which a message is sent for later, and by which a modified outcome says when it is to be tried
// again.
const (
	deliveryDelay = "x-opt-delivery-delay" // milliseconds from when the broker has it
	deliveryTime  = "x-opt-delivery-time"  // unix milliseconds; of both it counts
)

// dueOf returns when a message may be given to somebody, in unix milliseconds, 0 for at once, by its
// message-annotations section.
func dueOf(section []byte, now int64) (int64, *amqp.Error) {
	at, timed, refusal := millisOf(section, deliveryTime)
	if refusal == nil && !timed {
		var after int64
		after, _, refusal = millisOf(section, deliveryDelay)
		at = now + min(max(after, 0), queue.MaxDelay)
	}
	if at = min(at, queue.MaxDelay); refusal != nil || at <= now {
		return 0, refusal
	}
	return at, nil
}

// millisOf returns what an annotation says, if it is there and no null.
func millisOf(section []byte, key string) (ms int64, ok bool, _ *amqp.Error) {
	value, err := codec.MapEntry(section, key)
	switch {
	case err != nil:
		return 0, false, amqp.Errorf(amqp.ConditionDecodeError, "%s: %v", key, err)
	case value == nil:
		return 0, false, nil
	}
	if ms, ok = codec.ReadMillis(value); !ok {
		return 0, false, amqp.Errorf(amqp.ConditionInvalidField, "%s is neither a number of milliseconds nor a timestamp", key)
	}
	return ms, true, nil
}

// delayed takes what a modified outcome says of the next attempt out of its annotations. What isn't a number says nothing.
func delayed(o *engine.Outcome) {
	rest := o.Annotations[:0:0]
	for _, a := range o.Annotations {
		encoded, _ := a.Value.(queue.Encoded)
		ms, ok := codec.ReadMillis(encoded)
		switch {
		case a.Key == deliveryDelay && ok:
			o.HasDelay, o.Delay = true, ms
		case a.Key == deliveryTime && ok:
			o.DueAt = max(ms, 1) // in the past: at once
		default:
			rest = append(rest, a)
		}
	}
	if o.HasDelay || o.DueAt != 0 {
		o.Annotations = rest
	}
}
