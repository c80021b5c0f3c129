package admin

import (
	"encoding/json"
	"net/http"
)

// problemDetails is an error as RFC 9457 has it.
type problemDetails struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(problemDetails{http.StatusText(status), status, detail}) // a peer that left needs no answer
}
