package bench

import "testing"

func stamps(producer uint32, sequences ...uint64) []stamp {
	var all []stamp
	for _, n := range sequences {
		all = append(all, stamp{producer: producer, sequence: n})
	}
	return all
}

func TestLedgerOfADrainFindsGaps(t *testing.T) {
	l := newLedger(0)
	l.open = true
	l.enter(stamps(0, 0, 1, 2, 5))
	l.enter(stamps(7, 1, 2, 2))
	if gaps := l.gaps(); gaps != 3 {
		t.Errorf("%d gaps, want 3: 3 and 4 of producer 0, 0 of producer 7", gaps)
	}
	if d := l.producers[7].duplicates; d != 1 {
		t.Errorf("%d duplicates of producer 7, want 1", d)
	}
	l.enter(stamps(0, 3, 4))
	l.enter(stamps(7, 0))
	if gaps := l.gaps(); gaps != 0 {
		t.Errorf("%d gaps after they came, want 0", gaps)
	}
}

func TestLedgerOfARunKnowsItsProducers(t *testing.T) {
	l := newLedger(1)
	l.enter(stamps(0, 0))
	l.enter(stamps(1, 0, 1))
	if l.producers[0].received != 1 || l.foreign != 2 {
		t.Errorf("received %d, foreign %d; want 1 and 2", l.producers[0].received, l.foreign)
	}
}
