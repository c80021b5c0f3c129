package crash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/letomq/leto/interop/wire"
)

// The queues of a broker under test. A message for the topic is in the queues of both subscriptions.
const (
	queueA     = iota
	queueB     // with priorities
	queueC     // with few attempts
	queueFirst // of a subscription that somebody consumes
	queueSlow  // of one that somebody drains now and then
	queues
)

// Beside them, where messages end that are dead or expired.
const (
	deadLetters   = queues
	expired       = queues + 1
	allQueues     = queues + 2
	topic         = queueFirst // as a destination: the first queue of it
	destinations  = topic + 1
	container     = "crash"
	topicAddress  = "prices"
	fewAttempts   = 3
	manyAttempts  = 10
	longestExpiry = 900 // ms
)

// sources are the addresses that take from exactly one queue.
var sources = [allQueues]string{
	"crash.a", "crash.b", "crash.c",
	topicAddress + "::" + container + ".first", topicAddress + "::" + container + ".slow",
	"DLQ", "ExpiryQueue",
}

// targets are where producers send to.
var targets = [destinations]string{"crash.a", "crash.b", "crash.c", "topic://" + topicAddress}

// names are what the broker calls the queues.
var names = [queues]string{"crash.a", "crash.b", "crash.c", container + ".first", container + ".slow"}

// attempts is how often a message may fail in the queue.
func attempts(queue uint8) uint32 {
	if queue == queueC {
		return fewAttempts
	}
	return manyAttempts
}

// name is who sent a message, where to, and as the how manieth.
type name struct {
	producer uint16
	to       uint8 // destination
	sequence uint32
}

func (n name) String() string { return fmt.Sprintf("%d/%d/%d", n.producer, n.to, n.sequence) }

// queues are those that the message is in once it is accepted.
func (n name) queues() []uint8 {
	if n.to == topic {
		return []uint8{queueFirst, queueSlow}
	}
	return []uint8{n.to}
}

// message is one that is sent, and what the broker does with it depends on.
type message struct {
	name
	bytes    []byte
	durable  bool
	expires  bool
	priority uint8
}

// compose makes the message of that name: the same one each time it is asked.
func compose(seed uint64, n name) message {
	rng := rand.New(rand.NewPCG(seed, uint64(n.producer)<<40|uint64(n.to)<<32|uint64(n.sequence)))
	m := message{name: n, durable: true, priority: 4}
	durable, priority, ttl := wire.Bool(true), wire.Null(), wire.Null()
	switch rng.IntN(20) {
	case 0:
		m.durable, durable = false, wire.Bool(false)
	case 1, 2, 3, 4, 5:
		durable = wire.Null() // durable by default
	}
	if n.to == queueB && rng.IntN(4) == 0 {
		m.priority = uint8(rng.IntN(10))
		priority = wire.Ubyte(m.priority)
	}
	if rng.IntN(15) == 0 {
		m.expires, ttl = true, wire.Uint(uint32(20+rng.IntN(longestExpiry-20)))
	}
	parts := [][]byte{wire.Described(wire.SectionHeader, wire.List(durable, priority, ttl))}
	if rng.IntN(4) == 0 {
		parts = append(parts, wire.Described(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-mine"), wire.Ulong(rng.Uint64()))))
	}
	parts = append(parts, wire.Described(wire.SectionProperties, wire.List(wire.String(n.String()))))
	if rng.IntN(4) == 0 {
		parts = append(parts, wire.Described(wire.SectionApplicationProperties, wire.Map(wire.String("n"), wire.Uint(n.sequence))))
	}
	parts = append(parts, wire.Described(wire.SectionData, wire.Binary(noise(rng, size(rng)))))
	if rng.IntN(10) == 0 {
		parts = append(parts, wire.Described(wire.SectionFooter, wire.Map(wire.Symbol("x-sum"), wire.Ulong(rng.Uint64()))))
	}
	m.bytes = bytes.Join(parts, nil)
	return m
}

// size is mostly small, and now and then above what goes into a journal's record as a whole.
func size(rng *rand.Rand) int {
	switch k := rng.IntN(200); {
	case k < 140:
		return rng.IntN(500)
	case k < 185:
		return rng.IntN(8 << 10)
	case k < 197:
		return rng.IntN(60 << 10)
	}
	return 300<<10 + rng.IntN(2)*rng.IntN(300<<10)
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rng.Uint64())
	}
	return b[:n]
}

// arrival is a delivery, as far as its message says what it is.
type arrival struct {
	name
	queue uint8  // that it was routed to
	at    uint8  // where it is: that queue, dead letters or expired
	count uint32 // delivery-count
	first bool   // first-acquirer
}

// identify reads a message that came from a queue and compares it, byte by byte, with what was sent.
func identify(seed uint64, from uint8, b []byte) (arrival, error) {
	a := arrival{queue: from, at: from}
	m, err := wire.Split(b)
	if err != nil {
		return a, err
	}
	if a.name, err = nameOf(m.Bare); err != nil {
		return a, err
	}
	if m.Header != nil {
		_, list, err := wire.Code(m.Header)
		if err != nil {
			return a, err
		}
		fields, err := wire.Items(list)
		if err != nil {
			return a, err
		}
		header := wire.Frame{Fields: fields}
		a.first, a.count = header.Number(3) == 1, uint32(header.Number(4))
	}
	sent := compose(seed, a.name).bytes
	if from < queues {
		if err := wire.Intact(sent, b); err != nil {
			return a, fmt.Errorf("message %v: %w", a.name, err)
		}
		if !slices.Contains(a.name.queues(), from) {
			return a, fmt.Errorf("message %v: it was not sent to queue %d", a.name, from)
		}
		return a, nil
	}
	was, err := wire.Split(sent)
	if err != nil {
		return a, err
	}
	if !bytes.Equal(was.Bare, m.Bare) || !bytes.Equal(was.Footer, m.Footer) {
		return a, fmt.Errorf("message %v: %d bytes arrive in %s changed, %d were sent", a.name, len(m.Bare), sources[from], len(was.Bare))
	}
	origin := annotation(m.MessageAnnotations, "x-opt-ORIG-QUEUE")
	queue := slices.Index(names[:], origin)
	if queue < 0 || !slices.Contains(a.name.queues(), uint8(queue)) {
		return a, fmt.Errorf("message %v: it comes from queue %q by its annotation", a.name, origin)
	}
	a.queue = uint8(queue)
	return a, nil
}

// nameOf reads the message-id of a bare message.
func nameOf(bare []byte) (n name, err error) {
	_, list, err := wire.Code(bare)
	if err != nil {
		return n, err
	}
	properties, _, err := wire.Next(list)
	if err != nil {
		return n, err
	}
	fields, err := wire.Items(properties)
	if err != nil || len(fields) == 0 {
		return n, fmt.Errorf("no properties: %w", err)
	}
	text, _ := wire.Text(fields[0])
	if _, err := fmt.Fscanf(strings.NewReader(text), "%d/%d/%d", &n.producer, &n.to, &n.sequence); err != nil {
		return n, fmt.Errorf("message-id %q: %w", text, err)
	}
	if n.to >= destinations {
		return n, fmt.Errorf("message-id %q: no such destination", text)
	}
	return n, nil
}

// annotation is the text under a key of message annotations.
func annotation(section []byte, key string) string {
	_, value, err := wire.Code(section)
	if err != nil {
		return ""
	}
	items, err := wire.Items(value)
	if err != nil {
		return ""
	}
	for i := 0; i+1 < len(items); i += 2 {
		if k, _ := wire.Text(items[i]); k == key {
			text, _ := wire.Text(items[i+1])
			return text
		}
	}
	return ""
}
