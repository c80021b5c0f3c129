package engine

// Why a publish is rejected: Result.Reason.
const (
	reasonNotFound   = "not-found"
	reasonNotAllowed = "not-allowed"
	reasonInvalid    = "invalid"
	reasonDeleted    = "deleted"
	reasonMemory     = "memory"
	reasonQueues     = "queues"
	reasonStore      = "store"
	reasonStoreFull  = "store-full"

	reasonTransaction = "transaction"
)

// rejected returns the verdict over a message that queue, or the address of that name, doesn't take.
func rejected(queue, reason string, err error) Result {
	r := Result{Verdict: Rejected, Queue: queue, Reason: reason}
	switch reason {
	case reasonNotFound:
		r.Condition, r.Description = "amqp:not-found", "address is unknown"
	case reasonNotAllowed:
		r.Condition, r.Description = "amqp:not-allowed", "address doesn't allow it"
	case reasonInvalid:
		r.Condition, r.Description = "amqp:invalid-field", "address is no valid name"
	case reasonDeleted:
		r.Condition, r.Description = "amqp:resource-deleted", "address was deleted"
	case reasonMemory:
		r.Condition, r.Description = "amqp:resource-limit-exceeded", "memory limit of the broker is reached"
	case reasonQueues:
		r.Condition, r.Description = "amqp:resource-limit-exceeded", "queue limit of the broker is reached"
	case reasonTransaction:
		r.Condition, r.Description = "amqp:resource-limit-exceeded", "transaction is too large"
	case reasonStoreFull:
		r.Condition, r.Description = "amqp:resource-limit-exceeded", "store has no space"
	case reasonStore:
		r.Condition, r.Description = "amqp:internal-error", "store has failed"
	}
	if err != nil {
		r.Description = err.Error()
	}
	return r
}
