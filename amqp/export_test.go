package amqp

import "github.com/letomq/leto/codec"

// Unsettled returns how many deliveries of the session are unsettled.
func (s *Session) Unsettled() (outgoing, incoming int) {
	return s.outgoing.len(), s.incoming.len()
}

// AskDrain has a receiver ask that its credit be used up now.
func (l *Link) AskDrain() {
	l.session.flush() // an earlier flow that comes later would take the drain back
	f := l.session.sessionFlow()
	f.Handle = codec.Some(l.handle)
	f.DeliveryCount = codec.Some(l.deliveryCount)
	f.LinkCredit = codec.Some(uint32(max(ahead(l.announced, l.deliveryCount), 0)))
	f.Drain = true
	l.session.conn.write(l.session.channel, &f)
}

// Links returns how many handles of ours are taken.
func (c *Conn) Links() int {
	n := 0
	for _, s := range c.ours {
		if s == nil {
			continue
		}
		for _, l := range s.ours {
			if l != nil {
				n++
			}
		}
	}
	return n
}
