package engine

import "time"

// RejectPolicy is what a rejected outcome does to the message.
type RejectPolicy uint8

const (
	RejectDeadLetter RejectPolicy = iota // it goes to the dead-letter address at once
	RejectRedeliver                      // as modified with delivery-failed
)

// String returns the name used in the configuration.
func (p RejectPolicy) String() string {
	if p == RejectRedeliver {
		return "redeliver"
	}
	return "dead-letter"
}

// AddressSettings are the settings of all addresses that Match names. A nil field says nothing: it is inherited from
// the next less specific match, and at last from DefaultSettings. An empty address turns an inherited one off.
type AddressSettings struct {
	Match                 string // words split by '.', '*' is one word, '#' zero or more
	DeadLetterAddress     *string
	ExpiryAddress         *string
	MaxDeliveryAttempts   *int // failed attempts; 0 or below: endless
	RedeliveryDelay       *time.Duration
	RedeliveryMultiplier  *float64
	RedeliverySpread      *float64 // 0..1
	MaxRedeliveryDelay    *time.Duration
	RejectPolicy          *RejectPolicy
	CountOnLoss           *bool
	DefaultAddressRouting *Routing
	DefaultQueueRouting   *Routing
	AutoCreateAddresses   *bool
	AutoCreateQueues      *bool
	AutoDeleteQueues      *bool
	DefaultDurable        *bool
	IDCacheSize           *int

	AutoCreateDeadLetterResources *bool
	DeadLetterQueuePrefix         *string
	DeadLetterQueueSuffix         *string
	AutoCreateExpiryResources     *bool
	ExpiryQueuePrefix             *string
	ExpiryQueueSuffix             *string

	ExpiryDelay    *int64 // milliseconds, as are the next two; below 0: none
	MinExpiryDelay *int64
	MaxExpiryDelay *int64
	NoExpiry       *bool
}

// Settings are the settings in force at one address.
type Settings struct {
	DeadLetterAddress     string
	ExpiryAddress         string
	MaxDeliveryAttempts   int
	RedeliveryDelay       time.Duration // before the second attempt, and times RedeliveryMultiplier before each further one
	RedeliveryMultiplier  float64
	RedeliverySpread      float64       // more or less by up to that part of it
	MaxRedeliveryDelay    time.Duration // 0: ten times RedeliveryDelay
	RejectPolicy          RejectPolicy
	CountOnLoss           bool
	DefaultAddressRouting Routing
	DefaultQueueRouting   Routing
	AutoCreateAddresses   bool
	AutoCreateQueues      bool
	AutoDeleteQueues      bool
	DefaultDurable        bool
	IDCacheSize           int // ids of messages that are remembered, those that came last; 0 or below: none

	AutoCreateDeadLetterResources bool // dead letters go to a queue of their own per address that they died at
	DeadLetterQueuePrefix         string
	DeadLetterQueueSuffix         string
	AutoCreateExpiryResources     bool // the same for what expires
	ExpiryQueuePrefix             string
	ExpiryQueueSuffix             string

	ExpiryDelay    int64 // milliseconds until a message expires that doesn't say when; below 0: it doesn't. Else:
	MinExpiryDelay int64 // it expires no sooner
	MaxExpiryDelay int64 // and no later, also if it doesn't say when
	NoExpiry       bool  // nothing expires, whatever it says
}

// DefaultSettings are what an address has that no AddressSettings match.
func DefaultSettings() Settings {
	return Settings{
		DeadLetterAddress:     "DLQ",
		ExpiryAddress:         "ExpiryQueue",
		MaxDeliveryAttempts:   10,
		RedeliveryMultiplier:  1,
		CountOnLoss:           true,
		DefaultAddressRouting: Anycast,
		DefaultQueueRouting:   Anycast,
		AutoCreateAddresses:   true,
		AutoCreateQueues:      true,
		DefaultDurable:        true,
		IDCacheSize:           20000,

		DeadLetterQueuePrefix: "DLQ.",
		ExpiryQueuePrefix:     "EXP.",
		ExpiryDelay:           -1,
		MinExpiryDelay:        -1,
		MaxExpiryDelay:        -1,
	}
}
