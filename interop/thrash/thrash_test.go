package thrash

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

const attempts = 5

// policies are for bad messages: with delays that grow the last attempts may come when all good ones are through, without a delay
// every attempt competes with them.
var policies = []struct{ name, settings string }{
	{"delayed", `
address-settings:
  - match: orders
    max-delivery-attempts: 5
    redelivery-delay: 100ms
    redelivery-delay-multiplier: 2
`},
	{"at once", `
address-settings:
  - match: orders
    max-delivery-attempts: 5
    redelivery-delay: 0
`},
}

func modify(one *consumer, m *amqp.Message) (bool, error) {
	return true, one.ModifyMessage(one.ctx, m, &amqp.ModifyMessageOptions{DeliveryFailed: true})
}

// arm is what one kind of run in TestPoison measured, one figure for each round.
type arm struct {
	rates  []float64 // good messages a second
	broker []float64 // its processor time in µs, for each of the good messages that every arm has
	crowd  []float64 // the same of this process
	during []float64 // attempts on bad ones until the last good one was accepted
}

// measure fills a broker, has a crowd fail what is bad, and sees that it is dead then. Rates count every good message, processor
// time is shared among per.
func (a *arm) measure(t *testing.T, s size, per int, durable bool, settings string) {
	c := gather(t, s, durable, settings)
	before, err := c.broker.CPU()
	if err != nil {
		t.Fatal(err)
	}
	own := processor(t)
	took := c.run(modify)
	during := c.came.Load()
	own = processor(t) - own
	after, err := c.broker.CPU()
	if err != nil {
		t.Fatal(err)
	}
	a.rates = append(a.rates, float64(per)/took.Seconds())
	a.broker = append(a.broker, (after-before).Seconds()/float64(per)*1e6)
	a.crowd = append(a.crowd, own.Seconds()/float64(per)*1e6)
	a.during = append(a.during, float64(during))
	if s.bad > 0 {
		c.dead(attempts, fmt.Sprintf("max-delivery-attempts reached: %d", attempts))
	}
	c.check()
}

func (a *arm) String() string {
	return fmt.Sprintf("%.0f/s, CPU µs of the broker %.1f and of the crowd %.1f", median(a.rates), median(a.broker), median(a.crowd))
}

// processor returns what this process has had of processors.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestPoison has a crowd fail at once whatever is bad. Good ones flow nearly as without those. Rounds alternate between runs
// without bad messages and with; on a machine of its own a third kind of run has as many good messages more as there are attempts on
// bad ones, which is what the same number of deliveries costs that don't fail.
func TestPoison(t *testing.T) {
	for _, policy := range policies {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, durable=%v", policy.name, durable), func(t *testing.T) {
				s := sizeOf(t)
				var clean, poisoned, more arm
				for range s.rounds {
					one := s
					one.bad = 0
					t.Run("good", func(t *testing.T) { clean.measure(t, one, s.good, durable, policy.settings) })
					t.Run("bad", func(t *testing.T) { poisoned.measure(t, s, s.good, durable, policy.settings) })
					if s.whole {
						one.good += attempts * s.bad
						t.Run("more", func(t *testing.T) { more.measure(t, one, s.good, durable, policy.settings) })
					}
				}
				if t.Failed() {
					return
				}
				t.Logf("%d good and %d bad, %d consumers; good messages without bad ones: %v", s.good, s.bad, s.consumers, &clean)
				t.Logf("with bad ones: %v; %.0f of %d attempts before the last good one", &poisoned, median(poisoned.during), attempts*s.bad)
				if s.whole {
					t.Logf("with %d good ones more: %v", attempts*s.bad, &more)
				}
				shares := make([]float64, s.rounds)
				for i := range shares {
					shares[i] = poisoned.rates[i] / clean.rates[i]
				}
				t.Logf("share that flows with bad ones: %.2f, by rounds %.2f", median(shares), shares)
				if s.whole && median(shares) < s.share {
					t.Errorf("good messages/s %.0f with bad ones, %.0f without: %.2f, want %.2f", poisoned.rates, clean.rates, median(shares), s.share)
				}
				// Beside other tests rates of a tenth of a second say nothing, but processor time does, in steps of 10 ms.
				if most := 2*median(clean.broker) + 1; !s.whole && median(poisoned.broker) > most {
					t.Errorf("broker's CPU µs for a good message %.1f with bad ones, %.1f without: want %.1f at most", poisoned.broker, clean.broker, most)
				}
			})
		}
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// TestSpin has a crowd give back what is bad in ways that cost the broker most, without end or with attempts left. When nothing
// else is there any more the broker has little to do.
func TestSpin(t *testing.T) {
	const endless = `
address-settings:
  - match: orders
    max-delivery-attempts: -1
    redelivery-delay: 1s
`
	for _, c := range []struct {
		name     string
		settings string
		fail     fails
		rate     float64 // deliveries a second of one bad message, at most
	}{
		{"released", endless, func(one *consumer, m *amqp.Message) (bool, error) {
			return true, one.ReleaseMessage(one.ctx, m)
		}, 2},
		{"modified, not failed", endless, func(one *consumer, m *amqp.Message) (bool, error) {
			return true, one.ModifyMessage(one.ctx, m, &amqp.ModifyMessageOptions{})
		}, 2},
		{"failed", endless, modify, 1.1},
		{"rejected", endless + "    reject-policy: redeliver\n", func(one *consumer, m *amqp.Message) (bool, error) {
			return true, one.RejectMessage(one.ctx, m, nil)
		}, 1.1},
		{"undeliverable here", endless, func(one *consumer, m *amqp.Message) (bool, error) {
			return true, one.ModifyMessage(one.ctx, m, &amqp.ModifyMessageOptions{UndeliverableHere: true})
		}, 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sizeOf(t)
			s.good /= 10
			crowd := gather(t, s, true, c.settings)
			crowd.run(c.fail)
			time.Sleep(3 * time.Second) // pauses grow to a second
			cpu, rate := crowd.idle(3 * time.Second)
			t.Logf("%d bad, %d consumers: %.2f processors, %.0f deliveries/s", s.bad, s.consumers, cpu, rate)
			if most := c.rate * float64(s.bad); rate > most {
				t.Errorf("%.0f deliveries/s of %d messages, want %.0f at most", rate, s.bad, most)
			}
			if cpu > 0.5 {
				t.Errorf("broker takes %.2f processors to fail, want half of one at most", cpu)
			}
			crowd.check()
		})
	}
}
