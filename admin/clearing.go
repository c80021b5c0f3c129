package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/letomq/leto/engine"
)

// Clearing is what a request to purge, move or retry messages says.
type Clearing struct {
	Filter *string `json:"filter,omitempty" doc:"a JMS selector; absent: all"`
	Count  *int    `json:"count,omitempty" doc:"so many at most, 1 or more; absent: all"`
	To     string  `json:"to,omitempty" doc:"move, and nothing else: ADDRESS or ADDRESS::QUEUE"`
}

// clear is a command of the engine over the messages of a queue.
type clear func(ctx context.Context, address, queue string, c Clearing, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)

// queueClear carries out a command over the messages that wait in a queue. What is with a consumer is left alone, and by
// move and retry also what waits for its time.
func queueClear(patience time.Duration, ending context.Context, moves bool, command clear) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		var body Clearing
		if !readBody(w, r, &body) {
			return
		}
		sel, err := selectionOf(body.Filter, body.Count)
		switch {
		case err != nil:
			problem(w, http.StatusBadRequest, err.Error())
			return
		case moves != (body.To != ""):
			problem(w, http.StatusBadRequest, "to is where a move goes, and for nothing else")
			return
		}
		perform(w, r, patience, ending, func(ctx context.Context, report func(engine.Progress)) (engine.Progress, error) {
			return command(ctx, address, queue, body, sel, report)
		})
	}
}

// selectionOf returns what a request selects. What a script has failed to fill in must not mean all.
func selectionOf(selector *string, count *int) (sel engine.Selection, err error) {
	switch {
	case selector == nil:
	case *selector == "":
		return sel, errors.New("filter is empty: leave it out for all")
	default:
		if sel.Match, err = filter(*selector); err != nil {
			return sel, err
		}
	}
	if count != nil {
		if *count < 1 {
			return sel, errors.New("count is 1 or more: leave it out for all")
		}
		sel.Count = *count
	}
	return sel, nil
}

func purge(b Broker) clear {
	return func(ctx context.Context, address, queue string, _ Clearing, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error) {
		return b.PurgeSome(ctx, address, queue, sel, report)
	}
}

func move(b Broker) clear {
	return func(ctx context.Context, address, queue string, c Clearing, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error) {
		return b.Move(ctx, address, queue, c.To, sel, report)
	}
}

func retry(b Broker) clear {
	return func(ctx context.Context, address, queue string, _ Clearing, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error) {
		return b.Retry(ctx, address, queue, sel, report)
	}
}

// queuePause has a queue give nothing to consumers, or go on.
func queuePause(broker Broker, yes bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		address, queue := queueName(r)
		if !readBody(w, r, &struct{}{}) {
			return
		}
		err := broker.Pause(address, queue, yes)
		if err == nil {
			err = broker.Sync()
		}
		var q engine.QueueInfo
		if err == nil {
			q, err = broker.Queue(address, queue)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, http.StatusOK, describe(q))
	}
}
