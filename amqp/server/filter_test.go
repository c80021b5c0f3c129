package server

import (
	"testing"

	"github.com/letomq/leto/codec"
)

// TestFilters, cases 217, 218 and 220: a filter that would leave messages out is refused, in whatever form clients send
// it; others are not echoed, which says that they aren't applied.
func TestFilters(t *testing.T) {
	const selector, noLocal codec.Symbol = "apache.org:selector-filter:string", "apache.org:no-local-filter:list"
	for name, filter := range map[string]struct {
		pair    codec.Pair
		refused bool
	}{
		"selector by code":     {codec.Pair{Key: codec.Symbol("jms-selector"), Value: codec.Described{Descriptor: uint64(0x468C00000004), Value: "a = 1"}}, true},
		"selector by name":     {codec.Pair{Key: codec.Symbol("s"), Value: codec.Described{Descriptor: selector, Value: "a = 1"}}, true},
		"selector by key":      {codec.Pair{Key: selector, Value: "a = 1"}, true},
		"no-local by code":     {codec.Pair{Key: codec.Symbol("no-local"), Value: codec.Described{Descriptor: uint64(0x468C00000003), Value: codec.List{}}}, true},
		"no-local by name":     {codec.Pair{Key: codec.Symbol("n"), Value: codec.Described{Descriptor: noLocal, Value: codec.List{}}}, true},
		"one that nobody has":  {codec.Pair{Key: codec.Symbol("x"), Value: codec.Described{Descriptor: codec.Symbol("example:x"), Value: "y"}}, false},
		"selector's key alone": {codec.Pair{Key: selector, Value: codec.Described{Descriptor: codec.Symbol("example:x"), Value: "y"}}, false},
		"descriptor of a list": {codec.Pair{Key: codec.Symbol("x"), Value: codec.Described{Descriptor: codec.List{}, Value: "y"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, nil).opened("c")
			attach := receiverAttach("r", 0, "q")
			attach.Source.Filter = codec.Map{filter.pair}
			if filter.refused {
				_, err := p.refused(attach)
				p.condition(err, notImplemented)
			} else if answer := p.attach(attach); answer.Source.Filter != nil {
				t.Errorf("answer says that %v is applied", answer.Source.Filter)
			}
		})
	}
}
