package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/letomq/leto/admin"
)

func TestQueueTable(t *testing.T) {
	queues := []admin.Queue{
		{Name: "orders", Address: "orders", Routing: "anycast", Messages: 3, Delayed: 12, Bytes: 2048, Consumers: 1, Added: 10, Acknowledged: 7},
		{Name: "x", Address: "prices", Routing: "multicast", Temporary: true},
	}
	plain := queueTable(queues, false)
	want := "" +
		"queue          address  routing    messages  delayed  delivering  bytes  consumers  added  acknowledged\n" +
		"orders         orders   anycast           3       12           0   2048          1     10             7\n" +
		"x (temporary)  prices   multicast         0        0           0      0          0      0             0"
	if plain != want {
		t.Errorf("got\n%s\nwant\n%s", plain, want)
	}
	if framed := queueTable(queues, true); !strings.Contains(framed, "│ orders") || !strings.Contains(framed, "2KiB") {
		t.Errorf("on a terminal:\n%s", framed)
	}
}

func TestAdminAnswersBecomeExitCodes(t *testing.T) {
	for status, code := range map[int]int{401: exitForbidden, 403: exitForbidden, 404: exitNotFound, 409: exitConflict, 500: exitFailed} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"detail":"told %d"}`, status)
		}))
		leto(t, "queue", "ls", "--admin-url", api.URL).want(t, code, fmt.Sprintf("told %d", status))
		api.Close()
	}
	leto(t, "queue", "ls", "--admin-url", "ftp://x").want(t, exitUsage, "is not http://HOST:PORT")
	leto(t, "queue", "ls", "--admin-url", "http://127.0.0.1:1").want(t, exitConnect, "cannot connect to http://127.0.0.1:1")
}

func TestQueueListJSON(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `[{"name":"orders","messages":3}]`)
	}))
	defer api.Close()
	withUser := strings.Replace(api.URL, "http://", "http://ann:secret@", 1)
	r := leto(t, "queue", "ls", "--json", "--admin-url", withUser)
	var queues []admin.Queue
	if err := json.Unmarshal([]byte(r.out), &queues); err != nil || len(queues) != 1 || queues[0].Messages != 3 {
		t.Errorf("%+v, %v, exit code %d, %s", queues, err, r.code, r.errOut)
	}
	if r := leto(t, "queue", "ls", "--admin-url", strings.Replace(withUser, "secret", "wrong", 1)); strings.Contains(r.errOut, "wrong") {
		t.Errorf("the password is shown: %s", r.errOut)
	}
}
