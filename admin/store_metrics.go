package admin

import (
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/letomq/leto/store"
)

// Store is what admin asks of the durable store.
type Store interface {
	Metrics() store.Metrics
	Export(w io.Writer) error
}

// storeCollector reads the store when a scrape asks.
type storeCollector struct{ Store }

var (
	storeWindows     = desc("store_windows_total", "Commit windows written: one flush each.")
	storeBytes       = desc("store_written_bytes_total", "Bytes of commit windows written to the journal.")
	storeFlushTime   = desc("store_flush_seconds_total", "Time spent writing and flushing commit windows.")
	storeFlushMax    = desc("store_flush_seconds_max", "The longest write and flush since the start.")
	storeRefused     = desc("store_refused_total", "Commits refused because the device is full.")
	storeWaited      = desc("store_waited_seconds_total", "Time commits waited for the index.")
	storeApplyTime   = desc("store_apply_seconds_total", "Time spent entering windows in the index.")
	storeIndexed     = desc("store_indexed_total", "Entries that stayed long enough to be entered in the index.")
	storePending     = desc("store_pending_bytes", "Bytes committed and not yet in the index, or what that takes in memory if it is more.")
	storePendingAge  = desc("store_pending_seconds", "Age of the oldest window that isn't in the index.")
	storeCheckpoints = desc("store_checkpoints_total", "Checkpoints of the index.")
	storeSegments    = desc("store_segments", "Segments of the journal.")
	storeJournal     = desc("store_journal_bytes", "Bytes of segments.")
	storeLive        = desc("store_live_bytes", "Bytes of bodies in segments that are still needed.")
	storeFreed       = desc("store_segments_freed_total", "Segments given back.")
	storeRelocated   = desc("store_relocated_total", "Entries whose bodies were copied to empty a segment.")
	storeBadBodies   = desc("store_bad_bodies_total", "Bodies that did not read as they were written.")
	storeAlarms      = desc("store_alarms_total", "Faults that the index reported.")
	storeFree        = desc("store_disk_free_bytes", "Bytes free on the device.")
	storeFull        = desc("store_full", "1 while durable messages are refused for want of space.")
	storeFailed      = desc("store_failed", "1 once the store has stopped over an error.")
)

func (c storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		storeWindows, storeBytes, storeFlushTime, storeFlushMax, storeRefused, storeWaited, storeApplyTime, storeIndexed,
		storePending, storePendingAge, storeCheckpoints, storeSegments, storeJournal, storeLive, storeFreed, storeRelocated,
		storeBadBodies, storeAlarms, storeFree, storeFull, storeFailed,
	} {
		ch <- d
	}
}

func (c storeCollector) Collect(ch chan<- prometheus.Metric) {
	m := c.Metrics()
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	counter(storeWindows, float64(m.Windows))
	counter(storeBytes, float64(m.WindowBytes))
	counter(storeFlushTime, m.FlushTime.Seconds())
	gauge(storeFlushMax, m.FlushMax.Seconds())
	counter(storeRefused, float64(m.Refused))
	counter(storeWaited, m.Waited.Seconds())
	counter(storeApplyTime, m.ApplyTime.Seconds())
	counter(storeIndexed, float64(m.Indexed))
	gauge(storePending, float64(m.PendingBytes))
	gauge(storePendingAge, m.PendingAge.Seconds())
	counter(storeCheckpoints, float64(m.Checkpoints))
	gauge(storeSegments, float64(m.Segments))
	gauge(storeJournal, float64(m.JournalBytes))
	gauge(storeLive, float64(m.LiveBytes))
	counter(storeFreed, float64(m.Freed))
	counter(storeRelocated, float64(m.Relocated))
	counter(storeBadBodies, float64(m.BadBodies))
	counter(storeAlarms, float64(m.Alarms))
	gauge(storeFree, float64(m.Free))
	gauge(storeFull, one(m.Full))
	gauge(storeFailed, one(m.Failed != nil))
}
