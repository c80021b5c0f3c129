package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/letomq/leto/admin/selector"
	"github.com/letomq/leto/engine"
)

// MessagePage is some of the messages that wait in a queue, in the order in which they would be delivered.
type MessagePage struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next,omitempty" doc:"after=NEXT goes on behind them; absent: there are no more"`
}

// What a page has when nothing else is asked for, and at most.
const (
	defaultPage, maxPage           = 100, 1000
	defaultBodyBytes, maxBodyBytes = 4 << 10, 1 << 20
	maxPageBytes                   = 32 << 20 // bodies of a page, about
)

// messageList answers with a MessagePage. It only looks: nothing counts as an attempt. With a filter that selects little
// it may look at many messages, and ends when the peer leaves or after patience with what it has found.
func messageList(broker Broker, patience time.Duration, ending context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		asked, err := readPaging(r.URL.Query())
		from, noPlace := parsePlace(r.URL.Query().Get("after"))
		if err := errors.Join(err, noPlace); err != nil {
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience*3/4)
		defer cancel()
		defer context.AfterFunc(ending, cancel)()
		page, bytes := MessagePage{Messages: []Message{}}, 0
		_, to, more, err := broker.Browse(ctx, address, queue, from, asked.selection(), func(d *engine.Delivery) bool {
			page.Messages = append(page.Messages, describeMessage(d, asked.bodyBytes))
			bytes += min(d.Message.Size(), asked.bodyBytes)
			return bytes < maxPageBytes
		})
		if err != nil && ctx.Err() == nil {
			refuse(w, err)
			return
		}
		if more {
			page.Next = placeText(to)
		}
		answer(w, http.StatusOK, page)
	}
}

// paging is what a request for a page asks for.
type paging struct {
	count, bodyBytes int
	match            func(*engine.Delivery) bool
}

func readPaging(query url.Values) (p paging, err error) {
	var noCount, noBytes, noFilter error
	p.count, noCount = number(query, "count", defaultPage, 1, maxPage)
	p.bodyBytes, noBytes = number(query, "body_bytes", defaultBodyBytes, 0, maxBodyBytes)
	p.match, noFilter = filter(query.Get("filter"))
	return p, errors.Join(noCount, noBytes, noFilter)
}

func (p *paging) selection() engine.Selection {
	return engine.Selection{Count: p.count, Match: p.match}
}

// number reads a query parameter that is a whole number.
func number(query url.Values, name string, otherwise, least, most int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is a number from %d to %d", name, least, most)
	}
	return n, nil
}

var errNotNext = errors.New("after is what next of the page before said")

// placeText writes a place as PRIORITY-NUMBER.
func placeText(p engine.Place) string { return fmt.Sprintf("%d-%d", p.Priority, p.Number) }

func parsePlace(text string) (p engine.Place, err error) {
	if text == "" {
		return p, nil
	}
	priority, number, ok := strings.Cut(text, "-")
	level, err := strconv.ParseUint(priority, 10, 8)
	if err == nil {
		p.Number, err = strconv.ParseUint(number, 10, 60)
	}
	if !ok || err != nil || level > 9 {
		return engine.Place{}, errNotNext
	}
	p.Priority = uint8(level)
	return p, nil
}

// filter reads a filter; nil for none.
func filter(text string) (func(*engine.Delivery) bool, error) {
	if text == "" {
		return nil, nil
	}
	s, err := selector.Parse(text)
	if err != nil {
		return nil, err
	}
	return func(d *engine.Delivery) bool { return s.Match(newView(d).lookup) }, nil
}
