package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one thing that the HTTP side does, and what the OpenAPI document says of it: what isn't in the table below
// is neither served nor described.
type route struct {
	method, path string
	handler      http.Handler
	id           string // operationId
	does         string // a line
	more         string // what there is to know beside, empty for nothing
	query        []parameter
	body         any // the zero value of what a request says; nil: it says nothing
	answers      []reply
	fails        []int // statuses that come with a problem, beside those of every route of its kind
	partly       bool  // a failure may come with what has been done before it, instead of a problem
	open         bool  // to everybody, from everywhere
	foreign      bool  // from everywhere, though not to everybody
	busy         bool  // 503 when too many are answered at once
}

// parameter is a query parameter.
type parameter struct {
	name, does string
	schema     schema
}

// reply is an answer of a status without a problem.
type reply struct {
	status  int
	does    string
	content []content // one of these, by the Accept header; empty: there is none
}

// content is what an answer holds: the zero value of its type; nil is text or bytes.
type content struct {
	media string
	value any
}

func jsonOf(v any) []content { return []content{{"application/json", v}} }

func text(media string) []content { return []content{{media, nil}} }

// table returns all that is served, and how.
func table(o Options, ending context.Context, metrics http.Handler) []route {
	b := o.Broker
	few := func(h http.Handler) http.Handler { return atMost(requestsAtOnce, h) }
	health200, health503 := []content{{"text/plain", nil}, {"application/json", healthReport{}}}, []content{{"text/plain", nil}, {"application/json", healthReport{}}}
	onlyIf := []parameter{
		{"if_empty", "delete only what holds no message", schema{"type": "boolean"}},
		{"if_unused", "delete only what nobody consumes from or, of an address, sends to", schema{"type": "boolean"}},
	}
	made := func(v any) []reply {
		return []reply{{http.StatusOK, "it was there", jsonOf(v)}, {http.StatusCreated, "it has been made, and survives a restart", jsonOf(v)}}
	}
	progress := []reply{{http.StatusOK, "what it has come to; or, to whoever accepts " + ProgressType + ", a line each second, the last of which says that it has ended",
		[]content{{"application/json", Progress{}}, {ProgressType, Progress{}}}}}
	pages := []parameter{
		{"count", "so many at most", schema{"type": "integer", "minimum": 1, "maximum": maxPage, "default": defaultPage}},
		{"body_bytes", "so much of each body", schema{"type": "integer", "minimum": 0, "maximum": maxBodyBytes, "default": defaultBodyBytes}},
		{"after", "next of the page before", schema{"type": "string"}},
		{"filter", "a JMS selector: those only", schema{"type": "string"}},
	}
	const (
		interrupted = "It ends when the peer leaves: what is done by then is done, and nothing is half done."
		clearing    = "Goes through the messages that wait; what is with a consumer or waits for its time is left alone. " + interrupted
		purging     = "Goes through the messages that wait, also for their time; what is with a consumer is left alone. " + interrupted
	)
	return []route{
		{
			method: "GET", path: "/livez", open: true, id: "live", does: "whether the process answers", handler: health{},
			answers: []reply{{http.StatusOK, "it does", health200}},
		},
		{
			method: "GET", path: "/readyz", open: true, id: "ready", does: "whether the node takes clients", handler: health{{"node", o.Ready}},
			answers: []reply{{http.StatusOK, "it does", health200}, {http.StatusServiceUnavailable, "it doesn't, and why", health503}},
		},
		{
			method: "GET", path: "/metrics", foreign: true, busy: true, id: "metrics", does: "metrics for Prometheus",
			handler: apart(few(metrics)), answers: []reply{{http.StatusOK, "all of them", text("text/plain")}},
		},
		{
			method: "GET", path: "/api/v1/queues", busy: true, id: "listQueues", does: "all queues",
			handler: few(queueList(b)), answers: []reply{{http.StatusOK, "in the order of address and name", jsonOf([]Queue{})}},
		},
		{
			method: "GET", path: "/api/v1/queues/{queue}", id: "showQueue", does: "a queue",
			handler: queueShow(b), answers: []reply{{http.StatusOK, "as it is now", jsonOf(Queue{})}}, fails: []int{http.StatusNotFound},
		},
		{
			method: "PUT", path: "/api/v1/queues/{queue}", id: "createQueue", does: "make a queue, with its address, unless it is there",
			handler: queueCreate(b), body: newQueue{}, answers: made(Queue{}),
			fails: []int{http.StatusConflict, http.StatusInsufficientStorage},
		},
		{
			method: "DELETE", path: "/api/v1/queues/{queue}", id: "deleteQueue", does: "delete a queue with its messages",
			handler: queueDelete(b), query: onlyIf, answers: []reply{{http.StatusNoContent, "it is gone", nil}},
			fails: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			method: "GET", path: "/api/v1/queues/{queue}/messages", busy: true, id: "browseQueue", does: "messages that wait in a queue",
			more:    "It only looks: nothing counts as an attempt. With a filter that selects little a page may be short, or empty, and there is more all the same: next tells.",
			query:   pages,
			handler: few(messageList(b, o.RequestTimeout, ending)),
			answers: []reply{{http.StatusOK, "a page, in the order in which they would be delivered", jsonOf(MessagePage{})}},
			fails:   []int{http.StatusNotFound},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/purge", id: "purgeQueue", does: "delete messages", more: purging,
			handler: queueClear(o.RequestTimeout, ending, false, purge(b)), body: Clearing{}, answers: progress, partly: true,
			fails: []int{http.StatusNotFound, http.StatusServiceUnavailable},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/move", id: "moveMessages", does: "move messages to another address, or to another queue", more: clearing,
			handler: queueClear(o.RequestTimeout, ending, true, move(b)), body: Clearing{}, answers: progress, partly: true,
			fails: []int{http.StatusNotFound, http.StatusConflict, http.StatusInsufficientStorage, http.StatusServiceUnavailable},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/retry", id: "retryMessages",
			does: "send messages back to where they died, expired or were moved from", more: clearing,
			handler: queueClear(o.RequestTimeout, ending, false, retry(b)), body: Clearing{}, answers: progress, partly: true,
			fails: []int{http.StatusNotFound, http.StatusInsufficientStorage, http.StatusServiceUnavailable},
		},
		{
			method: "GET", path: "/api/v1/queues/{queue}/scheduled", busy: true, id: "listScheduled",
			does:    "messages that wait for their time: sent for later, or failed and to be tried later",
			more:    "It only looks. With a filter a page may be short, or empty, and there is more all the same: next tells.",
			query:   pages,
			handler: few(scheduledList(b, o.RequestTimeout, ending)),
			answers: []reply{{http.StatusOK, "a page, in the order in which they are due", jsonOf(MessagePage{})}},
			fails:   []int{http.StatusNotFound},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/scheduled/cancel", id: "cancelScheduled", does: "delete messages that wait for their time", more: interrupted,
			handler: queueReschedule(o.RequestTimeout, ending, b.CancelScheduled), body: Rescheduling{}, answers: progress, partly: true,
			fails: []int{http.StatusNotFound, http.StatusServiceUnavailable},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/scheduled/deliver", id: "deliverScheduled",
			does: "have messages that wait for their time be due now", more: "Each comes to its place by priority and number. " + interrupted,
			handler: queueReschedule(o.RequestTimeout, ending, b.DeliverScheduled), body: Rescheduling{}, answers: progress, partly: true,
			fails: []int{http.StatusNotFound, http.StatusServiceUnavailable},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/pause", id: "pauseQueue", does: "give nothing to consumers, until resume; also after a restart",
			handler: queuePause(b, true), body: struct{}{}, answers: []reply{{http.StatusOK, "the queue", jsonOf(Queue{})}},
			fails: []int{http.StatusNotFound},
		},
		{
			method: "POST", path: "/api/v1/queues/{queue}/resume", id: "resumeQueue", does: "give messages to consumers again",
			handler: queuePause(b, false), body: struct{}{}, answers: []reply{{http.StatusOK, "the queue", jsonOf(Queue{})}},
			fails: []int{http.StatusNotFound},
		},
		{
			method: "GET", path: "/api/v1/addresses", busy: true, id: "listAddresses", does: "all addresses",
			handler: few(addressList(b)), answers: []reply{{http.StatusOK, "in the order of their names", jsonOf([]Address{})}},
		},
		{
			method: "GET", path: "/api/v1/addresses/{address}", id: "showAddress", does: "an address, its queues and the settings in force there",
			handler: addressShow(b), answers: []reply{{http.StatusOK, "as it is now", jsonOf(AddressDetail{})}}, fails: []int{http.StatusNotFound},
		},
		{
			method: "GET", path: "/api/v1/addresses/{address}/settings", id: "showSettings",
			does: "the settings that are, or would be, in force at an address, with the match that gave each", more: "The address need not exist.",
			handler: settingsShow(b), answers: []reply{{http.StatusOK, "every key", jsonOf([]Setting{})}},
		},
		{
			method: "PUT", path: "/api/v1/addresses/{address}", id: "createAddress",
			does: "make an address, for anycast with the queue of its name, unless it is there", handler: addressCreate(b), body: newQueue{}, answers: made(AddressDetail{}),
			fails: []int{http.StatusConflict, http.StatusInsufficientStorage},
		},
		{
			method: "DELETE", path: "/api/v1/addresses/{address}", id: "deleteAddress", does: "delete an address with all its queues and their messages",
			handler: addressDelete(b), query: onlyIf, answers: []reply{{http.StatusNoContent, "it is gone", nil}},
			fails: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			method: "GET", path: "/api/v1/store/export", busy: true, id: "exportStore", does: "all that the store holds at one moment: a backup while the broker runs",
			more: "leto store import takes it. An answer that isn't whole ends without its last chunk. The trailer " + LeftOutTrailer +
				" says how many messages aren't in it, because their bodies are damaged. One export runs at a time.",
			handler: storeExport(o.Store, o.RequestTimeout, ending), answers: []reply{{http.StatusOK, "the export", text("application/octet-stream")}},
			fails: []int{http.StatusNotFound},
		},
	}
}

// pattern returns what http.ServeMux knows the route by.
func (r route) pattern() string {
	if r.path == "/" {
		return r.method + " /{$}" // nothing below it
	}
	return r.method + " " + r.path
}

// problems returns the statuses that a route answers with a problem, ascending.
func (r route) problems(o Options) []int {
	all := slices.Clone(r.fails)
	if r.busy {
		all = append(all, http.StatusServiceUnavailable)
	}
	if !r.open && o.Verify != nil {
		all = append(all, http.StatusUnauthorized)
	}
	if !r.open && !r.foreign {
		all = append(all, http.StatusBadRequest) // for a query parameter that it hasn't
		if o.Verify == nil {
			all = append(all, http.StatusMisdirectedRequest)
		}
		if r.method != http.MethodGet {
			all = append(all, http.StatusForbidden)
		}
		if r.body != nil {
			all = append(all, http.StatusUnsupportedMediaType)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// guarded returns the route's handler behind what stands before it.
func (r route) guarded(o Options) http.Handler {
	switch {
	case r.open:
		return r.handler
	case r.foreign:
		return guarded(o.Verify, r.handler)
	}
	return sameOrigin(o.Hosts, o.Verify == nil, guarded(o.Verify, r.strict(r.handler)))
}

// strict refuses names that are half there, and query parameters that the route hasn't: one that was misspelt must not be
// passed over, least of all if_empty. And so none is missing in the document.
func (r route) strict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		query, err := url.ParseQuery(request.URL.RawQuery)
		if err != nil {
			problem(w, http.StatusBadRequest, "query: "+err.Error())
			return
		}
		for name := range query {
			if !slices.ContainsFunc(r.query, func(p parameter) bool { return p.name == name }) {
				problem(w, http.StatusBadRequest, fmt.Sprintf("query parameter %.80q is none of this path", name))
				return
			}
		}
		// ORDERS:: for want of a queue's name must not mean ORDERS::ORDERS.
		if address, queue, full := strings.Cut(request.PathValue("queue"), "::"); full && (address == "" || queue == "") {
			problem(w, http.StatusBadRequest, "queue name is empty")
			return
		}
		next.ServeHTTP(w, request)
	})
}
