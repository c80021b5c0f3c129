package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// health answers 200 while every check passes and 503 otherwise: as a line of text for people, as
// JSON for whoever asks for it. Without checks it says that the process answers.
type health []check

type check struct {
	name string
	run  func() error
}

type healthReport struct {
	Status string        `json:"status" enum:"ok|unavailable"`
	Checks []checkReport `json:"checks"`
}

type checkReport struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok|unavailable"`
	Detail string `json:"detail,omitempty"`
}

func (h health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	report := healthReport{Status: "ok", Checks: []checkReport{}}
	var why []string
	for _, c := range h {
		result := checkReport{Name: c.name, Status: "ok"}
		if err := c.run(); err != nil {
			result.Status, result.Detail = "unavailable", err.Error()
			report.Status = "unavailable"
			why = append(why, c.name+": "+err.Error())
		}
		report.Checks = append(report.Checks, result)
	}
	code := http.StatusOK
	if len(why) > 0 {
		code = http.StatusServiceUnavailable
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(report) // a peer that left needs no answer
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, strings.Join(append([]string{report.Status}, why...), "\n"))
}
