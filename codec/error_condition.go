package codec

// Error conditions that any scope may give [2.8.15].
const (
	ConditionInternalError         Symbol = "amqp:internal-error"
	ConditionNotFound              Symbol = "amqp:not-found"
	ConditionUnauthorizedAccess    Symbol = "amqp:unauthorized-access"
	ConditionDecodeError           Symbol = "amqp:decode-error"
	ConditionResourceLimitExceeded Symbol = "amqp:resource-limit-exceeded"
	ConditionNotAllowed            Symbol = "amqp:not-allowed"
	ConditionInvalidField          Symbol = "amqp:invalid-field"
	ConditionNotImplemented        Symbol = "amqp:not-implemented"
	ConditionResourceLocked        Symbol = "amqp:resource-locked"
	ConditionPreconditionFailed    Symbol = "amqp:precondition-failed"
	ConditionResourceDeleted       Symbol = "amqp:resource-deleted"
	ConditionIllegalState          Symbol = "amqp:illegal-state"
	ConditionFrameSizeTooSmall     Symbol = "amqp:frame-size-too-small"
)

// Error conditions of a connection [2.8.16].
const (
	ConditionConnectionForced   Symbol = "amqp:connection:forced"
	ConditionFramingError       Symbol = "amqp:connection:framing-error"
	ConditionConnectionRedirect Symbol = "amqp:connection:redirect"
)

// Error conditions of a session [2.8.17].
const (
	ConditionWindowViolation  Symbol = "amqp:session:window-violation"
	ConditionErrantLink       Symbol = "amqp:session:errant-link"
	ConditionHandleInUse      Symbol = "amqp:session:handle-in-use"
	ConditionUnattachedHandle Symbol = "amqp:session:unattached-handle"
)

// Error conditions of a link [2.8.18].
const (
	ConditionDetachForced          Symbol = "amqp:link:detach-forced"
	ConditionTransferLimitExceeded Symbol = "amqp:link:transfer-limit-exceeded"
	ConditionMessageSizeExceeded   Symbol = "amqp:link:message-size-exceeded"
	ConditionLinkRedirect          Symbol = "amqp:link:redirect"
	ConditionLinkStolen            Symbol = "amqp:link:stolen"
)

// Error conditions of a transaction [4.5.8].
const (
	ConditionTransactionUnknownID Symbol = "amqp:transaction:unknown-id"
	ConditionTransactionRollback  Symbol = "amqp:transaction:rollback"
	ConditionTransactionTimeout   Symbol = "amqp:transaction:timeout"
)
