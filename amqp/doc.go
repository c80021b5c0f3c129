// Package amqp is the AMQP 1.0 protocol machine: connection, sessions, links,
// credit, windows, deliveries and their settlement, and the SASL exchange.
//
// It is given bytes and time, and yields events and bytes. It knows no socket,
// goroutine or clock, and it plays both ends: a server answers, a client starts.
//
//	n, ev := conn.Next(now, buffered)   // one event at a time, in wire order
//	conn.Accept(nil)                    // what the shell decides, before the next event
//	out := conn.Output(now, spare)      // what is to be written
//	again := conn.Tick(now)             // heartbeats and time-outs
//
// What a frame means for queues is not its business: it checks windows, credit
// and the order of frames, keeps the unsettled deliveries, and leaves addresses,
// outcomes and credit policy to the shell (amqp/server, or a client).
//
// A Conn and everything reached through it belong to whoever holds the
// connection: one goroutine at a time. Of transactions it knows what stands on the
// wire: which of them a transfer or an outcome belongs to. Not here yet:
// resumption of unsettled deliveries (a peer's unsettled map is taken as empty),
// SCRAM and EXTERNAL (Mechanism is their place).
package amqp
