package admin

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/letomq/leto/store"
)

// LeftOutTrailer says behind an export how many messages aren't in it, because their bodies are damaged.
const LeftOutTrailer = "Leto-Left-Out"

// storeExport answers with all that the store holds at one moment, while it goes on: a backup of a running broker. One
// runs at a time, because segments aren't given back meanwhile; a peer that takes nothing for patience is cut off. An
// answer that isn't whole ends without its last chunk, so that no client takes it for one.
func storeExport(s Store, patience time.Duration) http.Handler {
	one := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Trailer", LeftOutTrailer)
		out := patientWriter{w, http.NewResponseController(w), patience, false}
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

// patientWriter gives each write its own time.
type patientWriter struct {
	to       io.Writer
	control  *http.ResponseController
	patience time.Duration
	wrote    bool
}

func (p *patientWriter) Write(b []byte) (int, error) {
	p.wrote = true
	if err := p.control.SetWriteDeadline(time.Now().Add(p.patience)); err != nil {
		return 0, err
	}
	return p.to.Write(b)
}
