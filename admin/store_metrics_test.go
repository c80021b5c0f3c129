package admin

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/letomq/leto/store"
)

type fakeStore struct{}

func (fakeStore) Metrics() store.Metrics {
	return store.Metrics{Windows: 7, Segments: 3, Full: true, Failed: errors.New("device")}
}

func (fakeStore) Export(io.Writer) error { return nil }

func TestStoreMetrics(t *testing.T) {
	o := options()
	o.Store = fakeStore{}
	_, body := do(t, "GET", "http://"+start(t, o)+"/metrics", nil)
	for _, line := range []string{"leto_store_windows_total 7", "leto_store_segments 3", "leto_store_full 1", "leto_store_failed 1"} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}
