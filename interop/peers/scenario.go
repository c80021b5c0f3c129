package peers

import (
	"fmt"
	"time"
)

// scenario is one kind of load. Its phases run one after the other on the same broker.
type scenario struct {
	id    string
	title string
	peers func() []*peer
	topic bool // peers without one are left out
	phase []phase
	table []column
}

// phase is one run of `leto bench`.
type phase struct {
	name string
	args []string
	// warm says that the broker has had no load yet: it gets the long warm-up.
	warm   bool
	queues int
	count  bool // sends or drains a number of messages, without a warm-up
}

// pace is how long phases take.
type pace struct {
	warmup   time.Duration // before the first phase; later ones have a second
	duration time.Duration
	backlog  int           // messages
	limit    time.Duration // of a phase, after which it is given up
}

// arguments are those of `leto bench` for a peer.
func (p *phase) arguments(b *peer, topic bool, t pace) []string {
	queues := max(p.queues, 1)
	address := b.queue(0)
	switch {
	case topic:
		address = b.topic
	case queues > 1:
		address = address[:len(address)-len(".0")]
	}
	args := append([]string{"--address", address, "--queues", fmt.Sprint(queues)}, p.args...)
	if topic {
		args = append(args, "--topic")
	}
	if p.count {
		return append(args, "--count", fmt.Sprint(t.backlog))
	}
	warmup := time.Second
	if p.warm {
		warmup = t.warmup
	}
	return append(args, "--warmup", warmup.String(), "--duration", t.duration.String())
}

// steady is the pair of phases that most scenarios have: as fast as it goes, and at a fixed rate.
func steady(rate int, args ...string) []phase {
	return []phase{
		{name: "full", warm: true, args: args},
		{name: "rate", args: append([]string{"--rate", fmt.Sprint(rate)}, args...)},
	}
}

// steadyTable shows them.
func steadyTable(rate int) []column {
	at := fmt.Sprintf("at %d/s", rate)
	return []column{
		{"msg/s", count, of("full", received)},
		{"CPU µs/msg", micro, of("full", brokerCPU)},
		{"CPU µs/msg " + at, micro, of("rate", brokerCPU)},
		{"p50 µs " + at, whole, of("rate", deliveryP50)},
		{"p99 µs", whole, of("rate", deliveryP99)},
		{"p99.9 µs", whole, of("rate", deliveryP999)},
		{"peak RSS MiB", whole, peakResident},
		{"client µs/msg", micro, of("full", clientCPU)},
	}
}

// sized are the columns of phases that differ in one thing.
func sized(names ...string) []column {
	var all []column
	for _, name := range names {
		all = append(all, column{name + ": msg/s", count, of(name, received)}, column{"CPU µs/msg", micro, of(name, brokerCPU)})
	}
	return all
}

// confirmed are those of phases in which the producers' wait matters.
func confirmed(names ...string) []column {
	var all []column
	for _, name := range names {
		all = append(all, column{name + ": msg/s", count, of(name, received)},
			column{"p50 µs", whole, of(name, confirmP50)}, column{"p99 µs", whole, of(name, confirmP99)})
	}
	return all
}

func sizes(args ...string) []phase {
	var all []phase
	for i, size := range []string{"32", "1KiB", "16KiB"} {
		all = append(all, phase{name: size, warm: i == 0, args: append([]string{"--size", size}, args...)})
	}
	return all
}

// scenarios are those of the project's bench, by number.
var scenarios = []scenario{
	{
		id: "1", title: "Transient, settled by the sender: one producer, one consumer, 256 B", peers: byDefaults,
		phase: steady(10000, "--settled"), table: steadyTable(10000),
	},
	{
		id: "1-sizes", title: "The same with other sizes", peers: byDefaults,
		phase: sizes("--settled")[:2], table: sized("32", "1KiB"),
	},
	{
		id: "2", title: "Transient, at least once, each message acknowledged: one producer, one consumer, 256 B", peers: byDefaults,
		phase: steady(5000, "--ack-every", "1"), table: steadyTable(5000),
	},
	{
		id: "2-sizes", title: "The same with other sizes", peers: byDefaults,
		phase: sizes("--ack-every", "1"), table: sized("32", "1KiB", "16KiB"),
	},
	{
		id: "2-many", title: "The same with four producers and four consumers", peers: byDefaults,
		phase: []phase{
			{name: "one queue", warm: true, args: []string{"--producers", "4", "--consumers", "4", "--ack-every", "1"}},
			{name: "four queues", queues: 4, args: []string{"--producers", "4", "--consumers", "4", "--ack-every", "1"}},
		},
		table: sized("one queue", "four queues"),
	},
	{
		id: "2-closed", title: "The same with one message in flight", peers: byDefaults,
		phase: []phase{{name: "closed", warm: true, args: []string{"--inflight", "1", "--ack-every", "1"}}},
		table: []column{
			{"msg/s", count, of("closed", received)}, {"CPU µs/msg", micro, of("closed", brokerCPU)},
			{"delivery p50 µs", whole, of("closed", deliveryP50)}, {"p99 µs", whole, of("closed", deliveryP99)},
			{"p99.9 µs", whole, of("closed", deliveryP999)},
			{"confirm p50 µs", whole, of("closed", confirmP50)}, {"p99 µs", whole, of("closed", confirmP99)},
		},
	},
	{
		id: "3", title: "Transient, at least once, acknowledged in ranges of 100: one producer, one consumer, 256 B", peers: byDefaults,
		phase: steady(5000, "--ack-every", "100"), table: steadyTable(5000),
	},
	{
		id: "5", title: "Durable, 256 B, one consumer: producers × unsettled messages of each", peers: all,
		phase: []phase{
			{name: "1 × 1", warm: true, args: []string{"--durable", "--producers", "1", "--inflight", "1"}},
			{name: "16 × 1", args: []string{"--durable", "--producers", "16", "--inflight", "1"}},
			{name: "64 × 1", args: []string{"--durable", "--producers", "64", "--inflight", "1"}},
			{name: "1 × 1000", args: []string{"--durable", "--producers", "1", "--inflight", "1000"}},
		},
		table: append(append(confirmed("1 × 1", "16 × 1", "64 × 1"), sized("1 × 1000")...), column{"peak RSS MiB", whole, peakResident}),
	},
	{
		id: "7", title: "Fan-out: one producer, every consumer gets everything, transient, 256 B; figures count deliveries", peers: byDefaults, topic: true,
		phase: []phase{
			{name: "16 subscribers", warm: true, args: []string{"--consumers", "16", "--ahead", "1000"}},
			{name: "128 subscribers", args: []string{"--consumers", "128", "--ahead", "1000"}},
		},
		table: append(sized("16 subscribers", "128 subscribers"), column{"peak RSS MiB", whole, peakResident}),
	},
	{
		id: "8", title: "Fan-in: 64 producers, one consumer, transient, at least once, 256 B", peers: byDefaults,
		phase: steady(5000, "--producers", "64", "--inflight", "16"), table: steadyTable(5000),
	},
	{
		id: "9", title: "Backlog of durable messages, 256 B: fill, send one at a time while it is deep, drain", peers: durably,
		phase: backlog("--durable"), table: backlogTable,
	},
	{
		id: "9-transient", title: "Backlog of transient messages, 256 B", peers: byDefaults,
		phase: backlog(), table: backlogTable,
	},
}

func backlog(args ...string) []phase {
	return []phase{
		{name: "fill", count: true, args: append([]string{"--consumers", "0"}, args...)},
		{name: "deep", args: append([]string{"--consumers", "0", "--inflight", "1"}, args...)},
		{name: "drain", count: true, args: []string{"--producers", "0"}},
	}
}

var backlogTable = []column{
	{"fill msg/s", count, of("fill", sent)}, {"CPU µs/msg", micro, of("fill", brokerCPU)},
	{"confirm p50 µs while deep", whole, of("deep", confirmP50)}, {"p99 µs", whole, of("deep", confirmP99)},
	{"drain msg/s", count, of("drain", received)}, {"CPU µs/msg", micro, of("drain", brokerCPU)},
	{"peak RSS MiB", whole, peakResident},
}

// durably are the brokers in the settings in which a durable message is on the device.
func durably() []*peer { return []*peer{leto(), artemis(), brokerJ(), ramqpDurable(), rabbitQuorum()} }
