package engine

import (
	"math/rand/v2"
	"sync"

	"github.com/letomq/leto/engine/queue"
)

// policies are what queues do with messages that fail: one for all queues that do the same.
type policies struct {
	mu     sync.Mutex
	shared map[policyKey]*queue.Policy // no more than there are different settings, twice
}

type policyKey struct {
	settings    *Settings // which are shared as well
	maxAttempts int32
}

func (p *policies) of(s *Settings, maxAttempts int32) *queue.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := policyKey{s, maxAttempts}
	known := p.shared[k]
	if known == nil {
		known = &queue.Policy{
			MaxAttempts:      maxAttempts,
			RejectRedelivers: s.RejectPolicy == RejectRedeliver,
			CountOnLoss:      s.CountOnLoss,
			Delay:            s.RedeliveryDelay.Milliseconds(),
			Multiplier:       s.RedeliveryMultiplier,
			Spread:           s.RedeliverySpread,
			MaxDelay:         s.MaxRedeliveryDelay.Milliseconds(),
			Random:           rand.Float64, // what it spreads is nobody's secret
		}
		if p.shared == nil {
			p.shared = map[policyKey]*queue.Policy{}
		}
		p.shared[k] = known
	}
	return known
}
