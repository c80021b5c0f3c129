package server

import (
	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// Filters that leave messages out, by the names under which clients know them. A filter that
// isn't applied is left out of the answer [3.5.8], but JMS clients don't look: they would take
// messages that they have asked not to get.
var restrictive = map[codec.Symbol]uint64{
	"apache.org:selector-filter:string": 0x0000_468C_0000_0004,
	"apache.org:no-local-filter:list":   0x0000_468C_0000_0003,
}

// refuseFilters is an error when a source has a filter that would have to leave messages out.
// A filter is known by its descriptor, or by its key where the value isn't described.
func refuseFilters(filters codec.Map) *amqp.Error {
	for _, filter := range filters {
		name := filter.Key
		if described, ok := filter.Value.(codec.Described); ok {
			name = described.Descriptor
		}
		for known, code := range restrictive {
			if name == any(known) || name == any(string(known)) || name == any(code) {
				return amqp.Errorf(amqp.ConditionNotImplemented, "filter %s isn't supported by this version", known)
			}
		}
	}
	return nil
}
