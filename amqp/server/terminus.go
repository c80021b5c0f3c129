package server

import (
	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// Terminus capabilities that say what kind of node is meant.
const (
	capabilityQueue          codec.Symbol = "queue"
	capabilityTopic          codec.Symbol = "topic"
	capabilityTemporaryQueue codec.Symbol = "temporary-queue"
	capabilityTemporaryTopic codec.Symbol = "temporary-topic"
)

// routingOf reads the routing type from a terminus's capabilities.
func routingOf(capabilities []codec.Symbol) (engine.Routing, *amqp.Error) {
	routing := engine.RoutingUnset
	for _, c := range capabilities {
		asked := engine.RoutingUnset
		switch c {
		case capabilityQueue, capabilityTemporaryQueue:
			asked = engine.Anycast
		case capabilityTopic, capabilityTemporaryTopic:
			asked = engine.Multicast
		default:
			continue
		}
		if routing != engine.RoutingUnset && routing != asked {
			return 0, amqp.Errorf(amqp.ConditionInvalidField, "capabilities ask for a queue and a topic at once")
		}
		routing = asked
	}
	return routing, nil
}

// capabilitiesOf returns those of the capabilities asked for that hold.
func capabilitiesOf(asked []codec.Symbol, actual engine.Routing) []codec.Symbol {
	var held []codec.Symbol
	for _, c := range asked {
		switch c {
		case capabilityQueue, capabilityTemporaryQueue:
			if actual == engine.Anycast {
				held = append(held, c)
			}
		case capabilityTopic, capabilityTemporaryTopic:
			if actual == engine.Multicast {
				held = append(held, c)
			}
		}
	}
	return held
}

const lifetimePolicy codec.Symbol = "lifetime-policy"

var lifetimes = map[engine.Lifetime]codec.Code{
	engine.DeleteOnClose:             codec.CodeDeleteOnClose,
	engine.DeleteOnNoLinks:           codec.CodeDeleteOnNoLinks,
	engine.DeleteOnNoMessages:        codec.CodeDeleteOnNoMessages,
	engine.DeleteOnNoLinksOrMessages: codec.CodeDeleteOnNoLinksOrMessages,
}

// lifetimeOf reads the lifetime policy of a dynamic node [3.5.10–3.5.13];
// delete-on-close when none, or none that is known, is asked for.
func lifetimeOf(properties codec.Map) engine.Lifetime {
	value, _ := properties.Get(string(lifetimePolicy))
	described, ok := value.(codec.Described)
	if !ok {
		return engine.DeleteOnClose
	}
	for lifetime, code := range lifetimes {
		switch d := described.Descriptor.(type) {
		case uint64:
			if d == uint64(code) {
				return lifetime
			}
		case codec.Symbol:
			if d == lifetimeNames[code] {
				return lifetime
			}
		}
	}
	return engine.DeleteOnClose
}

var lifetimeNames = map[codec.Code]codec.Symbol{
	codec.CodeDeleteOnClose:             "amqp:delete-on-close:list",
	codec.CodeDeleteOnNoLinks:           "amqp:delete-on-no-links:list",
	codec.CodeDeleteOnNoMessages:        "amqp:delete-on-no-messages:list",
	codec.CodeDeleteOnNoLinksOrMessages: "amqp:delete-on-no-links-or-messages:list",
}

// lifetimeProperties are the properties of a dynamic node as it was made.
func lifetimeProperties(l engine.Lifetime) codec.Map {
	return codec.Map{{Key: lifetimePolicy, Value: codec.Described{Descriptor: uint64(lifetimes[l]), Value: codec.List{}}}}
}
