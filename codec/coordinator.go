package codec

// Capabilities of a coordinator [4.5.7].
const (
	CapabilityLocalTransactions       Symbol = "amqp:local-transactions"
	CapabilityDistributedTransactions Symbol = "amqp:distributed-transactions"
	CapabilityPromotableTransactions  Symbol = "amqp:promotable-transactions"
	CapabilityMultiTxnsPerSession     Symbol = "amqp:multi-txns-per-ssn"
	CapabilityMultiSessionsPerTxn     Symbol = "amqp:multi-ssns-per-txn"
)

// Coordinator is the target of a link that controls transactions [4.5.1].
type Coordinator struct {
	Capabilities []Symbol
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (c *Coordinator) Decode(b []byte) (rest []byte, err error) {
	*c = Coordinator{}
	var f fields
	rest = f.begin(b, "coordinator", 1)
	c.Capabilities = f.symbols("capabilities")
	return rest, f.end()
}

// Append writes the coordinator with its descriptor and its field.
func (c *Coordinator) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeCoordinator, 1)
	dst = appendSymbols(dst, c.Capabilities)
	return endComposite(dst, at)
}
