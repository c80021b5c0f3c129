package engine_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// relay is a sink that keeps the last delivery.
type relay struct{ got []engine.Delivery }

func (r *relay) Deliver(d engine.Delivery) { r.got = append(r.got, d) }
func (r *relay) Drained()                  {}
func (r *relay) Settled(uint64)            {}
func (r *relay) Unsettled(uint64)          {}
func (r *relay) Ended(error)               {}

func benchBroker(b *testing.B) *engine.Broker {
	broker, err := engine.New(engine.Options{Limits: engine.Limits{MemoryBytes: 1 << 32}}, memory.New())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { broker.Close() })
	return broker
}

// BenchmarkTransient is a message through the engine: published, dispatched to a waiting consumer, accepted.
func BenchmarkTransient(b *testing.B) {
	for _, anonymous := range []bool{false, true} {
		b.Run(fmt.Sprintf("anonymous=%v", anonymous), func(b *testing.B) {
			broker := benchBroker(b)
			spec := engine.ProducerSpec{Address: "q", Anonymous: anonymous}
			p, err := broker.Producer(spec, ignoreResults{})
			if err != nil {
				b.Fatal(err)
			}
			r := &relay{}
			c, err := broker.Consumer(engine.ConsumerSpec{Address: "q"}, r)
			if err != nil {
				b.Fatal(err)
			}
			c.SetLimit(1 << 62)
			payload := make([]byte, 256)
			batch := make([]engine.Settlement, 1)
			b.ReportAllocs()
			for b.Loop() {
				p.Publish(&engine.Message{Payload: payload, Priority: 4, Address: "q"}, 1)
				batch[0] = engine.Settlement{Handle: r.got[0].Handle, Acquisition: r.got[0].Acquisition}
				r.got = r.got[:0]
				c.Settle(batch, engine.Outcome{Kind: engine.Accepted}, 1)
			}
		})
	}
}

// BenchmarkBacklog fills a queue and empties it, per message.
func BenchmarkBacklog(b *testing.B) {
	broker := benchBroker(b)
	p, err := broker.Producer(engine.ProducerSpec{Address: "q"}, ignoreResults{})
	if err != nil {
		b.Fatal(err)
	}
	r := &relay{}
	c, err := broker.Consumer(engine.ConsumerSpec{Address: "q"}, r)
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 256)
	var given uint64
	batch := make([]engine.Settlement, 0, 100)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 10_000 {
		for range 10_000 {
			p.Publish(&engine.Message{Payload: payload, Priority: 4}, 1)
		}
		for range 100 {
			given += 100
			c.SetLimit(given)
			batch = batch[:0]
			for _, d := range r.got {
				batch = append(batch, engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition})
			}
			r.got = r.got[:0]
			c.Settle(batch, engine.Outcome{Kind: engine.Accepted}, 1)
		}
	}
}

// window bounds what a benchmark's producer has unconfirmed.
type window chan struct{}

func (w window) Confirmed(uint64, engine.Result) { <-w }

// BenchmarkDurable is a durable message through the committer and the memory store.
func BenchmarkDurable(b *testing.B) {
	broker := benchBroker(b)
	w := make(window, 1000)
	p, err := broker.Producer(engine.ProducerSpec{Address: "q"}, w)
	if err != nil {
		b.Fatal(err)
	}
	c, err := broker.Consumer(engine.ConsumerSpec{Address: "q", Settled: true}, &sharedSink{})
	if err != nil {
		b.Fatal(err)
	}
	c.SetLimit(1 << 62)
	payload := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		w <- struct{}{}
		p.Publish(&engine.Message{Payload: payload, Priority: 4, Durable: true}, 1)
	}
}

// BenchmarkContended has one producer and one consumer on goroutines of their own, with a mailbox between them.
func BenchmarkContended(b *testing.B) {
	broker := benchBroker(b)
	p, err := broker.Producer(engine.ProducerSpec{Address: "q"}, ignoreResults{})
	if err != nil {
		b.Fatal(err)
	}
	k := &worker{wake: make(chan struct{}, 1)}
	c, err := broker.Consumer(engine.ConsumerSpec{Address: "q"}, k)
	if err != nil {
		b.Fatal(err)
	}
	c.SetLimit(1000)
	var consuming sync.WaitGroup
	total := b.N
	consuming.Go(func() {
		var batch []engine.Settlement
		for got := 0; got < total; {
			<-k.wake
			ds, _ := k.take()
			batch = batch[:0]
			for _, d := range ds {
				batch = append(batch, engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition})
			}
			got += len(ds)
			c.Settle(batch, engine.Outcome{Kind: engine.Accepted}, 1)
			c.SetLimit(uint64(got + 1000))
		}
	})
	payload := make([]byte, 256)
	b.ReportAllocs()
	for range b.N {
		p.Publish(&engine.Message{Payload: payload, Priority: 4}, 1)
	}
	consuming.Wait()
}

// BenchmarkTopic is one message to 100 subscribers.
func BenchmarkTopic(b *testing.B) {
	broker := benchBroker(b)
	p, err := broker.Producer(engine.ProducerSpec{Address: "topic://t"}, ignoreResults{})
	if err != nil {
		b.Fatal(err)
	}
	for range 100 {
		c, err := broker.Consumer(engine.ConsumerSpec{Address: "t", Settled: true}, &sharedSink{})
		if err != nil {
			b.Fatal(err)
		}
		c.SetLimit(1 << 62)
	}
	payload := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		p.Publish(&engine.Message{Payload: payload, Priority: 4}, 1)
	}
}

// endlessStore has a queue with as many messages of 256 bytes as anybody wants.
type endlessStore struct{ nullStore }

func (endlessStore) Recover() (engine.State, error) {
	const n = 1 << 40
	return engine.State{
		Queues: []engine.Definition{{ID: 1, Address: "q", Name: "q", Routing: engine.Anycast}},
		Summaries: []engine.Summary{{
			Entries: n, Bytes: n * 256, Levels: []engine.Level{{Priority: 4, Entries: n, Head: 1}},
		}},
		LastQueue: 1, LastNumber: n,
	}, nil
}

func (endlessStore) Load(_ engine.QueueID, priority uint8, from uint64, n, bytes int) (all []engine.Stored, _ error) {
	n = min(n, (bytes+255)/256)
	payload := make([]byte, n*256)
	for i := range n {
		m := &engine.Message{Payload: payload[i*256 : (i+1)*256 : (i+1)*256], Durable: true, Priority: priority}
		all = append(all, engine.Stored{Number: max(from, 1) + uint64(i), Message: m})
	}
	return all, nil
}

// BenchmarkStoredBacklog is a message of a backlog that is in the store only: loaded, given, accepted; with a
// consumer that settles as they come. The store costs next to nothing.
func BenchmarkStoredBacklog(b *testing.B) {
	broker, err := engine.New(engine.Options{Limits: engine.Limits{MemoryBytes: 154 << 20}}, endlessStore{})
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close()
	k := &worker{wake: make(chan struct{}, 1)}
	c, err := broker.Consumer(engine.ConsumerSpec{Address: "q"}, k)
	if err != nil {
		b.Fatal(err)
	}
	c.SetLimit(1000)
	var batch []engine.Settlement
	most := int64(0)
	b.ReportAllocs()
	for got := 0; got < b.N; {
		<-k.wake
		ds, _ := k.take()
		batch = batch[:0]
		for _, d := range ds {
			batch = append(batch, engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition})
		}
		got += len(ds)
		most = max(most, broker.Totals().Memory)
		c.Settle(batch, engine.Outcome{Kind: engine.Accepted}, 1)
		c.SetLimit(uint64(got + 1000))
	}
	b.ReportMetric(float64(most), "bytes-held")
}

// BenchmarkOnce is a message that has an id, and one that has none: the difference is what an id costs the engine.
func BenchmarkOnce(b *testing.B) {
	for _, durable := range []bool{false, true} {
		for _, identified := range []bool{false, true} {
			b.Run(fmt.Sprintf("durable=%v/id=%v", durable, identified), func(b *testing.B) {
				broker, err := engine.New(engine.Options{Limits: engine.Limits{MemoryBytes: 154 << 20}}, endlessStore{})
				if err != nil {
					b.Fatal(err)
				}
				defer broker.Close()
				w := make(window, 1000)
				p, err := broker.Producer(engine.ProducerSpec{Address: "q"}, w)
				if err != nil {
					b.Fatal(err)
				}
				payload := make([]byte, 256)
				b.ReportAllocs()
				for i := uint64(1); b.Loop(); i++ {
					var id engine.DuplicateID
					if identified {
						id = engine.NewDuplicateID(binary.LittleEndian.AppendUint64(nil, i))
					}
					if i%1000 == 0 && !durable {
						broker.Purge("q", "")
					}
					w <- struct{}{}
					if _, decided := p.PublishOnce(&engine.Message{Payload: payload, Priority: 4, Durable: durable}, id, 1); decided {
						<-w
					}
				}
			})
		}
	}
}

// BenchmarkStoredFill is a durable message that goes to a backlog: committed, then left to the store.
func BenchmarkStoredFill(b *testing.B) {
	broker, err := engine.New(engine.Options{Limits: engine.Limits{MemoryBytes: 154 << 20}}, endlessStore{})
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close()
	w := make(window, 1000)
	p, err := broker.Producer(engine.ProducerSpec{Address: "q"}, w)
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		w <- struct{}{}
		p.Publish(&engine.Message{Payload: payload, Priority: 4, Durable: true}, 1)
	}
	b.ReportMetric(float64(broker.Totals().Memory), "bytes-held")
}
