package engine

// Broker holds addresses and queues. All methods may be called from any goroutine.
type Broker struct{}

// New opens a broker over a store and brings back what the store holds.
func New(opts Options, store Store) (*Broker, error) { return &Broker{}, nil }

// Close ends all consumers with ErrClosed, commits what is pending and waits for the broker's goroutines. It doesn't
// close the store.
func (b *Broker) Close() error { return nil }

// Producer attaches a producer. confirm hears of what Publish didn't decide at once.
func (b *Broker) Producer(spec ProducerSpec, confirm Confirmer) (*Producer, error) { return nil, nil }

// Consumer attaches a consumer. It has no credit until SetLimit.
func (b *Broker) Consumer(spec ConsumerSpec, sink Sink) (*Consumer, error) { return nil, nil }

// Disconnected deletes the dynamic nodes that a connection made, whatever their lifetime policy: nobody else may
// consume from them. Call it when the connection's links are closed.
func (b *Broker) Disconnected(connection string) {}

// Settings returns the settings in force at an address, which need not exist. A prefix or a queue part is ignored.
// The result is shared and must not be changed.
func (b *Broker) Settings(address string) *Settings { return nil }
