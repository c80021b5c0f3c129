package engine

import (
	"slices"
	"strings"
	"sync"
)

// settingsTable finds the settings of an address. It is compiled once: patterns without wildcards are looked up, the
// others tried from the least to the most specific.
type settingsTable struct {
	exact    map[string][]AddressSettings
	patterns []pattern

	mu     sync.Mutex
	shared map[Settings]*Settings // equal settings are one value: 100,000 addresses have few different ones

	policies policies // of these settings, so that they go with them
}

type pattern struct {
	words []string
	AddressSettings
}

func compileSettings(all []AddressSettings) *settingsTable {
	t := &settingsTable{exact: map[string][]AddressSettings{}, shared: map[Settings]*Settings{}}
	for _, s := range all {
		words := strings.Split(s.Match, ".")
		if slices.Contains(words, "*") || slices.Contains(words, "#") {
			t.patterns = append(t.patterns, pattern{words, s})
		} else {
			t.exact[s.Match] = append(t.exact[s.Match], s)
		}
	}
	slices.SortStableFunc(t.patterns, func(a, b pattern) int { return compareSpecific(a.words, b.words) })
	return t
}

// find returns the settings in force at an address. Nobody may change them.
func (t *settingsTable) find(address string) *Settings {
	s := DefaultSettings()
	t.each(address, func(a *AddressSettings) { a.over(&s) })
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.shared[s]
	if known == nil {
		known = &s
		t.shared[s] = known
	}
	return known
}

// each calls f with all that match an address, the least specific first.
func (t *settingsTable) each(address string, f func(*AddressSettings)) {
	words := strings.Split(address, ".")
	for i := range t.patterns {
		if p := &t.patterns[i]; matchWords(p.words, words) {
			f(&p.AddressSettings)
		}
	}
	exact := t.exact[address]
	for i := range exact {
		f(&exact[i])
	}
}

// compareSpecific orders patterns: at the first word that differs a name is more specific than '*', that than the
// end of the pattern, and that than '#'.
func compareSpecific(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if d := specific(a, i) - specific(b, i); d != 0 {
			return d
		}
	}
	return 0
}

func specific(words []string, i int) int {
	switch {
	case i >= len(words):
		return 1
	case words[i] == "#":
		return 0
	case words[i] == "*":
		return 2
	}
	return 3
}

// matchWords reports whether a pattern matches an address. After a failure it goes back to the last '#' only, which is
// enough, and keeps the work to the product of the lengths.
func matchWords(pattern, words []string) bool {
	p, w, hash, mark := 0, 0, -1, 0
	for w < len(words) {
		switch {
		case p < len(pattern) && pattern[p] == "#":
			hash, mark = p, w
			p++
		case p < len(pattern) && (pattern[p] == "*" || pattern[p] == words[w]):
			p++
			w++
		case hash >= 0:
			mark++
			p, w = hash+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "#" {
		p++
	}
	return p == len(pattern)
}

// over writes what is set over s.
func (a *AddressSettings) over(s *Settings) {
	set(&s.DeadLetterAddress, a.DeadLetterAddress)
	set(&s.ExpiryAddress, a.ExpiryAddress)
	set(&s.MaxDeliveryAttempts, a.MaxDeliveryAttempts)
	set(&s.RedeliveryDelay, a.RedeliveryDelay)
	set(&s.RedeliveryMultiplier, a.RedeliveryMultiplier)
	set(&s.RedeliverySpread, a.RedeliverySpread)
	set(&s.MaxRedeliveryDelay, a.MaxRedeliveryDelay)
	set(&s.RejectPolicy, a.RejectPolicy)
	set(&s.CountOnLoss, a.CountOnLoss)
	set(&s.DefaultAddressRouting, a.DefaultAddressRouting)
	set(&s.DefaultQueueRouting, a.DefaultQueueRouting)
	set(&s.AutoCreateAddresses, a.AutoCreateAddresses)
	set(&s.AutoCreateQueues, a.AutoCreateQueues)
	set(&s.AutoDeleteQueues, a.AutoDeleteQueues)
	set(&s.DefaultDurable, a.DefaultDurable)
	set(&s.IDCacheSize, a.IDCacheSize)
	set(&s.AutoCreateDeadLetterResources, a.AutoCreateDeadLetterResources)
	set(&s.DeadLetterQueuePrefix, a.DeadLetterQueuePrefix)
	set(&s.DeadLetterQueueSuffix, a.DeadLetterQueueSuffix)
	set(&s.AutoCreateExpiryResources, a.AutoCreateExpiryResources)
	set(&s.ExpiryQueuePrefix, a.ExpiryQueuePrefix)
	set(&s.ExpiryQueueSuffix, a.ExpiryQueueSuffix)
	set(&s.ExpiryDelay, a.ExpiryDelay)
	set(&s.MinExpiryDelay, a.MinExpiryDelay)
	set(&s.MaxExpiryDelay, a.MaxExpiryDelay)
	set(&s.NoExpiry, a.NoExpiry)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
