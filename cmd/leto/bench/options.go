package bench

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Options say what load to put on which broker.
type Options struct {
	URL       *url.URL
	Address   string
	Queues    int // more than one: Address gets .0, .1, … behind it
	Producers int
	Consumers int
	Count     uint64        // messages in all; 0: for Duration
	Duration  time.Duration // how long producers send; 0: until Count
	Size      int           // bytes of the body; at least the stamp
	Warmup    time.Duration // load that comes before, and is checked but not measured
	Rate      float64       // messages per second in all, on a schedule that waits for nobody; 0: as fast as it goes
	Durable   bool
	Settled   bool
	Topic     bool          // every consumer gets every message
	Credit    int           // of a consumer
	Inflight  int           // unsettled messages of a producer
	Ahead     int           // messages that producers may be ahead of the slowest consumer; 0: any number
	AckEvery  int           // deliveries a consumer settles in one disposition; 0: what came in one read
	Idle      time.Duration // how long nothing may arrive before the run is given up
	PID       int           // the broker's process, whose tree is measured; 0: none
	Progress  func(sent, received uint64)
}

// Validate reports what can't be run.
func (o *Options) Validate() error {
	switch {
	case o.Queues < 1 || o.Producers < 0 || o.Consumers < 0 || o.Producers+o.Consumers == 0:
		return errors.New("queues must be positive, and producers or consumers too")
	case o.Count == 0 && o.Duration == 0:
		return errors.New("count or duration must be given")
	case o.Size < stampSize:
		return fmt.Errorf("size must be at least %d bytes: the stamp that is checked", stampSize)
	case o.Credit < 1 || o.Inflight < 1:
		return errors.New("credit and inflight must be positive")
	case o.Rate < 0 || o.Warmup < 0:
		return errors.New("rate and warmup must not be negative")
	case o.AckEvery < 0 || o.AckEvery > o.Credit:
		return errors.New("ack-every must be between 0 and credit: a consumer that waits for more would wait forever")
	case o.Ahead < 0 || o.Ahead > 0 && (o.Producers == 0 || o.Consumers == 0):
		return errors.New("ahead must not be negative, and needs producers and consumers")
	case o.Warmup > 0 && (o.Duration == 0 || o.Count > 0):
		return errors.New("warmup goes with duration, not with count")
	case o.Topic && (o.Producers == 0 || o.Queues > 1):
		return errors.New("topic needs producers, and one address")
	}
	return nil
}

// goal is how many arrivals there should be of n messages.
func (o *Options) goal(n uint64) uint64 {
	if o.Topic {
		return n * uint64(o.Consumers)
	}
	return n
}

func (o *Options) queue(i int) string {
	if o.Queues == 1 {
		return o.Address
	}
	return fmt.Sprintf("%s.%d", o.Address, i%o.Queues)
}
