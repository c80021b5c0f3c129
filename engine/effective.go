package engine

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// EffectiveSetting is one key of the settings in force at an address.
type EffectiveSetting struct {
	Key   string // as the configuration has it
	Value any    // string, bool, int or float64
	Match string // the pattern that gave it; empty: it is the default
}

// EffectiveSettings returns the settings that all of these come to at an address, in the order of Settings.
func EffectiveSettings(all []AddressSettings, address string) []EffectiveSetting {
	return compileSettings(all).effective(address)
}

// EffectiveSettings returns the settings in force at an address, which need not exist.
func (b *Broker) EffectiveSettings(address string) []EffectiveSetting {
	if n, err := parseName(address, RoutingUnset); err == nil {
		address = n.address
	}
	return b.settings.Load().effective(address)
}

func (t *settingsTable) effective(address string) []EffectiveSetting {
	s := DefaultSettings()
	values := reflect.ValueOf(&s).Elem()
	from := make([]string, values.NumField())
	t.each(address, func(a *AddressSettings) {
		a.over(&s)
		told := reflect.ValueOf(a).Elem()
		for i := range from {
			if f := told.FieldByName(values.Type().Field(i).Name); f.IsValid() && !f.IsNil() {
				from[i] = a.Match
			}
		}
	})
	all := make([]EffectiveSetting, 0, len(from))
	for i := range from {
		if key := settingKey(values.Type().Field(i).Name); key != "" {
			all = append(all, EffectiveSetting{key, plainSetting(values.Field(i).Interface()), from[i]})
		}
	}
	return all
}

// otherKeys are those whose names are others in Go.
var otherKeys = map[string]string{
	"DefaultAddressRouting": "default-address-routing-type",
	"DefaultQueueRouting":   "default-queue-routing-type",
	"IDCacheSize":           "id-cache-size",
	"RedeliveryMultiplier":  "redelivery-delay-multiplier",
	"RedeliverySpread":      "redelivery-collision-avoidance-factor",
}

// settingKey returns the configuration's name of a field: DeadLetterAddress is dead-letter-address. Empty: it has none.
func settingKey(field string) string {
	if key, other := otherKeys[field]; other {
		return key
	}
	var key strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			key.WriteByte('-')
		}
		key.WriteRune(unicode.ToLower(r))
	}
	return key.String()
}

// plainSetting returns a value as the configuration has it.
func plainSetting(v any) any {
	if s, ok := v.(fmt.Stringer); ok {
		return s.String()
	}
	return v
}
