package queue

import "testing"

// The tests of this file check that nothing grows, and nothing is searched again, without need.

func transient(number uint64, expiry int64) *Message {
	return &Message{Payload: []byte{byte(number)}, Priority: DefaultPriority, Expiry: expiry}
}

// settleAll settles all that fx delivered.
func settleAll(q *Queue, c *Consumer, fx []Effect, o Outcome, now int64) []Effect {
	var batch []Settlement
	for i := range fx {
		if fx[i].Kind == EffectDeliver {
			batch = append(batch, Settlement{fx[i].Entry, fx[i].Acquisition})
		}
	}
	return q.Settle(c, batch, &o, now, nil)
}

func TestExpiredEntriesBehindOthersLeaveNoBlanks(t *testing.T) {
	var q Queue
	q.Publish(transient(1, 0), 1, 0, nil) // nobody takes it
	for n := uint64(2); n < 20_000; n++ {
		q.Publish(transient(n, int64(n)), n, int64(n)-1, nil)
		for _, f := range q.Expire(100, int64(n), nil) {
			q.Finish(f.Entry, nil)
		}
	}
	if l := q.ready.level(DefaultPriority); l.n > 100 || len(l.buf) > 256 {
		t.Errorf("ring of %d places, %d of them used, for one entry", len(l.buf), l.n)
	}
	if len(q.expiry.heap) != 0 {
		t.Errorf("expiry heap has %d entries, want none", len(q.expiry.heap))
	}
}

func TestExpiryHeapForgetsWhatHasLeft(t *testing.T) {
	var q Queue
	const far = 1 << 50
	q.Publish(transient(1, far), 1, 0, nil) // keeps the heap from being thrown away
	c := q.Attach(Take, nil)
	held := q.SetLimit(c, 1, 0, nil)
	for n := uint64(2); n < 20_000; n++ {
		q.Publish(transient(n, far-int64(n)), n, 0, nil)
		settleAll(&q, c, q.SetLimit(c, n, 0, nil), Outcome{Kind: Accepted}, 0)
	}
	if len(q.expiry.heap) > 128 {
		t.Errorf("expiry heap has %d entries for one message", len(q.expiry.heap))
	}
	settleAll(&q, c, held, Outcome{Kind: Released}, 0)
	if at := q.NextExpiry(); at != far {
		t.Errorf("next expiry = %d, want %d", at, far)
	}
}

// Case 101: what a consumer can't have isn't looked at again and again, whatever it is that keeps it from it.
func TestBarredEntriesAreSearchedOnce(t *testing.T) {
	var q Queue
	c, other := q.Attach(Take, nil), q.Attach(Take, nil)
	for n := uint64(1); n <= 1000; n++ {
		q.Publish(transient(n, 0), n, 0, nil)
	}
	settleAll(&q, c, q.SetLimit(c, 1000, 0, nil), Outcome{Kind: Modified, UndeliverableHere: true}, 0)
	q.SetLimit(c, 2000, 0, nil)
	if c.seek != endKey {
		t.Errorf("consumer would search from %x again, want at the end", c.seek)
	}
	fx := q.SetLimit(other, 1, 0, nil)
	settleAll(&q, other, fx, Outcome{Kind: Released}, 0)
	if c.seek != endKey {
		t.Errorf("consumer would search from %x again after what came back isn't for it", c.seek)
	}
	q.Detach(c, false, 0, nil)
	if q.barred.n != 0 || q.Waiting() != 1000 {
		t.Errorf("%d entries are still barred, %d wait, want none and all", q.barred.n, q.Waiting())
	}
}

func TestBarredListDoesNotGrowWithLinksThatLeft(t *testing.T) {
	var q Queue
	q.Publish(transient(1, 0), 1, 0, nil)
	for now := int64(0); now < 1000*pauseMost; now += pauseMost { // a message passed around so much pauses
		q.Wake(1, now, nil)
		c := q.Attach(Take, nil)
		fx := q.SetLimit(c, 1, now, nil)
		settleAll(&q, c, fx, Outcome{Kind: Modified, UndeliverableHere: true}, now)
		if n := len(fx[0].Entry.more.barred); n != 1 {
			t.Fatalf("entry bars %d consumers, want 1", n)
		}
		q.Detach(c, false, 0, nil)
	}
}

func TestIdleQueueKeepsLittle(t *testing.T) {
	var q Queue
	c := q.Attach(TakeSettled, nil)
	for n := uint64(1); n <= 100_000; n++ {
		q.Publish(transient(n, 1<<50), n, 0, nil)
	}
	q.SetLimit(c, 100_000, 0, nil)
	q.Detach(c, false, 0, nil)
	l := q.ready.level(DefaultPriority)
	if len(l.buf) > ringKeep || q.expiry.heap != nil || q.takers != nil || !q.Empty() {
		t.Errorf("empty queue keeps a ring of %d, a heap of %d, %d consumers", len(l.buf), cap(q.expiry.heap), cap(q.takers))
	}
}

func TestAnnotationsHandedOutStayAsTheyWere(t *testing.T) {
	old := []Annotation{{"a", "1"}, {"b", "1"}}
	merged := mergeAnnotations(old, []Annotation{{"b", "2"}, {"c", "2"}})
	if old[1].Value != "1" || len(merged) != 3 || merged[1].Value != "2" || merged[2].Key != "c" {
		t.Errorf("old %v, merged %v", old, merged)
	}
	many := make([]Annotation, 0, 200)
	for i := range 200 {
		many = append(many, Annotation{string(rune('a'+i/26)) + string(rune('a'+i%26)), int64(i)})
	}
	if n := len(mergeAnnotations(old, many)); n != maxAnnotations {
		t.Errorf("%d annotations, want at most %d", n, maxAnnotations)
	}
}

func BenchmarkPublishSettle(b *testing.B) {
	var q Queue
	c := q.Attach(Take, nil)
	q.SetLimit(c, 1<<62, 0, nil)
	m := transient(1, 0)
	fx := make([]Effect, 0, 8)
	batch := make([]Settlement, 1)
	o := Outcome{Kind: Accepted}
	b.ReportAllocs()
	for n := uint64(1); b.Loop(); n++ {
		fx = q.Publish(m, n, 0, fx[:0])
		batch[0] = Settlement{fx[0].Entry, fx[0].Acquisition}
		fx = q.Settle(c, batch, &o, 0, fx[:0])
	}
}

func BenchmarkRelease(b *testing.B) {
	var q Queue
	for n := uint64(1); n <= 100_000; n++ {
		q.Publish(transient(n, 0), n, 0, nil)
	}
	c := q.Attach(Take, nil)
	fx := make([]Effect, 0, 8)
	batch := make([]Settlement, 1)
	o := Outcome{Kind: Released}
	b.ReportAllocs()
	for b.Loop() {
		fx = q.SetLimit(c, c.Given()+1, 0, fx[:0])
		batch[0] = Settlement{fx[0].Entry, fx[0].Acquisition}
		fx = q.Settle(c, batch, &o, 0, fx[:0])
	}
}
