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
	Routing      string `json:"routing"` // anycast or multicast
	Messages     int    `json:"messages"`
	Stored       int    `json:"stored"`  // of messages, in the store only, and
	Spilled      int    `json:"spilled"` // on disk only though they needn't survive
	Delayed      int    `json:"delayed"` // wait before they are given to anybody, and not among messages
	Delivering   int    `json:"delivering"`
	Bytes        int64  `json:"bytes"`
	Consumers    int    `json:"consumers"`
	Added        uint64 `json:"added"` // since the queue was made, as are the next three
	Acknowledged uint64 `json:"acknowledged"`
	Expired      uint64 `json:"expired"`
	Killed       uint64 `json:"killed"`
	Durable      bool   `json:"durable"`
	Paused       bool   `json:"paused"` // gives nothing to consumers
	Temporary    bool   `json:"temporary"`
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
