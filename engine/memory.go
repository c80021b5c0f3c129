package engine

// Pressure reports whether so much memory is used that producers should get no more credit.
func (b *Broker) Pressure() bool { return false }

// OnRelief has f called each time Pressure ends. It must not block. The returned function takes it back.
func (b *Broker) OnRelief(f func()) (cancel func()) { return func() {} }
