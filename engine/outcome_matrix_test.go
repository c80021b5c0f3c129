package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/letomq/leto/engine"
)

// TestOutcomeMatrix settles five messages in every way: each outcome with each flag, in each manner, of deliveries
// that are settled already and that are not. It checks where each message is in the end, its count, and the order.
func TestOutcomeMatrix(t *testing.T) {
	type way struct {
		name    string
		outcome engine.Outcome
	}
	ways := []way{{"accepted", accepted}, {"rejected", rejected}, {"released", released}, {"none", engine.Outcome{}}, {"unknown", engine.Outcome{Kind: 77}}}
	for flags := range 8 {
		o := engine.Outcome{Kind: engine.Modified, Failed: flags&1 != 0, UndeliverableHere: flags&2 != 0}
		if flags&4 != 0 {
			o.Annotations = []engine.Annotation{{Key: "x-opt-a", Value: int64(flags)}}
		}
		ways = append(ways, way{fmt.Sprint("modified", flags), o})
	}
	manners := map[string]func(c *consumer, o engine.Outcome, ds []engine.Delivery){
		"single": func(c *consumer, o engine.Outcome, ds []engine.Delivery) {
			for _, d := range ds {
				c.settle(o, d)
			}
		},
		"range": func(c *consumer, o engine.Outcome, ds []engine.Delivery) { c.settle(o, ds...) },
		"out of order": func(c *consumer, o engine.Outcome, ds []engine.Delivery) {
			for _, i := range []int{1, 2, 0} {
				c.settle(o, ds[i])
			}
		},
		"out of order in one": func(c *consumer, o engine.Outcome, ds []engine.Delivery) { c.settle(o, ds[2], ds[0], ds[1]) },
		"duplicate": func(c *consumer, o engine.Outcome, ds []engine.Delivery) {
			c.settle(o, ds[0], ds[0], ds[1])
			c.settle(o, ds...)
			c.settle(accepted, ds...) // another outcome for what is settled: too late
		},
		"after detach": func(c *consumer, o engine.Outcome, ds []engine.Delivery) {
			c.Close(engine.ClosingClean)
			c.settle(o, ds...)
		},
	}
	for _, way := range ways {
		for manner, settle := range manners {
			for _, presettled := range []bool{false, true} {
				for _, durable := range []bool{false, true} {
					name := fmt.Sprintf("%s/%s/presettled=%v/durable=%v", way.name, manner, presettled, durable)
					t.Run(name, func(t *testing.T) {
						inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
							w.producer("q").send(durable, "a", "b", "c", "d", "e")
							c := w.consumerOf(engine.ConsumerSpec{Address: "q", Settled: presettled})
							settle(c, way.outcome, slices.Clone(c.take(4))[:3])
							place, dead := expectPlaces(way.outcome, presettled, manner == "after detach")
							if manner != "after detach" {
								c.Close(engine.ClosingClean)
							}
							w.expectQueue("q", place...)
							// dead letters are numbered as they came: in the order of settling
							got := w.contents("DLQ")
							slices.SortFunc(got, cmp.Compare)
							if !slices.Equal(got, dead) {
								t.Errorf("dead letters: %q, want %q", got, dead)
							}
							if durable {
								w.restart()
								w.expectQueue("q", place...)
							}
							if way.outcome.Annotations != nil && !presettled && manner != "after detach" {
								if got := annotation(w.consumer("q").take(1)[0], "x-opt-a"); got != way.outcome.Annotations[0].Value {
									t.Errorf("annotation = %v, want %v", got, way.outcome.Annotations[0].Value)
								}
							}
						})
					})
				}
			}
		}
	}
}

// expectPlaces says where the messages are after the first three of five were settled and the link is gone.
func expectPlaces(o engine.Outcome, presettled, detached bool) (queue, dead []string) {
	dead = []string{}
	switch {
	case presettled:
		return []string{"e"}, dead
	case detached:
		return []string{"a", "b", "c", "d", "e"}, dead
	case o.Kind == engine.Accepted:
		return []string{"d", "e"}, dead
	case o.Kind == engine.Rejected:
		return []string{"d", "e"}, []string{"a+1", "b+1", "c+1"}
	case o.Kind == engine.Modified && o.Failed:
		return []string{"a+1", "b+1", "c+1", "d", "e"}, dead
	}
	return []string{"a", "b", "c", "d", "e"}, dead
}
