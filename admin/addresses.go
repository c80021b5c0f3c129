package admin

import (
	"net/http"

	"github.com/letomq/leto/engine"
)

// Address is an address in the API.
type Address struct {
	Name      string `json:"name"`
	Routing   string `json:"routing" enum:"anycast|multicast"`
	Queues    int    `json:"queues" doc:"how many there are behind it"`
	Producers int    `json:"producers" doc:"links that send to it"`
	Unrouted  uint64 `json:"unrouted" doc:"messages that found no queue"`
	Temporary bool   `json:"temporary" doc:"a dynamic node"`
}

// AddressDetail is an address with what is behind it and what holds for it.
type AddressDetail struct {
	Address
	QueueList []Queue   `json:"queue_list" doc:"the queues behind it"`
	Settings  []Setting `json:"settings"`
}

// Setting is one key of the settings in force at an address.
type Setting struct {
	Key   string `json:"key" doc:"as the configuration has it"`
	Value any    `json:"value" doc:"text, true or false, or a number"`
	Match string `json:"match,omitempty" doc:"of the address-settings that say so; absent: it is the default"`
}

func describeAddress(a engine.AddressInfo) Address {
	return Address{
		Name: a.Name, Routing: a.Routing.String(), Queues: a.Queues, Producers: a.Producers,
		Unrouted: a.Unrouted, Temporary: a.Temporary,
	}
}

func settings(all []engine.EffectiveSetting) []Setting {
	described := make([]Setting, len(all))
	for i, s := range all {
		described[i] = Setting(s)
	}
	return described
}

// addressList answers with an array of Address, ordered by name.
func addressList(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		all := broker.Addresses()
		list(w, len(all), func(i int) any { return describeAddress(all[i]) })
	}
}

func addressShow(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		showAddress(w, broker, http.StatusOK, r.PathValue("address"))
	}
}

func showAddress(w http.ResponseWriter, broker Broker, status int, name string) {
	a, queues, err := broker.Address(name)
	if err != nil {
		refuse(w, err)
		return
	}
	d := AddressDetail{Address: describeAddress(a), QueueList: []Queue{}, Settings: settings(broker.EffectiveSettings(name))}
	for _, q := range queues {
		d.QueueList = append(d.QueueList, describe(q))
	}
	answer(w, status, d)
}

// settingsShow answers with the settings that are, or would be, in force at an address.
func settingsShow(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, settings(broker.EffectiveSettings(r.PathValue("address"))))
	}
}

// addressCreate makes an address that isn't there, for anycast with the queue of its name: 201, and 200 when it was
// there already.
func addressCreate(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("address")
		if status, ok := create(w, r, broker, engine.QueueSpec{Address: name}); ok {
			showAddress(w, broker, status, name)
		}
	}
}

// addressDelete deletes an address with all its queues, or with if_empty or if_unused only one that is.
func addressDelete(broker Broker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { remove(w, r, broker, r.PathValue("address"), "") }
}
