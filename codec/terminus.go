package codec

// Values of a terminus's durable field [3.5.5].
const (
	TerminusNone           uint32 = 0
	TerminusConfiguration  uint32 = 1
	TerminusUnsettledState uint32 = 2
)

// Values of a terminus's expiry-policy [3.5.6].
const (
	ExpiryLinkDetach      Symbol = "link-detach"
	ExpirySessionEnd      Symbol = "session-end"
	ExpiryConnectionClose Symbol = "connection-close"
	ExpiryNever           Symbol = "never"
)

// Values of a source's distribution-mode [3.5.7].
const (
	DistributionMove Symbol = "move"
	DistributionCopy Symbol = "copy"
)
