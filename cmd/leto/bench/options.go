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
	Rate      float64       // messages per second in all; 0: as fast as it goes
	Durable   bool
	Settled   bool
	Credit    int           // of a consumer
	Inflight  int           // unsettled messages of a producer
	Idle      time.Duration // how long nothing may arrive before the run is given up
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
	case o.Rate < 0:
		return errors.New("rate must not be negative")
	}
	return nil
}

func (o *Options) queue(i int) string {
	if o.Queues == 1 {
		return o.Address
	}
	return fmt.Sprintf("%s.%d", o.Address, i%o.Queues)
}
