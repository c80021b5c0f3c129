package config

import "fmt"

// AddressSettings are what queues and addresses do whose name fits Match. A nil field isn't told:
// it is inherited, key by key, from the next less specific match. Names and meanings are Artemis's;
// plain integers are milliseconds or bytes.
type AddressSettings struct {
	Match string `key:"match"` // words split by "."; * is one word, # zero or more

	DeadLetterAddress *string `key:"dead-letter-address"` // empty: what can't be delivered is dropped
	ExpiryAddress     *string `key:"expiry-address"`      // empty: what expires is dropped

	MaxDeliveryAttempts       *int     `key:"max-delivery-attempts"` // -1: endless
	RedeliveryDelay           *Millis  `key:"redelivery-delay"`
	RedeliveryDelayMultiplier *float64 `key:"redelivery-delay-multiplier"`
	RedeliveryCollisionFactor *float64 `key:"redelivery-collision-avoidance-factor"` // 0 to 1: share of the delay
	MaxRedeliveryDelay        *Millis  `key:"max-redelivery-delay"`                  // 0: ten times the delay

	DefaultAddressRouting *Routing `key:"default-address-routing-type"`
	DefaultQueueRouting   *Routing `key:"default-queue-routing-type"`
	AutoCreateAddresses   *bool    `key:"auto-create-addresses"`
	AutoCreateQueues      *bool    `key:"auto-create-queues"`
	AutoDeleteQueues      *bool    `key:"auto-delete-queues"`

	DefaultDurable *bool `key:"default-durable"` // of a message that doesn't say
}

func (s AddressSettings) check(key string, bad func(key, format string, args ...any)) {
	if s.Match == "" {
		bad(key, "needs a match, such as \"orders.#\"")
	}
	if n := s.MaxDeliveryAttempts; n != nil && (*n < -1 || *n == 0) {
		bad(key+".max-delivery-attempts", "%d is neither -1 (endless) nor 1 or more", *n)
	}
	for name, d := range map[string]*Millis{"redelivery-delay": s.RedeliveryDelay, "max-redelivery-delay": s.MaxRedeliveryDelay} {
		if d != nil && *d < 0 {
			bad(key+"."+name, "%s is negative", d)
		}
	}
	if f := s.RedeliveryDelayMultiplier; f != nil && !(*f >= 1 && *f <= 1000) {
		bad(key+".redelivery-delay-multiplier", "%g is outside 1 to 1000", *f)
	}
	if f := s.RedeliveryCollisionFactor; f != nil && !(*f >= 0 && *f <= 1) {
		bad(key+".redelivery-collision-avoidance-factor", "%g is outside 0 to 1", *f)
	}
}

// String is how the settings are named in messages.
func (s AddressSettings) String() string { return fmt.Sprintf("address-settings %q", s.Match) }
