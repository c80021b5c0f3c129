package server

import "sync/atomic"

// Stats are the server's gauges and counters at one moment.
type Stats struct {
	Connections, Sessions, Links               int64
	ConnectionsTotal, ConnectionsRefused       uint64
	FramesIn, FramesOut, BytesIn, BytesOut     uint64
	MessagesIn, MessagesOut                    uint64
	ProtocolErrors, LinksRefused, WriteTimeout uint64
	PartialBytes                               int64

	Transactions           int64  // that aren't discharged
	TransactionsCommitted  uint64 //
	TransactionsRolledBack uint64 // as their controllers asked, or with their control links
	TransactionsRefused    uint64 // that were to commit and couldn't
	TransactionsKilled     uint64 // rolled back unasked: they took too long, or became too large
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
}

// Stats returns the server's gauges and counters.
func (s *Server) Stats() Stats {
	c := &s.count
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
	}
}
