package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/letomq/leto/engine"
)

// Progress is what a command over the messages of a queue has come to.
type Progress struct {
	Looked  int    `json:"looked" doc:"messages looked at"`
	Done    int    `json:"done" doc:"of those, purged, moved, sent back, cancelled or made due"`
	Skipped int    `json:"skipped" doc:"of those that it was about, left where they were"`
	Ended   bool   `json:"ended" doc:"false: there is more to come"`
	Error   string `json:"error,omitempty" doc:"why it ended before it was through"`
	Status  int    `json:"status,omitempty" doc:"of that error, as an answer without progress would have it"`
}

// ProgressType is what an Accept header asks for to hear of progress: lines of JSON, one Progress each.
const ProgressType = "application/x-ndjson"

// tellEvery is how often a command tells how far it is.
const tellEvery = time.Second

// perform runs a command that may take long, until it is through or the peer has left. It answers with a Progress when
// it is through, or, to whoever asks for ProgressType, with one each second. Time-outs count from the last sign of life.
func perform(w http.ResponseWriter, r *http.Request, patience time.Duration, ending context.Context,
	command func(ctx context.Context, report func(engine.Progress)) (engine.Progress, error),
) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(ending, cancel)()
	control := http.NewResponseController(w)
	// A read that is under way tells when the peer leaves, and must not be timed out meanwhile.
	_ = control.SetReadDeadline(time.Time{})
	stream := strings.Contains(r.Header.Get("Accept"), ProgressType)
	encoder := json.NewEncoder(w)
	told := time.Now()
	report := func(p engine.Progress) {
		if now := time.Now(); now.Sub(told) >= tellEvery {
			told = now
			_ = control.SetWriteDeadline(now.Add(patience))
			if stream {
				w.Header().Set("Content-Type", ProgressType)
				if encoder.Encode(Progress{Looked: p.Looked, Done: p.Done, Skipped: p.Skipped}) != nil || control.Flush() != nil {
					cancel()
				}
			}
		}
	}
	p, err := command(ctx, report)
	_ = control.SetWriteDeadline(time.Now().Add(patience))
	last := Progress{Looked: p.Looked, Done: p.Done, Skipped: p.Skipped, Ended: true}
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		last.Error, last.Status = "interrupted", http.StatusServiceUnavailable
	default:
		last.Error, last.Status = err.Error(), statusOf(err)
	}
	if stream {
		w.Header().Set("Content-Type", ProgressType)
		_ = encoder.Encode(last) // a peer that left needs no answer
		return
	}
	if err != nil && p.Done == 0 {
		problem(w, last.Status, last.Error)
		return
	}
	answer(w, max(last.Status, http.StatusOK), last)
}
