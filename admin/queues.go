package admin

import (
	"bufio"
	"encoding/json"
	"net/http"

	"github.com/letomq/leto/engine"
)

// Queue is a queue in the API.
type Queue struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	Routing      string `json:"routing" enum:"anycast|multicast"`
	Messages     int    `json:"messages" doc:"that wait"`
	Stored       int    `json:"stored" doc:"of messages, in the store only"`
	Spilled      int    `json:"spilled" doc:"of messages, on disk only though they needn't survive"`
	Delayed      int    `json:"delayed" doc:"wait before they are given to anybody, and are not among messages"`
	Delivering   int    `json:"delivering" doc:"with consumers, or on their way to another queue"`
	Bytes        int64  `json:"bytes" doc:"of all that are in it"`
	Consumers    int    `json:"consumers"`
	Added        uint64 `json:"added" doc:"since the queue was made"`
	Acknowledged uint64 `json:"acknowledged" doc:"accepted, since the queue was made"`
	Expired      uint64 `json:"expired" doc:"since the queue was made"`
	Killed       uint64 `json:"killed" doc:"dead-lettered, or dropped for want of a dead-letter address, since the queue was made"`
	Durable      bool   `json:"durable" doc:"it and its durable messages survive a restart"`
	Paused       bool   `json:"paused" doc:"gives nothing to consumers"`
	Temporary    bool   `json:"temporary" doc:"a dynamic node, or a subscription that ends with its link"`
}

func describe(q engine.QueueInfo) Queue {
	return Queue{
		Name: q.Name, Address: q.Address, Routing: q.Routing.String(),
		Messages: q.Messages, Stored: q.Stored, Spilled: q.Spilled, Delayed: q.Delayed, Delivering: q.Delivering, Bytes: q.Bytes, Consumers: q.Consumers,
		Added: q.Added, Acknowledged: q.Acknowledged, Expired: q.Expired, Killed: q.Killed,
		Durable: q.Durable, Paused: q.Paused, Temporary: q.Temporary,
	}
}

// queueList answers with an array of Queue, in the engine's order.
func queueList(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		all := broker.Queues()
		list(w, len(all), func(i int) any { return describe(all[i]) })
	}
}

// list answers with an array. It is written as it is encoded: a hundred thousand queues never stand in memory as text.
func list(w http.ResponseWriter, n int, item func(i int) any) {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	encoder := json.NewEncoder(out)
	_ = out.WriteByte('[') // bufio keeps the first error for Flush
	for i := range n {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		if encoder.Encode(item(i)) != nil {
			return // the peer left
		}
	}
	_, _ = out.WriteString("]\n")
	_ = out.Flush() // a peer that left needs no answer
}
