package server

import "sync/atomic"

// Stats are the server's gauges and counters at one moment.
type Stats struct {
	Connections, Sessions, Links               int64
	ConnectionsTotal, ConnectionsRefused       uint64
	FramesIn, FramesOut, BytesIn, BytesOut     uint64
	MessagesIn, MessagesOut                    uint64
	ProtocolErrors, LinksRefused, WriteTimeout uint64

	Transactions                          int64  // that aren't discharged
	TransactionsCommitted                 uint64 //
	TransactionsRolledBack                uint64 // as their controllers asked, or with their control links
	TransactionsRefused                   uint64 // that were to commit and couldn't
	TransactionsKilled                    uint64 // rolled back unasked: they took too long, or became too large
	PartialBytes, InputBytes, OutputBytes int64
	LinkBytes                             int64
	Handshakes                            int64  // connections that haven't opened
	HandshakesEvicted, HandshakeTimeouts  uint64 // went for want of room; took too long
	InputsEvicted, OutputsEvicted         uint64 // connections cut off for want of memory
	PartialsEvicted                       uint64 // links that lost a message for want of memory
	LoginsFailed                          uint64
}

type counters struct {
	connections, sessions, links           atomic.Int64
	connectionsTotal, connectionsRefused   atomic.Uint64
	framesIn, framesOut, bytesIn, bytesOut atomic.Uint64
	messagesIn, messagesOut                atomic.Uint64
	protocolErrors, linksRefused           atomic.Uint64
	writeTimeouts                          atomic.Uint64

	transactions                                  atomic.Int64
	transactionsCommitted, transactionsRolledBack atomic.Uint64
	transactionsRefused, transactionsKilled       atomic.Uint64
	handshakesEvicted, handshakeTimeouts          atomic.Uint64
	partialsEvicted, loginsFailed                 atomic.Uint64
	linkBytes                                     atomic.Int64
}

// Stats returns the server's gauges and counters.
func (s *Server) Stats() Stats {
	c := &s.count
	s.mu.Lock()
	handshakes := int64(s.handshakes.waiting.Len())
	s.mu.Unlock()
	return Stats{
		Connections: c.connections.Load(), Sessions: c.sessions.Load(), Links: c.links.Load(),
		ConnectionsTotal: c.connectionsTotal.Load(), ConnectionsRefused: c.connectionsRefused.Load(),
		FramesIn: c.framesIn.Load(), FramesOut: c.framesOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		MessagesIn: c.messagesIn.Load(), MessagesOut: c.messagesOut.Load(),
		ProtocolErrors: c.protocolErrors.Load(), LinksRefused: c.linksRefused.Load(),
		WriteTimeout: c.writeTimeouts.Load(), PartialBytes: s.partials.bytes.Load(),
		Transactions:          c.transactions.Load(),
		TransactionsCommitted: c.transactionsCommitted.Load(), TransactionsRolledBack: c.transactionsRolledBack.Load(),
		TransactionsRefused: c.transactionsRefused.Load(), TransactionsKilled: c.transactionsKilled.Load(),
		InputBytes: s.inputs.bytes.Load(), OutputBytes: s.outputs.bytes.Load(), LinkBytes: c.linkBytes.Load(),
		Handshakes: handshakes, HandshakesEvicted: c.handshakesEvicted.Load(), HandshakeTimeouts: c.handshakeTimeouts.Load(),
		InputsEvicted: s.inputs.evicted.Load(), OutputsEvicted: s.outputs.evicted.Load(),
		PartialsEvicted: c.partialsEvicted.Load(), LoginsFailed: c.loginsFailed.Load(),
	}
}
