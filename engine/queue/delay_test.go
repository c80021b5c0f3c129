package queue

import "testing"

func durable(number uint64) *Message {
	m := transient(number, 0)
	m.Durable = true
	return m
}

// What comes back from home may be loaded by chance once it has no time there any more: before the queue knows it again
// it isn't given.
func TestLoadBeforeRipen(t *testing.T) {
	q := &Queue{}
	budget := &Budget{Limit: 1 << 20, Chunk: EntryCost, Ceiling: EntryCost, Low: 1, PageEntries: 10, PageBytes: 100, SmallEntries: 1, SmallBytes: 1}
	q.SetBudgets(NewBudgets(budget, budget))
	q.Restore([]Stored{{Priority: DefaultPriority, Entries: 2, Delayed: 1, First: 1, Last: 3}}, 3)
	c := q.Attach(Take, nil)
	fx := q.SetLimit(c, 10, 1000, nil)
	if len(fx) != 1 || fx[0].Kind != EffectLoad {
		t.Fatalf("effects %+v, want a load", fx)
	}
	load := fx[0].Load()
	q.Recall(InStore)
	if waits := q.Waits(InStore, []uint64{2}); len(waits) != 1 {
		t.Fatalf("%v wait, want one", waits)
	}
	arrival := func(n uint64) Arrival { return Arrival{Message: durable(n), Number: n} }
	given := map[uint64]int{}
	for _, f := range append(q.Loaded(load, []Arrival{arrival(1), arrival(2), arrival(3)}, true, 1000, nil),
		q.Ripen(InStore, []Arrival{arrival(2)}, 0, 1000, nil)...) {
		if f.Kind == EffectDeliver {
			given[f.Entry.number]++
		}
	}
	if len(given) != 3 || given[2] != 1 {
		t.Errorf("given so often: %v, want each once", given)
	}
	if s := q.Stats(); s.Acquired != 3 || s.Waiting+s.Delayed != 0 {
		t.Errorf("stats %+v, want three acquired", s)
	}
}

// A purge takes what waits in memory for its time, also while a home is asked for what waits there: it isn't told as one
// of these then.
func TestPurgeDuringRecall(t *testing.T) {
	var q Queue
	budget := &Budget{Limit: 1 << 20, Chunk: EntryCost, Ceiling: 1 << 20, Park: 500, PageEntries: 10, PageBytes: 100}
	q.SetBudgets(NewBudgets(budget, budget))
	for n, due := range []int64{0, 100, 2000} {
		m := durable(uint64(n + 1))
		m.Due = due
		q.Publish(m, uint64(n+1), 0, nil)
	}
	if q.parked(InStore) != 1 || q.Delayed() != 2 {
		t.Fatalf("%d wait for their time, %d at home, want 2 and 1", q.Delayed(), q.parked(InStore))
	}
	q.Recall(InStore)
	if removed, _ := q.PurgeUpTo(10, 10, 0, nil); removed != 2 {
		t.Errorf("%d purged, want 2", removed)
	}
	if waits := q.Waits(InStore, []uint64{2, 3}); len(waits) != 1 || waits[0] != 3 {
		t.Errorf("%v wait at home, want 3", waits)
	}
}

// A message that many consumers in turn give back pauses as one does that one consumer gives back.
func TestPassedAroundPauses(t *testing.T) {
	var q Queue
	crowd := make([]*Consumer, 20)
	for i := range crowd {
		crowd[i] = q.Attach(Take, nil)
	}
	q.Publish(transient(1, 0), 1, 0, nil)
	now := int64(0)
	for turn := range 200 {
		c := crowd[turn%len(crowd)]
		fx := q.SetLimit(c, c.given+1, now, nil)
		settleAll(&q, c, fx, Outcome{Kind: Released}, now)
		q.SetLimit(c, c.given, now, nil)
		if at := q.NextDue(); at != 0 {
			now = at
			q.Wake(1, now, nil)
		}
	}
	if now < 150_000 {
		t.Errorf("given 200 times in %d ms", now)
	}
}
