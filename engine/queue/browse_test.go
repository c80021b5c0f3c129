package queue

import "testing"

// A browser goes on whatever a page has for it: nothing any more, since others have taken all of it away meanwhile and
// it is still in the store, or what has come behind the last it looks for. Asked for again it would have the same.
func TestBrowserGoesPastAPageOfNothing(t *testing.T) {
	budget := &Budget{Limit: 1 << 20, Chunk: EntryCost, Ceiling: EntryCost, Low: 1, PageEntries: 2, PageBytes: 100, SmallEntries: 1, SmallBytes: 1}
	open := func() (*Queue, *Consumer, *Load) {
		q := &Queue{}
		q.SetBudgets(NewBudgets(budget, budget))
		q.Restore([]Stored{{Priority: DefaultPriority, Entries: 8, First: 1, Last: 8}}, 8)
		b := q.Scan(9, 0, 4, nil)
		fx := q.Drain(b, 10, 1000, nil)
		if len(fx) != 1 || fx[0].Kind != EffectLoad {
			t.Fatalf("effects %+v, want a load", fx)
		}
		return q, b, fx[0].Load()
	}
	arrivals := func(numbers ...uint64) (all []Arrival) {
		for _, n := range numbers {
			all = append(all, Arrival{Message: durable(n), Number: n})
		}
		return all
	}
	next := func(fx []Effect) *Load {
		for _, f := range fx {
			if f.Kind == EffectLoad {
				return f.Load()
			}
		}
		return nil
	}

	q, _, load := open()
	for _, a := range arrivals(1, 2) {
		if _, ok, _ := q.Withdraw(a.entry(), nil); !ok {
			t.Fatalf("%d isn't withdrawn", a.Number)
		}
	}
	if again := next(q.Loaded(load, arrivals(1, 2), false, 1000, nil)); again == nil || again.From != 3 {
		t.Errorf("asks for %+v, want what comes from 3 on", again)
	}

	q, _, load = open()
	for _, a := range arrivals(1, 2, 3, 4) {
		if _, ok, _ := q.Withdraw(a.entry(), nil); !ok {
			t.Fatalf("%d isn't withdrawn", a.Number)
		}
	}
	fx := q.Loaded(load, arrivals(5, 6), false, 1000, nil)
	if again := next(fx); again != nil {
		t.Errorf("asks for %+v, want nothing: it looks as far as 4", again)
	}
	drained := false
	for _, f := range fx {
		drained = drained || f.Kind == EffectDrained
	}
	if !drained {
		t.Errorf("effects %+v: it isn't told that there is no more", fx)
	}
}
