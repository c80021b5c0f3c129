package thrash

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

const attempts = 5

const delayed = `
address-settings:
  - match: orders
    max-delivery-attempts: 5
    redelivery-delay: 100ms
    redelivery-delay-multiplier: 2
`

func modify(one *consumer, m *amqp.Message) (bool, error) {
	return true, one.ModifyMessage(one.ctx, m, &amqp.ModifyMessageOptions{DeliveryFailed: true})
}

// TestPoison has a crowd fail at once whatever is bad. Good ones flow nearly as without those.
func TestPoison(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprintf("durable=%v", durable), func(t *testing.T) {
			s := sizeOf(t)
			var clean, poisoned []float64 // good messages a second
			var cpuClean, cpuPoisoned []float64
			for range s.rounds {
				for _, bad := range []int{0, s.bad} {
					one := s
					one.bad = bad
					t.Run(fmt.Sprint(bad), func(t *testing.T) {
						c := gather(t, one, durable, delayed)
						before, err := c.broker.CPU()
						if err != nil {
							t.Fatal(err)
						}
						took := c.run(modify)
						after, err := c.broker.CPU()
						if err != nil {
							t.Fatal(err)
						}
						rate, cpu := float64(s.good)/took.Seconds(), (after-before).Seconds()/float64(s.good)*1e6
						if bad == 0 {
							clean, cpuClean = append(clean, rate), append(cpuClean, cpu)
						} else {
							poisoned, cpuPoisoned = append(poisoned, rate), append(cpuPoisoned, cpu)
							c.dead(attempts, fmt.Sprintf("max-delivery-attempts reached: %d", attempts))
						}
						c.check()
					})
				}
			}
			if t.Failed() {
				return
			}
			t.Logf("%d good and %d bad, %d consumers: good messages/s %.0f without bad ones, %.0f with; broker's CPU µs for each %.1f and %.1f",
				s.good, s.bad, s.consumers, median(clean), median(poisoned), median(cpuClean), median(cpuPoisoned))
			// Beside other tests one run may be slowed down by them, so that the best counts there.
			typical := median(poisoned)
			if !s.whole {
				typical = slices.Max(poisoned)
			}
			if typical < s.share*median(clean) {
				t.Errorf("good messages/s %.0f with bad ones, %.0f without", poisoned, clean)
			}
		})
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
