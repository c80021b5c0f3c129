// Package server is the shell around the protocol machine: listeners, sockets
// and timers, and the one place that knows both the wire and the queues.
//
// A connection has a reader, which feeds the machine and acts on its events,
// and a writer, which hands over what queues delivered and writes many frames
// in one system call. Both enter the machine through the connection's guard;
// the engine and its committer reach it only by the connection's mailbox, so
// nothing that holds a queue's guard ever waits for a connection.
//
// Addresses that aren't queues (management, tokens, links between brokers) are
// Nodes, registered by prefix. Queues themselves, routing and outcomes belong to
// package engine; what frames mean belongs to package amqp.
package server
