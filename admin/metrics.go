package admin

import (
	"fmt"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metricsHandler serves a registry of its own: nothing that a library registers globally leaks in.
func metricsHandler(o Options) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	all := []prometheus.Collector{
		&collector{o},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if o.Store != nil {
		all = append(all, storeCollector{o.Store})
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// collector reads the broker when a scrape asks. Series are sums over the node: one per queue would
// drown a Prometheus once there are ten thousand queues.
type collector struct{ Options }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("leto_"+name, help, labels, nil)
}

var (
	buildInfo = desc("build_info", "Always 1; labels tell the node and its version.", "node", "version", "goversion")
	ready     = desc("ready", "1 while the node takes clients.")
	reloadOK  = desc("config_last_reload_successful", "1 unless the configuration that was read last couldn't be used.")
	reloadAt  = desc("config_last_reload_success_timestamp_seconds", "When the configuration in force was read, in Unix time.")

	connections      = desc("connections", "Open AMQP connections.")
	connectionsTotal = desc("connections_opened_total", "AMQP connections accepted.")
	refused          = desc("connections_refused_total", "AMQP connections turned away because of limits.connections.")
	sessions         = desc("sessions", "Open AMQP sessions.")
	links            = desc("links", "Attached AMQP links.")
	framesIn         = desc("frames_received_total", "AMQP frames read.")
	framesOut        = desc("frames_sent_total", "AMQP frames written.")
	bytesIn          = desc("network_received_bytes_total", "Bytes read from AMQP connections.")
	bytesOut         = desc("network_sent_bytes_total", "Bytes written to AMQP connections.")
	protocolErrors   = desc("protocol_errors_total", "Connections, sessions and links ended because the peer broke the protocol.")
	linksRefused     = desc("links_refused_total", "Links detached right after they were attached.")
	writeTimeouts    = desc("write_timeouts_total", "Connections cut off because the peer didn't read.")
	messagesIn       = desc("messages_received_total", "Messages received from producers.")
	messagesOut      = desc("messages_delivered_total", "Messages sent to consumers, redelivered ones included.")
	partial          = desc("partial_bytes", "Bytes of messages that have arrived in part.")
	partialEvicted   = desc("partials_evicted_total", "Links detached to make room for other messages that arrive in part.")
	handshakes       = desc("handshakes", "Connections whose peers haven't opened yet.")
	handshakesOut    = desc("handshakes_evicted_total", "Connections cut off before they opened, to make room for others.")
	handshakesLate   = desc("handshake_timeouts_total", "Connections cut off because they took too long to open.")
	loginsFailed     = desc("logins_failed_total", "Logins refused: mechanism, user or password.")
	inputBytes       = desc("input_buffer_bytes", "Bytes held for frames that are being read.")
	inputEvicted     = desc("input_evicted_total", "Connections cut off because their frames didn't end and the room was needed.")
	outputBytes      = desc("output_buffer_bytes", "Bytes encoded that peers haven't taken.")
	outputEvicted    = desc("output_evicted_total", "Connections cut off because they didn't read and the room was needed.")
	linkBytes        = desc("link_bytes", "Bytes that links are reckoned at, of a fifth of limits.memory.")

	addresses    = desc("addresses", "Addresses.")
	queues       = desc("queues", "Queues, subscriptions and temporary ones included.")
	consumers    = desc("consumers", "Consumers of all queues.")
	messages     = desc("queue_messages_sum", "Messages in all queues: ready, delayed (before they are given to anybody), or delivering (with consumers).", "state")
	added        = desc("messages_added_total", "Messages put into queues.")
	acknowledged = desc("messages_acknowledged_total", "Messages that a consumer accepted.")
	expired      = desc("messages_expired_total", "Messages that expired in a queue.")
	killed       = desc("messages_dead_lettered_total", "Messages taken out of a queue after a rejection or too many attempts.")
	dropped      = desc("messages_dropped_total", "Messages that left a queue for nowhere.")
	duplicates   = desc("messages_duplicate_total", "Messages accepted and dropped, since their address had taken one with the same id.")
	unrouted     = desc("messages_unroutable_total", "Messages that found no queue.")

	transactions     = desc("transactions", "Transactions that were declared and aren't discharged.")
	transactionsDone = desc("transactions_total", "Transactions by how they ended: committed, rolled-back, refused (to commit), killed (took too long, or became too large).", "end")

	memoryUsed  = desc("memory_used_bytes", "Bytes that messages hold, of limits.memory.")
	memoryLimit = desc("memory_limit_bytes", "What of limits.memory is for messages, 60 %; 0 is no limit.")
	pressure    = desc("alarm", "1 while producers get no credit, by cause.", "kind")
)

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildInfo, ready, reloadOK, reloadAt, connections, connectionsTotal, refused, sessions, links, framesIn, framesOut, bytesIn, bytesOut,
		protocolErrors, linksRefused, writeTimeouts, messagesIn, messagesOut, partial,
		partialEvicted, handshakes, handshakesOut, handshakesLate, loginsFailed, inputBytes, inputEvicted, outputBytes, outputEvicted, linkBytes,
		addresses, queues, consumers, messages, added, acknowledged, expired, killed, dropped, duplicates, unrouted,
		transactions, transactionsDone, memoryUsed, memoryLimit, pressure,
	} {
		ch <- d
	}
	for _, d := range spillDescs {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(buildInfo, 1, c.Name, c.Version, runtime.Version())
	gauge(ready, one(c.Ready() == nil))
	if c.Reloaded != nil {
		ok, at := c.Reloaded()
		gauge(reloadOK, one(ok))
		gauge(reloadAt, float64(at.UnixMilli())/1000)
	}

	wire := c.Wire.Stats()
	gauge(connections, float64(wire.Connections))
	gauge(sessions, float64(wire.Sessions))
	gauge(links, float64(wire.Links))
	gauge(partial, float64(wire.PartialBytes))
	gauge(handshakes, float64(wire.Handshakes))
	gauge(inputBytes, float64(wire.InputBytes))
	gauge(outputBytes, float64(wire.OutputBytes))
	gauge(linkBytes, float64(wire.LinkBytes))
	counter(partialEvicted, wire.PartialsEvicted)
	counter(handshakesOut, wire.HandshakesEvicted)
	counter(handshakesLate, wire.HandshakeTimeouts)
	counter(loginsFailed, wire.LoginsFailed)
	counter(inputEvicted, wire.InputsEvicted)
	counter(outputEvicted, wire.OutputsEvicted)
	counter(connectionsTotal, wire.ConnectionsTotal)
	counter(refused, wire.ConnectionsRefused)
	counter(framesIn, wire.FramesIn)
	counter(framesOut, wire.FramesOut)
	counter(bytesIn, wire.BytesIn)
	counter(bytesOut, wire.BytesOut)
	counter(protocolErrors, wire.ProtocolErrors)
	counter(linksRefused, wire.LinksRefused)
	counter(writeTimeouts, wire.WriteTimeout)
	counter(messagesIn, wire.MessagesIn)
	counter(messagesOut, wire.MessagesOut)
	gauge(transactions, float64(wire.Transactions))
	counter(transactionsDone, wire.TransactionsCommitted, "committed")
	counter(transactionsDone, wire.TransactionsRolledBack, "rolled-back")
	counter(transactionsDone, wire.TransactionsRefused, "refused")
	counter(transactionsDone, wire.TransactionsKilled, "killed")

	totals := c.Broker.Totals()
	gauge(addresses, float64(totals.Addresses))
	gauge(queues, float64(totals.Queues))
	gauge(consumers, float64(totals.Consumers))
	gauge(messages, float64(totals.Messages), "ready")
	gauge(messages, float64(totals.Delayed), "delayed")
	gauge(messages, float64(totals.Delivering), "delivering")
	counter(added, totals.Added)
	counter(acknowledged, totals.Acknowledged)
	counter(expired, totals.Expired)
	counter(killed, totals.Killed)
	counter(dropped, totals.Dropped)
	counter(duplicates, totals.Duplicates)
	counter(unrouted, totals.Unrouted)
	gauge(memoryUsed, float64(totals.Memory))
	gauge(memoryLimit, float64(totals.MemoryLimit))
	gauge(pressure, one(c.Broker.Pressure()), "memory")
	collectSpill(ch, totals, c.Broker.Spill())
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
