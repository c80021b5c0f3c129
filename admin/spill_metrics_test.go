package admin

import (
	"strings"
	"testing"

	"github.com/letomq/leto/engine"
)

// spilling is a broker that has spilled something.
type spilling struct{ Broker }

func (s spilling) Totals() engine.Totals {
	t := s.Broker.Totals()
	t.Spilled, t.Lost = 17, 3
	return t
}

func (spilling) Spill() engine.SpillInfo {
	return engine.SpillInfo{Pending: 100, Written: 20, Disk: 4096, Stopped: true}
}

func TestSpillMetrics(t *testing.T) {
	o := options()
	o.Broker = spilling{o.Broker}
	_, body := do(t, "GET", "http://"+start(t, o)+"/metrics", nil)
	for _, line := range []string{
		"leto_spill_messages 17", "leto_spill_pending_bytes 100", "leto_spill_written_total 20", "leto_spill_lost_total 3",
		"leto_spill_disk_bytes 4096", "leto_spill_stopped 1",
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}
