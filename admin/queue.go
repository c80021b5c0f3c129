package admin

import (
	"net/http"
	"strings"

	"github.com/letomq/leto/engine"
)

// queueName takes apart what names a queue in a path: its name, which is its address's too, or ADDRESS::QUEUE.
func queueName(r *http.Request) (address, queue string) {
	name := r.PathValue("queue")
	if address, queue, full := strings.Cut(name, "::"); full {
		return address, queue
	}
	return name, name
}

func queueShow(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := broker.Queue(queueName(r))
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, http.StatusOK, describe(q))
	}
}

// newQueue is what a request to make a queue or an address says.
type newQueue struct {
	Routing string `json:"routing,omitempty" doc:"absent: what the address has, or its settings say" enum:"anycast|multicast"`
}

// queueCreate makes a queue, with its address, that isn't there: 201, and 200 when it was there already.
func queueCreate(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		if status, ok := create(w, r, broker, engine.QueueSpec{Address: address, Queue: queue}); ok {
			q, err := broker.Queue(address, queue)
			if err != nil {
				refuse(w, err)
				return
			}
			answer(w, status, describe(q))
		}
	}
}

// create makes what a request says and the specification names. When it doesn't, it has answered.
func create(w http.ResponseWriter, r *http.Request, broker Broker, spec engine.QueueSpec) (status int, ok bool) {
	var body newQueue
	if !readBody(w, r, &body) {
		return 0, false
	}
	switch body.Routing {
	case "":
	case engine.Anycast.String():
		spec.Routing = engine.Anycast
	case engine.Multicast.String():
		spec.Routing = engine.Multicast
	default:
		problem(w, http.StatusBadRequest, "routing is anycast or multicast")
		return 0, false
	}
	made, err := broker.Create(spec)
	if err == nil {
		err = broker.Sync()
	}
	if err != nil {
		refuse(w, err)
		return 0, false
	}
	if made {
		return http.StatusCreated, true
	}
	return http.StatusOK, true
}

// queueDelete deletes a queue with its messages, or with if_empty or if_unused only one without.
func queueDelete(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		remove(w, r, broker, address, queue)
	}
}

// remove deletes a queue, or an address.
func remove(w http.ResponseWriter, r *http.Request, broker Broker, address, queue string) {
	var only engine.Condition
	for name, value := range map[string]*bool{"if_empty": &only.Empty, "if_unused": &only.Unused} {
		switch r.URL.Query().Get(name) {
		case "", "false":
		case "true":
			*value = true
		default:
			problem(w, http.StatusBadRequest, name+" is true or false")
			return
		}
	}
	err := broker.DeleteIf(address, queue, only)
	if err == nil {
		err = broker.Sync()
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
