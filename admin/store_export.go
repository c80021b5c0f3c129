package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/letomq/leto/store"
)

// LeftOutTrailer says behind an export how many messages aren't in it, because their bodies are damaged.
const LeftOutTrailer = "Leto-Left-Out"

// exportPiece is what a peer has to take of an export within the time that other requests have for all of their answer.
const exportPiece = 1 << 20

// storeExport answers with all that the store holds at one moment, while it goes on: a backup of a running broker. One
// runs at a time, because segments aren't given back meanwhile; a peer that doesn't take exportPiece in patience is cut
// off, and so is one that is served when ending is done. An answer that isn't whole ends without its last chunk, so
// that no client takes it for one.
func storeExport(s Store, patience time.Duration, ending context.Context) http.Handler {
	one := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s == nil {
			problem(w, http.StatusNotFound, "this broker has no store")
			return
		}
		select {
		case one <- struct{}{}:
			defer func() { <-one }()
		default:
			w.Header().Set("Retry-After", "10")
			problem(w, http.StatusServiceUnavailable, "another export is running: try again when it has ended")
			return
		}
		lasting(r)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Trailer", LeftOutTrailer)
		out := patientWriter{to: w, control: http.NewResponseController(w), patience: patience, ending: ending}
		out.extend()
		defer context.AfterFunc(ending, out.cut)()
		left := store.LeftOut(0)
		switch err := s.Export(&out); {
		case err == nil, errors.As(err, &left):
			w.Header().Set(LeftOutTrailer, strconv.Itoa(int(left)))
		case out.wrote:
			panic(http.ErrAbortHandler) // what net/http offers for cutting an answer off
		default:
			problem(w, http.StatusServiceUnavailable, err.Error())
		}
	})
}

// patientWriter gives each piece its own time.
type patientWriter struct {
	to       io.Writer
	control  *http.ResponseController
	patience time.Duration
	ending   context.Context
	piece    int // bytes of the one under way
	wrote    bool
}

func (p *patientWriter) Write(b []byte) (int, error) {
	if err := p.ending.Err(); err != nil {
		return 0, err
	}
	p.wrote = true
	n, err := p.to.Write(b)
	if p.piece += n; p.piece >= exportPiece {
		p.piece = 0
		p.extend()
	}
	return n, err
}

// extend begins the time of a piece. Where time can't be limited, a test's recorder, it isn't.
func (p *patientWriter) extend() {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.patience))
	if p.ending.Err() != nil { // cut may have come before
		p.cut()
	}
}

// cut ends a write under way, from another goroutine.
func (p *patientWriter) cut() { _ = p.control.SetWriteDeadline(time.Unix(1, 0)) }
