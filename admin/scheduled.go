package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/letomq/leto/engine"
)

// scheduledList answers with a MessagePage of what waits for its time, sent for later or failed and to be tried later, in
// the order in which it is due. It only looks.
func scheduledList(broker Broker, patience time.Duration, ending context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		asked, err := readPaging(r.URL.Query())
		from, noSlot := parseSlot(r.URL.Query().Get("after"))
		if err := errors.Join(err, noSlot); err != nil {
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience*3/4)
		defer cancel()
		defer context.AfterFunc(ending, cancel)()
		page, bytes := MessagePage{Messages: []Message{}}, 0
		_, to, more, err := broker.Scheduled(ctx, address, queue, from, asked.selection(), func(s *engine.Scheduled) bool {
			told := describeMessage(&s.Delivery, asked.bodyBytes)
			told.DueAt = at(min(s.At, lastTime))
			page.Messages = append(page.Messages, told)
			bytes += min(s.Message.Size(), asked.bodyBytes)
			return bytes < maxPageBytes
		})
		if err != nil && ctx.Err() == nil {
			refuse(w, err)
			return
		}
		if more {
			page.Next = slotText(to)
		}
		answer(w, http.StatusOK, page)
	}
}

// slotText writes a slot as TIME-PRIORITY-NUMBER.
func slotText(s engine.Slot) string { return fmt.Sprintf("%d-%d-%d", s.At, s.Priority, s.Number) }

func parseSlot(text string) (s engine.Slot, err error) {
	if text == "" {
		return s, nil
	}
	due, place, ok := strings.Cut(text, "-")
	s.At, err = strconv.ParseInt(due, 10, 64)
	p, noPlace := parsePlace(place)
	if !ok || place == "" || err != nil || noPlace != nil || s.At < 0 {
		return engine.Slot{}, errNotNext
	}
	s.Priority, s.Number = p.Priority, p.Number
	return s, nil
}

// Rescheduling is what a request to cancel or deliver messages that wait for their time says.
type Rescheduling struct {
	Number *uint64 `json:"number,omitempty" doc:"the message of this number; absent: all"`
	Filter *string `json:"filter,omitempty" doc:"a JMS selector; absent: all"`
	Count  *int    `json:"count,omitempty" doc:"so many at most, those first that are due first, 1 or more; absent: all"`
}

// reschedule is a command of the engine over the messages of a queue that wait for their time.
type reschedule func(ctx context.Context, address, queue string, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)

// queueReschedule carries out a command over the messages of a queue that wait for their time.
func queueReschedule(patience time.Duration, ending context.Context, command reschedule) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		var body Rescheduling
		if !readBody(w, r, &body) {
			return
		}
		sel, err := selectionOf(body.Filter, body.Count)
		switch {
		case err != nil:
			problem(w, http.StatusBadRequest, err.Error())
			return
		case body.Number != nil && *body.Number == 0:
			problem(w, http.StatusBadRequest, "number is 1 or more: leave it out for all")
			return
		case body.Number != nil:
			sel.Number = *body.Number
		}
		perform(w, r, patience, ending, func(ctx context.Context, report func(engine.Progress)) (engine.Progress, error) {
			return command(ctx, address, queue, sel, report)
		})
	}
}
