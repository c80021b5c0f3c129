package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/letomq/leto/engine"
)

var (
	spillMessages = desc("spill_messages", "Messages that wait in the spill only.")
	spillPending  = desc("spill_pending_bytes", "Bytes of messages in memory that are to be written to the spill.")
	spillWritten  = desc("spill_written_total", "Messages written to the spill.")
	spillLost     = desc("spill_lost_total", "Messages that could not be read from the spill.")
	spillDisk     = desc("spill_disk_bytes", "Bytes of segments of the spill.")
	spillStopped  = desc("spill_stopped", "1 while nothing can be spilled: messages that need not survive stay in memory.")
)

var spillDescs = []*prometheus.Desc{spillMessages, spillPending, spillWritten, spillLost, spillDisk, spillStopped}

// collectSpill says how the spill was at the moment of the totals.
func collectSpill(ch chan<- prometheus.Metric, totals engine.Totals, spill engine.SpillInfo) {
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	value(spillMessages, prometheus.GaugeValue, float64(totals.Spilled))
	value(spillPending, prometheus.GaugeValue, float64(spill.Pending))
	value(spillWritten, prometheus.CounterValue, float64(spill.Written))
	value(spillLost, prometheus.CounterValue, float64(totals.Lost))
	value(spillDisk, prometheus.GaugeValue, float64(spill.Disk))
	value(spillStopped, prometheus.GaugeValue, one(spill.Stopped))
}
