package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/letomq/leto/engine"
)

// readBody reads what a request says into v; an empty body says nothing. Unknown fields are refused: what a command
// doesn't understand it must not ignore.
func readBody(w http.ResponseWriter, r *http.Request, v any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	if err == nil {
		_, err = decoder.Token()
		if err == nil {
			err = errors.New("something stands behind the object")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		problem(w, http.StatusBadRequest, "body: "+err.Error())
		return false
	}
	return true
}

// answer writes v as the whole of an answer.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a peer that left needs no answer
}

// refuse answers with what the engine says to a request.
func refuse(w http.ResponseWriter, err error) { problem(w, statusOf(err), err.Error()) }

// statusOf returns the status that an error of the engine is.
func statusOf(err error) int {
	for _, known := range []struct {
		err    error
		status int
	}{
		{engine.ErrNotFound, http.StatusNotFound},
		{engine.ErrDeleted, http.StatusNotFound},
		{engine.ErrInvalid, http.StatusBadRequest},
		{engine.ErrNotAllowed, http.StatusConflict},
		{engine.ErrInUse, http.StatusConflict},
		{engine.ErrStoreFull, http.StatusInsufficientStorage},
		{engine.ErrLimit, http.StatusInsufficientStorage},
		{engine.ErrClosed, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, known.err) {
			return known.status
		}
	}
	return http.StatusInternalServerError
}
