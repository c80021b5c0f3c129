package config

import "github.com/letomq/leto/engine"

// AddressSettings are what queues and addresses do whose name fits Match. A nil field isn't told:
// it is inherited, key by key, from the next less specific match. Names and meanings are Artemis's.
type AddressSettings struct {
	Match string `key:"match"` // words split by "."; * is one word, # zero or more

	DeadLetterAddress *string `key:"dead-letter-address"` // empty: what can't be delivered is dropped
	ExpiryAddress     *string `key:"expiry-address"`      // empty: what expires is dropped

	MaxDeliveryAttempts *int          `key:"max-delivery-attempts"`                 // -1: endless
	RedeliveryDelay     *Delay        `key:"redelivery-delay"`                      // after the first failed attempt
	RedeliveryGrowth    *float64      `key:"redelivery-delay-multiplier"`           // of the delay, with each further one
	RedeliverySpread    *float64      `key:"redelivery-collision-avoidance-factor"` // part of the delay by which it is more or less, 0..1
	MaxRedeliveryDelay  *Delay        `key:"max-redelivery-delay"`                  // 0: ten times redelivery-delay
	RejectPolicy        *RejectPolicy `key:"reject-policy"`
	CountOnLoss         *bool         `key:"count-on-loss"` // a lost connection counts as a failed attempt

	DefaultAddressRouting *Routing `key:"default-address-routing-type"`
	DefaultQueueRouting   *Routing `key:"default-queue-routing-type"`
	AutoCreateAddresses   *bool    `key:"auto-create-addresses"`
	AutoCreateQueues      *bool    `key:"auto-create-queues"`
	AutoDeleteQueues      *bool    `key:"auto-delete-queues"`

	DefaultDurable *bool `key:"default-durable"` // of a message that doesn't say
	IDCacheSize    *int  `key:"id-cache-size"`   // ids of messages that are remembered; 0: none

	AutoCreateDeadLetterResources *bool   `key:"auto-create-dead-letter-resources"` // a queue at the dead-letter address for each address
	DeadLetterQueuePrefix         *string `key:"dead-letter-queue-prefix"`
	DeadLetterQueueSuffix         *string `key:"dead-letter-queue-suffix"`
	AutoCreateExpiryResources     *bool   `key:"auto-create-expiry-resources"`
	ExpiryQueuePrefix             *string `key:"expiry-queue-prefix"`
	ExpiryQueueSuffix             *string `key:"expiry-queue-suffix"`

	ExpiryDelay    *Delay `key:"expiry-delay"` // of a message that doesn't say when it expires; -1: it doesn't
	MinExpiryDelay *Delay `key:"min-expiry-delay"`
	MaxExpiryDelay *Delay `key:"max-expiry-delay"`
	NoExpiry       *bool  `key:"no-expiry"`
}

func (s AddressSettings) check(key string, bad func(key, format string, args ...any)) {
	if s.Match == "" {
		bad(key, "needs a match, such as \"orders.#\"")
	}
	for i, to := range []*string{s.DeadLetterAddress, s.ExpiryAddress} {
		if to != nil && *to != "" && !engine.ValidAddress(*to) { // what goes there would be lost
			bad(key+[]string{".dead-letter-address", ".expiry-address"}[i], "%.80q is neither ADDRESS nor ADDRESS::QUEUE: a name has 1 to 1024 bytes of UTF-8 without control characters", *to)
		}
	}
	if n := s.MaxDeliveryAttempts; n != nil && (*n < -1 || *n == 0) {
		bad(key+".max-delivery-attempts", "%d is neither -1 (endless) nor 1 or more", *n)
	}
	if n := s.IDCacheSize; n != nil && (*n < 0 || *n > maxIDCacheSize) {
		bad(key+".id-cache-size", "%d isn't 0 (off) to %d", *n, maxIDCacheSize)
	}
	if f := s.RedeliveryGrowth; f != nil && *f < 0 {
		bad(key+".redelivery-delay-multiplier", "%g is negative", *f)
	}
	if f := s.RedeliverySpread; f != nil && (*f < 0 || *f > 1) {
		bad(key+".redelivery-collision-avoidance-factor", "%g is not from 0 to 1", *f)
	}
}

// maxIDCacheSize keeps the ids of one address within what can be brought from the store at once: 16 MiB.
const maxIDCacheSize = 1_000_000

// RejectPolicy is what a rejected outcome does to a message: dead-letter at once, or redeliver as
// after a failed attempt.
type RejectPolicy string

const (
	RejectDeadLetter RejectPolicy = "dead-letter"
	RejectRedeliver  RejectPolicy = "redeliver"
)

func (RejectPolicy) words() []string {
	return []string{string(RejectDeadLetter), string(RejectRedeliver)}
}
