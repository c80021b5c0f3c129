package engine

import (
	"time"

	"github.com/letomq/leto/engine/queue"
)

// parkAfter is what a message waits in memory for its time at most. It is more than the store takes to know of it, so that
// what is near isn't late.
const parkAfter = 5 * time.Second

// pagingShare of the memory limit is what queues may keep in memory of what the store holds too. The rest is for what
// is only in memory: transient messages, deliveries that are not settled yet, and the commit window.
const pagingShare = 4

// pagingUnlimited is the same when memory has no limit: enough for a thousand busy queues, little enough that the
// collector doesn't wade through a backlog.
const pagingUnlimited = 128 << 20

// pagingFloor lets a queue keep a small message or two whatever the others do: 100,000 queues of that are 100 MB at
// the worst.
const pagingFloor = 1 << 10

// newBudget returns the budget of durable messages that wait in memory. Beneath 64 MiB of it, all sizes shrink with it,
// so that some queues can still be busy at the same time.
func newBudget(memoryLimit int64) *queue.Budget {
	limit := memoryLimit / pagingShare
	if memoryLimit == 0 {
		limit = pagingUnlimited
	}
	page := min(max(limit/64, 2<<10), 1<<20) // large enough that a read is mostly payload: 1 MiB takes a disk 1 ms
	entries := min(max(page/512, 8), 1024)   // what a page's entries cost stays below what its payloads do
	return &queue.Budget{
		Limit:        limit,
		Ceiling:      4 * page, // a consumer that catches up meets memory, one that doesn't costs no more than this
		Floor:        pagingFloor,
		Park:         parkAfter.Milliseconds(),
		Chunk:        max(page/16, 1<<10),
		Low:          max(page/8, 512), // some hundred small messages: what is given while a page is read
		PageEntries:  int(entries),
		PageBytes:    int(page),
		SmallEntries: 8, // beyond the limit: slowly, but on
		SmallBytes:   int(min(page, 16<<10)),
	}
}
