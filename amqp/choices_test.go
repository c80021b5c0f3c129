package amqp_test

// choices are decisions taken by octets, a fuzzer's or random ones. Behind the
// last octet every choice is the first one, the common one.
type choices struct{ octets []byte }

// left reports whether there is anything to decide by.
func (c *choices) left() bool { return len(c.octets) > 0 }

func (c *choices) octet() byte {
	if len(c.octets) == 0 {
		return 0
	}
	b := c.octets[0]
	c.octets = c.octets[1:]
	return b
}

// upTo returns a number below n ≤ 65,536.
func (c *choices) upTo(n int) int {
	v := int(c.octet())
	if n > 256 {
		v = v<<8 | int(c.octet())
	}
	return v % n
}

// oneIn is true one time in n ≤ 256, and never behind the last octet.
func (c *choices) oneIn(n int) bool { return c.upTo(n) == n-1 }

// number is below n, or seldom one of those at the edges of serial numbers.
func (c *choices) number(n int) uint32 {
	if c.oneIn(30) {
		return []uint32{1<<32 - 1, 1<<32 - 2, 1 << 31, 1<<31 - 1, 1<<31 + 1, 5000, 70000}[c.upTo(7)]
	}
	return uint32(c.upTo(n))
}

// take returns at most n of the octets themselves.
func (c *choices) take(n int) []byte {
	n = min(n, len(c.octets))
	b := c.octets[:n:n]
	c.octets = c.octets[n:]
	return b
}

// spoil changes b the way a faulty peer would: an octet here and there, a piece cut out or doubled.
func (c *choices) spoil(b []byte) []byte {
	for range 1 + c.upTo(3) {
		at := c.upTo(max(len(b), 1))
		switch c.upTo(4) {
		case 0:
			if at < len(b) {
				b[at] = c.octet()
			}
		case 1:
			if at < len(b) {
				b[at] ^= 1 << c.upTo(8)
			}
		case 2:
			b = append(b[:at], b[min(len(b), at+1+c.upTo(8)):]...)
		case 3:
			piece := append([]byte(nil), b[at:min(len(b), at+1+c.upTo(8))]...)
			b = append(b[:at], append(piece, b[at:]...)...)
		}
	}
	return b
}
