// Package bench puts load on an AMQP 1.0 broker and measures it: throughput,
// latency, and whether every message arrived once and in order. It speaks
// through the protocol machine of package amqp, one connection per producer and
// consumer, so that the load costs less than the broker it is put on. Each peer
// is owned by one goroutine; they share only counters and the ledger.
package bench
