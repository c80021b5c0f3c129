package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store"
)

// modelKeep says how many ids the addresses of the model keep.
var modelKeep = map[string]int{"a": 1, "b": 25, "c": 900}

func (m *model) remember(r *engine.Record) {
	if m.ids == nil {
		m.ids = map[string][]engine.DuplicateID{}
	}
	address := r.Remembered.Address
	if r.Kind == engine.RecordForget {
		delete(m.ids, address)
		return
	}
	ids := append(slices.Clip(m.ids[address]), r.Remembered.ID)
	m.ids[address] = ids[max(len(ids)-r.Remembered.Keep, 0):]
	m.last = max(m.last, r.Number)
}

// identify makes random records of ids.
func (m *model) identify(r *rand.Rand, add func(...engine.Record)) {
	for _, address := range []string{"a", "b", "c"} {
		if r.IntN(50) == 0 {
			add(engine.Record{Kind: engine.RecordForget, Remembered: &engine.Remembered{Address: address}})
		}
		for range r.IntN(30) {
			m.last++
			id := engine.NewDuplicateID([]byte(fmt.Sprint(address, m.last)))
			add(engine.Record{Kind: engine.RecordRemember, Number: m.last, Remembered: &engine.Remembered{
				Address: address, ID: id, Keep: modelKeep[address],
			}})
		}
	}
}

func (m *model) diffIDs(s *store.Store) error {
	for address, keep := range modelKeep {
		got, err := s.Remembered(address, keep)
		if err != nil {
			return err
		}
		if want := m.ids[address]; !slices.Equal(got, want) {
			return fmt.Errorf("address %s: %d ids, want %d, or others", address, len(got), len(want))
		}
	}
	return nil
}
