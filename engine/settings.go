package engine

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
	RejectPolicy          *RejectPolicy
	CountOnLoss           *bool
	DefaultAddressRouting *Routing
	DefaultQueueRouting   *Routing
	AutoCreateAddresses   *bool
	AutoCreateQueues      *bool
	AutoDeleteQueues      *bool
	DefaultDurable        *bool
	IDCacheSize           *int
}

// Settings are the settings in force at one address.
type Settings struct {
	DeadLetterAddress     string
	ExpiryAddress         string
	MaxDeliveryAttempts   int
	RejectPolicy          RejectPolicy
	CountOnLoss           bool
	DefaultAddressRouting Routing
	DefaultQueueRouting   Routing
	AutoCreateAddresses   bool
	AutoCreateQueues      bool
	AutoDeleteQueues      bool
	DefaultDurable        bool
	IDCacheSize           int // ids of messages that are remembered, those that came last; 0 or below: none
}

// DefaultSettings are what an address has that no AddressSettings match.
func DefaultSettings() Settings {
	return Settings{
		DeadLetterAddress:     "DLQ",
		ExpiryAddress:         "ExpiryQueue",
		MaxDeliveryAttempts:   10,
		CountOnLoss:           true,
		DefaultAddressRouting: Anycast,
		DefaultQueueRouting:   Anycast,
		AutoCreateAddresses:   true,
		AutoCreateQueues:      true,
		DefaultDurable:        true,
		IDCacheSize:           20000,
	}
}
