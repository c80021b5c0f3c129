package engine

// lifetime changes when a message expires to what the settings of its address allow, by Artemis's rules: expiry-delay is
// for messages that don't say when, and the other two then mean nothing; without it a message expires no sooner and no
// later than they say, and one that doesn't say when at the latest, or else the earliest. header.ttl follows; what the
// sender has written into its properties stays.
func (s *Settings) lifetime(m *Message, now func() int64) {
	if s.ExpiryDelay < 0 && s.MinExpiryDelay < 0 && s.MaxExpiryDelay < 0 && !s.NoExpiry {
		return
	}
	from := m.Arrived
	if from == 0 {
		from = now()
	}
	after := func(delay int64) int64 {
		if delay == 0 {
			return 0
		}
		return from + min(delay, maxLifetime)
	}
	expiry := m.Expiry
	switch {
	case s.NoExpiry:
		expiry = 0
	case s.ExpiryDelay >= 0:
		if expiry == 0 {
			expiry = after(s.ExpiryDelay)
		}
	case expiry == 0 && s.MaxExpiryDelay >= 0:
		expiry = after(s.MaxExpiryDelay)
	case expiry == 0:
		expiry = after(s.MinExpiryDelay)
	case s.MinExpiryDelay >= 0 && expiry < from+min(s.MinExpiryDelay, maxLifetime):
		expiry = after(s.MinExpiryDelay)
	case s.MaxExpiryDelay >= 0 && expiry > from+min(s.MaxExpiryDelay, maxLifetime):
		expiry = after(s.MaxExpiryDelay)
	}
	if expiry == m.Expiry {
		return
	}
	m.Expiry = expiry
	m.TTL, m.HeaderTTL = 0, expiry != 0
	if expiry != 0 {
		m.Arrived = from
		m.TTL = uint32(min(max(expiry-from, 1), 1<<32-1))
	}
}

// maxLifetime keeps sums of a time and a delay, in milliseconds, from running over: a thousand years.
const maxLifetime = 1000 * 365 * 24 * 3600 * 1000
