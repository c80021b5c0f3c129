package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/engine"
)

// Messages that are dropped in great numbers are told of in few lines, and none of them is left out of the counts.
func TestDropLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newDropLog(zerolog.New(&out), time.Second)
		lines, messages := 0, 0
		count := func() {
			t.Helper()
			lines, messages = 0, 0
			for d := json.NewDecoder(&out); d.More(); lines++ {
				line := struct{ Messages int }{1}
				if err := d.Decode(&line); err != nil {
					t.Fatal(err)
				}
				messages += line.Messages
			}
		}
		l.dropped(engine.Dropped{Queue: "q", Number: 7, Reason: "why"})
		if count(); lines != 1 {
			t.Errorf("%d lines about one message, want one at once", lines)
		}
		for i := range 10_000 {
			l.dropped(engine.Dropped{Queue: fmt.Sprint("q", i%100), Number: uint64(i), Reason: "why"})
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if count(); lines > 2*dropKeys+1 || messages != 10_000 {
			t.Errorf("%d lines about %d messages, want %d at the most about 10,000", lines, messages, 2*dropKeys+1)
		}
		time.Sleep(time.Minute)
		if count(); lines != 0 {
			t.Errorf("%d lines about nothing", lines)
		}
		for range 3 {
			l.dropped(engine.Dropped{Queue: "q", Reason: "why"})
		}
		l.end()
		if count(); lines != 2 || messages != 3 {
			t.Errorf("%d lines about %d messages at the end, want two about three", lines, messages)
		}
	})
}
